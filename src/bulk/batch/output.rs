// SPDX-License-Identifier: Apache-2.0
//! Writes the answers of a batch as columns for Spark.
//!
//! ```text
//! group_id | assignor | assignment: [{member_id, partitions: [{topic, partitions: [int]}]}]
//! | anomalies: [{kind, topic, partition, member_id}] | error | error_kind
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::{ArrayRef, RecordBatch};

use super::figures::error_columns;
use super::{Answer, Row};
use crate::bulk::nested::{Lengths, Runs, Texts, batch, structs, texts};

#[derive(Default)]
struct Columns {
    members: Lengths,
    member_id: Texts,
    runs: Runs,
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
    let (assignment, anomalies) = nested.finish();
    let name = |row: &Row<Answer>| row.1.as_ref().ok().map(|answer| answer.assignor.name());
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, name)),
        ("assignment", assignment),
        ("anomalies", anomalies),
    ];
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

impl Columns {
    fn answer(&mut self, answer: Option<&Answer>) {
        let members = answer.map_or(&[][..], |answer| &answer.group.members);
        self.members.push(answer.map(|_| members.len()));
        let anomalies = answer.map_or(&[][..], |answer| &answer.assignment.anomalies);
        self.anomalies
            .push((!anomalies.is_empty()).then_some(anomalies.len()));
        let Some(answer) = answer else { return };
        let topic = |t: u32| answer.group.topics[t as usize].name;
        for (m, member) in members.iter().enumerate() {
            self.member_id.push(Some(member.member_id));
            let runs = answer.assignment.of(m as u32);
            let runs = runs.chunk_by(|a, b| a.topic == b.topic);
            self.runs.push(runs.map(|run| {
                let partitions = run.iter().map(|tp| tp.partition as i32);
                (Cow::Borrowed(topic(run[0].topic)), partitions)
            }));
        }
        for anomaly in anomalies {
            let partition = anomaly.partition;
            self.anomaly_kind.push(Some(anomaly.kind.name()));
            self.anomaly_topic.push(Some(topic(partition.topic)));
            self.anomaly_partition
                .append_value(partition.partition as i32);
            let member = anomaly.member.map(|m| members[m as usize].member_id);
            self.anomaly_member.push(member);
        }
    }

    fn finish(mut self) -> (ArrayRef, ArrayRef) {
        let members = structs(
            vec![
                ("member_id", self.member_id.finish()),
                ("partitions", self.runs.finish()),
            ],
            None,
        );
        let anomalies = structs(
            vec![
                ("kind", self.anomaly_kind.finish()),
                ("topic", self.anomaly_topic.finish()),
                ("partition", Arc::new(self.anomaly_partition.finish())),
                ("member_id", self.anomaly_member.finish()),
            ],
            None,
        );
        (self.members.list(members), self.anomalies.list(anomalies))
    }
}
