// SPDX-License-Identifier: Apache-2.0
//! Makes the spec of a group directly from its record. The result (a spec or an error) equals that
//! of the group's row in the contract's columns.

use std::borrow::Cow;

use super::{Group, Inventory, Member, racks};
use crate::bulk::batch::cells::count;
use crate::error::GroupError;
use crate::group::builder::{GroupBuilder, MemberFields};
use crate::group::model::{AsSent, UserData};
use crate::group::spec::GroupSpec;

/// Makes the spec of a group. Its names, also those that were repaired, are borrowed from `group`
/// and `inventory`.
pub fn spec<'s>(
    group: &'s Group,
    inventory: &'s Inventory,
    max_partitions: u64,
) -> Result<GroupSpec<'s>, GroupError> {
    let mut builder = GroupBuilder::new(group.group_id, group.assignor);
    for (i, (name, partitions)) in group.topics.iter().enumerate() {
        let path = || format!("topics[{i}].partitions");
        builder.topic(name, count((*partitions).into(), "count", path)?);
        if let Some(partitions) = racks(inventory, name) {
            builder.topic_racks();
            for replicas in partitions {
                builder.replica_racks(replicas.iter().flatten().map(String::as_str));
            }
        }
    }
    builder.leader_library(group.leader_library);
    for (i, member) in group.members.iter().enumerate() {
        builder.member(fields(group, member));
        for topic in &group.subscription(member).topics {
            let topic = builder.subscribed_id(topic);
            builder.subscribe(topic);
        }
        own(&mut builder, i, member)?;
    }
    builder.finish(max_partitions)
}

fn fields<'s>(group: &'s Group, member: &'s Member) -> MemberFields<'s> {
    let (version, user_data) = member.sent.unzip();
    let by_name = |name| UserData::by_name(name).expect("a name of `wire/sent_members.rs`");
    MemberFields {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        client_id: Some(member.client_id),
        rack_id: group.subscription(member).rack_id.as_deref(),
        generation_id: Some(group.generation_id),
        as_sent: AsSent {
            subscription_version: version.map(|version| version as u8),
            user_data: user_data.flatten().map(by_name),
            ..AsSent::default()
        },
    }
}

/// Adds the partitions that a member holds. The path in an error counts runs, as a row lists them:
/// neighbouring entries of one topic are one run, and entries without partitions do not count.
fn own<'s>(builder: &mut GroupBuilder<'s>, i: usize, member: &'s Member) -> Result<(), GroupError> {
    let (mut runs, mut in_run, mut last) = (0, 0, None);
    for entry in member.held.partitions.iter() {
        if entry.partitions().len() == 0 {
            continue;
        }
        let topic = match entry.topic() {
            Cow::Borrowed(name) => builder.owned_id(name),
            Cow::Owned(name) => builder.owned_id(repaired(member, &name)),
        };
        if last != Some(topic) {
            (runs, in_run, last) = (runs + 1, 0, Some(topic));
        }
        for partition in entry.partitions() {
            let run = runs - 1;
            let path = || format!("members[{i}].owned_partitions[{run}].partitions[{in_run}]");
            builder.own(topic, count(partition.into(), "partition", path)?);
            in_run += 1;
        }
    }
    Ok(())
}

/// The member's repaired copy of a name whose bytes are not UTF-8.
fn repaired<'s>(member: &'s Member, name: &str) -> &'s str {
    let found = member.repaired.iter().find(|one| *one == name);
    found.expect("repaired when the record was read")
}
