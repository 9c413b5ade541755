// SPDX-License-Identifier: Apache-2.0
//! Writes groups that were read from records as columns, in the order that Spark expects.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};

use super::{Group, Inventory, Row, racks};
use crate::bulk::nested::{Lengths, Runs, batch, numbers, structs, texts};

#[derive(Default)]
struct Topics {
    ends: Lengths,
    name: StringBuilder,
    partitions: Int32Builder,
    racks: Lengths,
    replicas: Lengths,
    rack: StringBuilder,
}

#[derive(Default)]
struct Members {
    ends: Lengths,
    member_id: StringBuilder,
    group_instance_id: StringBuilder,
    client_id: StringBuilder,
    client_host: StringBuilder,
    topics: Lengths,
    topic: StringBuilder,
    owned: Runs,
    generation_id: Int32Builder,
    rack_id: StringBuilder,
    subscription_version: Int32Builder,
    user_data: StringBuilder,
}

fn group_of<'r, 'a>(row: &'r Row<'a>) -> Option<&'r Group<'a>> {
    row.1.as_ref().ok()
}

pub fn write(rows: &[Row], inventory: &Inventory) -> RecordBatch {
    let (mut topics, mut members) = (Topics::default(), Members::default());
    for group in rows.iter().map(group_of) {
        topics.push(group, inventory);
        members.push(group);
    }
    let generations = numbers::<Int32Type, _>(rows, |row| Some(group_of(row)?.generation_id));
    batch(vec![
        ("kind", texts(rows, |row| Some(group_of(row)?.kind))),
        ("state", texts(rows, |row| Some(group_of(row)?.state))),
        ("group_id", texts(rows, |row| row.0)),
        ("generation_id", Arc::new(generations)),
        ("assignor", texts(rows, |row| group_of(row)?.assignor)),
        (
            "leader_library",
            texts(rows, |row| group_of(row)?.leader_library),
        ),
        ("topics", topics.finish()),
        ("members", members.finish()),
        ("error", texts(rows, |row| row.1.as_ref().err())),
    ])
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
