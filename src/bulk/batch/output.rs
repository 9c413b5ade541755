// SPDX-License-Identifier: Apache-2.0
//! The answer's columns. Spark's Arrow reader takes columns by position. They must be nullable, and
//! of the types utf8, list and int32.
//!
//! ```text
//! group_id | assignor | assignment: [{member_id, partitions: [{topic, partitions: [int]}]}]
//! | anomalies: [{kind, topic, partition, member_id}] | error | error_kind
//! ```

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Fields, Schema};

use super::{Answer, Row};
use crate::bulk::nested::{Ends, fields, list_of, structs};

fn run_fields() -> Fields {
    fields([
        ("topic", DataType::Utf8),
        ("partitions", list_of(DataType::Int32)),
    ])
}

fn member_fields() -> Fields {
    let runs = list_of(DataType::Struct(run_fields()));
    fields([("member_id", DataType::Utf8), ("partitions", runs)])
}

fn anomaly_fields() -> Fields {
    fields([
        ("kind", DataType::Utf8),
        ("topic", DataType::Utf8),
        ("partition", DataType::Int32),
        ("member_id", DataType::Utf8),
    ])
}

pub fn schema() -> Schema {
    Schema::new(fields([
        ("group_id", DataType::Utf8),
        ("assignor", DataType::Utf8),
        ("assignment", list_of(DataType::Struct(member_fields()))),
        ("anomalies", list_of(DataType::Struct(anomaly_fields()))),
        ("error", DataType::Utf8),
        ("error_kind", DataType::Utf8),
    ]))
}

struct Columns {
    group_id: StringBuilder,
    assignor: StringBuilder,
    error: StringBuilder,
    error_kind: StringBuilder,
    members: Ends,
    member_id: StringBuilder,
    runs: Ends,
    topic: StringBuilder,
    partitions: Ends,
    partition: Int32Builder,
    is_answer: NullBufferBuilder,
    anomalies: Ends,
    has_anomalies: NullBufferBuilder,
    anomaly_kind: StringBuilder,
    anomaly_topic: StringBuilder,
    anomaly_partition: Int32Builder,
    anomaly_member: StringBuilder,
}

pub fn write(rows: &[Row]) -> RecordBatch {
    let mut columns = Columns {
        group_id: StringBuilder::new(),
        assignor: StringBuilder::new(),
        error: StringBuilder::new(),
        error_kind: StringBuilder::new(),
        members: Ends::new(),
        member_id: StringBuilder::new(),
        runs: Ends::new(),
        topic: StringBuilder::new(),
        partitions: Ends::new(),
        partition: Int32Builder::new(),
        is_answer: NullBufferBuilder::new(rows.len()),
        anomalies: Ends::new(),
        has_anomalies: NullBufferBuilder::new(rows.len()),
        anomaly_kind: StringBuilder::new(),
        anomaly_topic: StringBuilder::new(),
        anomaly_partition: Int32Builder::new(),
        anomaly_member: StringBuilder::new(),
    };
    for (group_id, answer) in rows {
        columns.group_id.append_option(*group_id);
        columns.is_answer.append(answer.is_ok());
        match answer {
            Ok(answer) => {
                columns.error.append_null();
                columns.error_kind.append_null();
                columns.assignor.append_value(answer.assignor.name());
                columns.answer(answer);
                columns.anomalies(answer);
            }
            Err(error) => {
                columns.error.append_value(error.to_string());
                columns.error_kind.append_value(error.kind());
                columns.assignor.append_null();
                columns.members.push(0);
                columns.anomalies.push(0);
                columns.has_anomalies.append(false);
            }
        }
    }
    columns.finish()
}

impl Columns {
    fn answer(&mut self, answer: &Answer) {
        for (m, member) in answer.group.members.iter().enumerate() {
            self.member_id.append_value(member.member_id);
            // One entry for each run, to keep the order, because a topic may have several runs.
            let partitions = answer.assignment.of(m as u32);
            let mut runs = 0;
            for run in partitions.chunk_by(|a, b| a.topic == b.topic) {
                let topic = &answer.group.topics[run[0].topic as usize];
                self.topic.append_value(topic.name);
                self.partitions.push(run.len());
                for tp in run {
                    self.partition.append_value(tp.partition as i32);
                }
                runs += 1;
            }
            self.runs.push(runs);
        }
        self.members.push(answer.group.members.len());
    }

    fn anomalies(&mut self, answer: &Answer) {
        let anomalies = &answer.assignment.anomalies;
        self.anomalies.push(anomalies.len());
        self.has_anomalies.append(!anomalies.is_empty());
        for anomaly in anomalies {
            let topic = &answer.group.topics[anomaly.partition.topic as usize];
            let member = anomaly
                .member
                .map(|m| answer.group.members[m as usize].member_id);
            self.anomaly_kind.append_value(anomaly.kind.name());
            self.anomaly_topic.append_value(topic.name);
            self.anomaly_partition
                .append_value(anomaly.partition.partition as i32);
            self.anomaly_member.append_option(member);
        }
    }

    fn finish(mut self) -> RecordBatch {
        let partition: ArrayRef = Arc::new(self.partition.finish());
        let partitions = self.partitions.list(DataType::Int32, partition, None);
        let runs = structs(
            run_fields(),
            [Arc::new(self.topic.finish()), Arc::new(partitions)],
        );
        let runs = self.runs.list(DataType::Struct(run_fields()), runs, None);
        let members = structs(
            member_fields(),
            [Arc::new(self.member_id.finish()), Arc::new(runs)],
        );
        let is_answer = Some(self.is_answer);
        let assignment = self
            .members
            .list(DataType::Struct(member_fields()), members, is_answer);
        let anomalies = structs(
            anomaly_fields(),
            [
                Arc::new(self.anomaly_kind.finish()),
                Arc::new(self.anomaly_topic.finish()),
                Arc::new(self.anomaly_partition.finish()),
                Arc::new(self.anomaly_member.finish()),
            ],
        );
        let has_anomalies = Some(self.has_anomalies);
        let anomalies =
            self.anomalies
                .list(DataType::Struct(anomaly_fields()), anomalies, has_anomalies);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.group_id.finish()),
            Arc::new(self.assignor.finish()),
            Arc::new(assignment),
            Arc::new(anomalies),
            Arc::new(self.error.finish()),
            Arc::new(self.error_kind.finish()),
        ];
        RecordBatch::try_new(Arc::new(schema()), columns).expect("columns are of the schema")
    }
}
