// SPDX-License-Identifier: Apache-2.0
//! Writes groups that were read from records as columns, in the order in which Spark takes them.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};

use super::{Group, Inventory, Row, racks};
use crate::bulk::nested::{Ends, Runs, batch, structs};

#[derive(Default)]
pub struct Columns {
    kind: StringBuilder,
    state: StringBuilder,
    group_id: StringBuilder,
    generation_id: Int32Builder,
    assignor: StringBuilder,
    leader_library: StringBuilder,
    error: StringBuilder,
    topics: Topics,
    members: Members,
}

#[derive(Default)]
struct Topics {
    ends: Ends,
    name: StringBuilder,
    partitions: Int32Builder,
    racks: Ends,
    replicas: Ends,
    rack: StringBuilder,
}

#[derive(Default)]
struct Members {
    ends: Ends,
    member_id: StringBuilder,
    group_instance_id: StringBuilder,
    client_id: StringBuilder,
    client_host: StringBuilder,
    topics: Ends,
    topic: StringBuilder,
    owned: Runs,
    generation_id: Int32Builder,
    rack_id: StringBuilder,
    subscription_version: Int32Builder,
    user_data: StringBuilder,
}

impl Columns {
    pub fn push(&mut self, (group_id, group): Row, inventory: &Inventory) {
        self.group_id.append_option(group_id);
        self.error.append_option(group.as_ref().err());
        self.group(group.as_ref().ok(), inventory);
    }

    fn group(&mut self, group: Option<&Group>, inventory: &Inventory) {
        self.kind.append_option(group.map(|group| group.kind));
        self.state.append_option(group.map(|group| group.state));
        self.generation_id
            .append_option(group.map(|group| group.generation_id));
        self.assignor
            .append_option(group.and_then(|group| group.assignor));
        self.leader_library
            .append_option(group.and_then(|group| group.leader_library));
        self.topics.push(group, inventory);
        self.members.push(group);
    }

    pub fn finish(mut self) -> RecordBatch {
        batch(vec![
            ("kind", Arc::new(self.kind.finish())),
            ("state", Arc::new(self.state.finish())),
            ("group_id", Arc::new(self.group_id.finish())),
            ("generation_id", Arc::new(self.generation_id.finish())),
            ("assignor", Arc::new(self.assignor.finish())),
            ("leader_library", Arc::new(self.leader_library.finish())),
            ("topics", self.topics.finish()),
            ("members", self.members.finish()),
            ("error", Arc::new(self.error.finish())),
        ])
    }
}

impl Topics {
    fn push(&mut self, group: Option<&Group>, inventory: &Inventory) {
        self.ends.push(group.map(|group| group.topics.len()));
        for (name, partitions) in group.map_or(&[][..], |group| &group.topics) {
            self.name.append_value(name);
            self.partitions.append_value(*partitions);
            let racks = racks(inventory, name);
            self.racks.push(racks.map(<[_]>::len));
            for replicas in racks.unwrap_or_default() {
                self.replicas.push(Some(replicas.len()));
                self.rack.extend(replicas.iter().map(Option::as_deref));
            }
        }
    }

    fn finish(mut self) -> ArrayRef {
        let replicas = self.replicas.list(Arc::new(self.rack.finish()));
        let topics = structs(
            vec![
                ("name", Arc::new(self.name.finish())),
                ("partitions", Arc::new(self.partitions.finish())),
                ("racks", self.racks.list(replicas)),
            ],
            None,
        );
        self.ends.list(topics)
    }
}

impl Members {
    fn push(&mut self, group: Option<&Group>) {
        self.ends.push(group.map(|group| group.members.len()));
        let Some(group) = group else { return };
        for member in &group.members {
            let subscription = &member.subscription;
            self.member_id.append_value(member.member_id);
            self.group_instance_id
                .append_option(member.group_instance_id);
            self.client_id.append_value(member.client_id);
            self.client_host.append_value(member.client_host);
            self.topics.push(Some(subscription.topics.len()));
            for topic in &subscription.topics {
                self.topic.append_value(topic);
            }
            let entries = member.held.partitions.iter();
            self.owned
                .push(entries.map(|entry| (&*entry.topic, entry.partitions())));
            self.generation_id.append_value(group.generation_id);
            self.rack_id.append_option(subscription.rack_id.as_deref());
            let version = member.sent.map(|(version, _)| i32::from(version));
            self.subscription_version.append_option(version);
            self.user_data
                .append_option(member.sent.and_then(|(_, user_data)| user_data));
        }
    }

    fn finish(mut self) -> ArrayRef {
        let version = self.subscription_version.finish();
        let instance = self.group_instance_id.finish();
        let members = structs(
            vec![
                ("member_id", Arc::new(self.member_id.finish())),
                ("group_instance_id", Arc::new(instance)),
                ("client_id", Arc::new(self.client_id.finish())),
                ("client_host", Arc::new(self.client_host.finish())),
                ("topics", self.topics.list(Arc::new(self.topic.finish()))),
                ("owned_partitions", self.owned.finish()),
                ("generation_id", Arc::new(self.generation_id.finish())),
                ("rack_id", Arc::new(self.rack_id.finish())),
                ("subscription_version", Arc::new(version)),
                ("user_data", Arc::new(self.user_data.finish())),
            ],
            None,
        );
        self.ends.list(members)
    }
}
