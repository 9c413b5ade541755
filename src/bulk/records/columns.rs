// SPDX-License-Identifier: Apache-2.0
//! Writes the groups that records contain as columns, in the order that Spark expects.

use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::{ArrayRef, RecordBatch};

use super::group::{Group, Inventory, Records, Row, racks};
use crate::bulk::columns::SchemaError;
use crate::bulk::nested::{Lengths, Runs, Texts, batch, structs};

/// Makes one row for each record of a batch: a group, or an error.
///
/// Reads the columns `key` and `value`. Returns an error if one of them is missing or not binary.
pub fn groups(batch: &RecordBatch, inventory: &Inventory) -> Result<RecordBatch, SchemaError> {
    let records = Records::of(batch)?;
    let mut columns = Columns::default();
    for at in 0..batch.num_rows() {
        columns.push(&records.row(at, inventory), inventory);
    }
    Ok(columns.finish())
}

/// The columns of the output. Rows are added one at a time, so that the data of one row stays in
/// the CPU's cache.
#[derive(Default)]
struct Columns {
    kind: Texts,
    state: Texts,
    group_id: Texts,
    generation_id: Int32Builder,
    assignor: Texts,
    leader_library: Texts,
    topics: Topics,
    members: Members,
    error: Texts,
}

#[derive(Default)]
struct Topics {
    ends: Lengths,
    name: Texts,
    partitions: Int32Builder,
    racks: Lengths,
    replicas: Lengths,
    rack: Texts,
}

#[derive(Default)]
struct Members {
    ends: Lengths,
    member_id: Texts,
    group_instance_id: Texts,
    client_id: Texts,
    client_host: Texts,
    topics: Lengths,
    topic: Texts,
    owned: Runs,
    generation_id: Int32Builder,
    rack_id: Texts,
    subscription_version: Int32Builder,
    user_data: Texts,
}

impl Columns {
    fn push(&mut self, row: &Row, inventory: &Inventory) {
        let (group_id, read) = row;
        let group = read.as_ref().ok();
        self.kind.push(group.map(|group| group.kind));
        self.state.push(group.map(|group| group.state));
        self.group_id.push(*group_id);
        self.generation_id
            .append_option(group.map(|group| group.generation_id));
        self.assignor.push(group.and_then(|group| group.assignor));
        self.leader_library
            .push(group.and_then(|group| group.leader_library));
        self.topics.push(group, inventory);
        self.members.push(group);
        self.error.push(read.as_ref().err().map(String::as_str));
    }

    fn finish(mut self) -> RecordBatch {
        batch(vec![
            ("kind", self.kind.finish()),
            ("state", self.state.finish()),
            ("group_id", self.group_id.finish()),
            ("generation_id", Arc::new(self.generation_id.finish())),
            ("assignor", self.assignor.finish()),
            ("leader_library", self.leader_library.finish()),
            ("topics", self.topics.finish()),
            ("members", self.members.finish()),
            ("error", self.error.finish()),
        ])
    }
}

impl Topics {
    fn push(&mut self, group: Option<&Group>, inventory: &Inventory) {
        self.ends.push(group.map(|group| group.topics.len()));
        for (name, partitions) in group.map_or(&[][..], |group| &group.topics) {
            self.name.push(Some(name));
            self.partitions.append_value(*partitions);
            let racks = racks(inventory, name);
            self.racks.push(racks.map(<[_]>::len));
            for replicas in racks.unwrap_or_default() {
                self.replicas.push(Some(replicas.len()));
                for rack in replicas {
                    self.rack.push(rack.as_deref());
                }
            }
        }
    }

    fn finish(mut self) -> ArrayRef {
        let replicas = self.replicas.list(self.rack.finish());
        let topics = vec![
            ("name", self.name.finish()),
            ("partitions", Arc::new(self.partitions.finish()) as _),
            ("racks", self.racks.list(replicas)),
        ];
        self.ends.list(structs(topics, None))
    }
}

impl Members {
    fn push(&mut self, group: Option<&Group>) {
        self.ends.push(group.map(|group| group.members.len()));
        let Some(group) = group else { return };
        let mut last = None;
        for member in &group.members {
            let subscription = group.subscription(member);
            self.member_id.push(Some(member.member_id));
            self.group_instance_id.push(member.group_instance_id);
            self.client_id.push(Some(member.client_id));
            self.client_host.push(Some(member.client_host));
            self.topics.push(Some(subscription.topics.len()));
            if last == Some(member.subscription) {
                self.topic.repeat(subscription.topics.len());
            } else {
                let topics = subscription.topics.iter();
                topics.for_each(|topic| self.topic.push(Some(topic)));
            }
            last = Some(member.subscription);
            let entries = member.held.partitions.iter();
            self.owned
                .push(entries.map(|entry| (entry.topic(), entry.partitions())));
            self.generation_id.append_value(group.generation_id);
            self.rack_id.push(subscription.rack_id.as_deref());
            let version = member.sent.map(|(version, _)| i32::from(version));
            self.subscription_version.append_option(version);
            self.user_data
                .push(member.sent.and_then(|(_, user_data)| user_data));
        }
    }

    fn finish(mut self) -> ArrayRef {
        let version = self.subscription_version.finish();
        let members = vec![
            ("member_id", self.member_id.finish()),
            ("group_instance_id", self.group_instance_id.finish()),
            ("client_id", self.client_id.finish()),
            ("client_host", self.client_host.finish()),
            ("topics", self.topics.list(self.topic.finish())),
            ("owned_partitions", self.owned.finish()),
            ("generation_id", Arc::new(self.generation_id.finish()) as _),
            ("rack_id", self.rack_id.finish()),
            ("subscription_version", Arc::new(version)),
            ("user_data", self.user_data.finish()),
        ];
        self.ends.list(structs(members, None))
    }
}
