// SPDX-License-Identifier: Apache-2.0
//! Writes the answers of a batch as columns for Spark.
//!
//! ```text
//! group_id | assignor | assignment: [{member_id, partitions: [{topic, partitions: [int]}]}]
//! | anomalies: [{kind, topic, partition, member_id}] | standby (as assignment) | error
//! | error_kind
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::{ArrayRef, RecordBatch};

use super::figures::error_columns;
use super::{Answer, Row};
use crate::bulk::nested::{Lengths, Runs, Texts, batch, structs, texts};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

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
    let (assignment, anomalies, standby) = nested.finish();
    let name = |row: &Row<Answer>| row.1.as_ref().ok().map(|answer| answer.assignor.name());
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, name)),
        ("assignment", assignment),
        ("anomalies", anomalies),
        ("standby", standby),
    ];
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
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
        self.anomalies
            .push((!anomalies.is_empty()).then_some(anomalies.len()));
        let Some(answer) = answer else { return };
        let topic = |t: u32| answer.group.topics[t as usize].name;
        for anomaly in anomalies {
            let partition = anomaly.partition;
            self.anomaly_kind.push(Some(anomaly.kind.name()));
            self.anomaly_topic.push(Some(topic(partition.topic)));
            self.anomaly_partition
                .append_value(partition.partition as i32);
            let member = anomaly
                .member
                .map(|m| answer.group.members[m as usize].member_id);
            self.anomaly_member.push(member);
        }
    }

    fn finish(mut self) -> (ArrayRef, ArrayRef, ArrayRef) {
        let anomalies = structs(
            vec![
                ("kind", self.anomaly_kind.finish()),
                ("topic", self.anomaly_topic.finish()),
                ("partition", Arc::new(self.anomaly_partition.finish())),
                ("member_id", self.anomaly_member.finish()),
            ],
            None,
        );
        let anomalies = self.anomalies.list(anomalies);
        (self.assigned.finish(), anomalies, self.standby.finish())
    }
}
