// SPDX-License-Identifier: Apache-2.0
//! Writes the answers of a batch as columns for Spark, in one of two forms. The second form, one
//! list of owners for each group, needs less CPU.
//!
//! ```text
//! group_id | assignor | assignment: [{member_id, partitions: [{topic, partitions: [int]}]}]
//! | anomalies: [{kind, topic, partition, member_id}] | standby (as assignment) | error
//! | error_kind
//!
//! group_id | assignor | topics: [{name, partitions: int}] | members: [string] | owners: [int]
//! | error | error_kind
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::{ArrayRef, RecordBatch};

use super::figures::{Row, answered};
use crate::assignors::Assignor;
use crate::bulk::nested::{Lengths, Named, Runs, Texts, structs};
use crate::group::model::TopicPartition;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

/// An answer and its group, which holds the names for the answer's numbers.
pub struct Answer<'a> {
    pub group: GroupSpec<'a>,
    pub assignor: Assignor,
    pub assignment: Assignment,
}

/// For each group, a list of its members with their partitions.
#[derive(Default)]
struct MemberLists {
    members: Lengths,
    member_id: Texts,
    runs: Runs,
}

#[derive(Default)]
struct Columns {
    assigned: MemberLists,
    standby: MemberLists,
    anomalies: Lengths,
    anomaly_kind: Texts,
    anomaly_topic: Texts,
    anomaly_partition: Int32Builder,
    anomaly_member: Texts,
}

pub fn write(rows: &[Row<Answer>]) -> RecordBatch {
    let mut nested = Columns::default();
    for (_, answer) in rows {
        nested.answer(answer.as_ref().ok());
    }
    answered(rows, |answer| Some(answer.assignor.name()), nested.finish())
}

impl MemberLists {
    fn push(&mut self, group: Option<&GroupSpec>, assignment: Option<&Assignment>) {
        let (Some(group), Some(assignment)) = (group, assignment) else {
            return self.members.push(None);
        };
        self.members.push(Some(group.members.len()));
        for (m, member) in group.members.iter().enumerate() {
            self.member_id.push(Some(member.member_id));
            let runs = assignment.of(m as u32).chunk_by(|a, b| a.topic == b.topic);
            self.runs.push(runs.map(|run| {
                let partitions = run.iter().map(|tp| tp.partition as i32);
                let topic = group.topics[run[0].topic as usize].name;
                (Cow::Borrowed(topic), partitions)
            }));
        }
    }

    fn finish(self) -> ArrayRef {
        let fields = vec![
            ("member_id", self.member_id.finish()),
            ("partitions", self.runs.finish()),
        ];
        self.members.list(structs(fields, None))
    }
}

impl Columns {
    fn answer(&mut self, answer: Option<&Answer>) {
        let group = answer.map(|answer| &answer.group);
        let assignment = answer.map(|answer| &answer.assignment);
        self.assigned.push(group, assignment);
        let standby = assignment.and_then(|assignment| assignment.standby.as_deref());
        self.standby.push(group, standby);
        let anomalies = answer.map_or(&[][..], |answer| &answer.assignment.anomalies);
        let count = anomalies.len();
        self.anomalies.push((count > 0).then_some(count));
        let Some(answer) = answer else { return };
        let (topics, members) = (&answer.group.topics, &answer.group.members);
        for anomaly in anomalies {
            let TopicPartition { topic, partition } = anomaly.partition;
            self.anomaly_kind.push(Some(anomaly.kind.name()));
            self.anomaly_topic.push(Some(topics[topic as usize].name));
            self.anomaly_partition.append_value(partition as i32);
            let member = anomaly.member.map(|m| members[m as usize].member_id);
            self.anomaly_member.push(member);
        }
    }

    fn finish(mut self) -> Vec<Named<'static>> {
        let anomalies = vec![
            ("kind", self.anomaly_kind.finish()),
            ("topic", self.anomaly_topic.finish()),
            ("partition", Arc::new(self.anomaly_partition.finish()) as _),
            ("member_id", self.anomaly_member.finish()),
        ];
        vec![
            ("assignment", self.assigned.finish()),
            ("anomalies", self.anomalies.list(structs(anomalies, None))),
            ("standby", self.standby.finish()),
        ]
    }
}

#[derive(Default)]
struct Owners {
    topics: Lengths,
    name: Texts,
    partitions: Int32Builder,
    members: Lengths,
    member_id: Texts,
    owners: Lengths,
    owner: Int32Builder,
}

pub fn write_owners(rows: &[Row<Answer>]) -> RecordBatch {
    let mut lists = Owners::default();
    for (_, answer) in rows {
        lists.answer(answer.as_ref().ok());
    }
    let topics = vec![
        ("name", lists.name.finish()),
        ("partitions", Arc::new(lists.partitions.finish()) as _),
    ];
    let columns = vec![
        ("topics", lists.topics.list(structs(topics, None))),
        ("members", lists.members.list(lists.member_id.finish())),
        ("owners", lists.owners.list(Arc::new(lists.owner.finish()))),
    ];
    answered(rows, |answer| Some(answer.assignor.name()), columns)
}

impl Owners {
    fn answer(&mut self, answer: Option<&Answer>) {
        let group = answer.map(|answer| &answer.group);
        let topics = group.map(|group| &group.topics[..group.declared]);
        self.topics.push(topics.map(<[_]>::len));
        self.members.push(group.map(|group| group.members.len()));
        let Some(answer) = answer else {
            return self.owners.push(None);
        };
        // `starts[t]` is the index of topic t's partition 0 in `owners`.
        let mut starts = Vec::new();
        let mut total = 0;
        for topic in topics.unwrap_or_default() {
            self.name.push(Some(topic.name));
            self.partitions.append_value(topic.partitions as i32);
            starts.push(total);
            total += topic.partitions as usize;
        }
        let mut owners = vec![None; total];
        for (m, member) in answer.group.members.iter().enumerate() {
            self.member_id.push(Some(member.member_id));
            for tp in answer.assignment.of(m as u32) {
                // Sticky assignors may assign partitions that are claimed but do not exist. For
                // these, `owners` has no entry.
                let exists = tp.partition < answer.group.topics[tp.topic as usize].partitions;
                if exists {
                    owners[starts[tp.topic as usize] + tp.partition as usize] = Some(m as i32);
                }
            }
        }
        self.owners.push(Some(total));
        self.owner.extend(owners);
    }
}
