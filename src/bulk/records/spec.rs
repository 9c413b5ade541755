// SPDX-License-Identifier: Apache-2.0
//! Makes the spec of a group directly from its record. The result (a spec or an error) equals the
//! result for the group's row in the contract's columns.

use std::borrow::Cow;

use super::group::{Group, Inventory, Member, racks};
use crate::error::GroupError;
use crate::group::builder::{GroupBuilder, Name};
use crate::group::field_types::{Kind, PARTITION};
use crate::group::group_fields::COUNT;
use crate::group::model::{AsSent, Library, UserData};
use crate::group::spec::GroupSpec;

/// Makes the spec of a group. Its names, including repaired ones, are borrowed from `group` and
/// `inventory`.
pub fn spec<'s>(
    group: &'s Group,
    inventory: &'s Inventory,
    max_partitions: u64,
) -> Result<GroupSpec<'s>, GroupError> {
    let mut builder = GroupBuilder::new(group.group_id, group.assignor);
    for (i, (name, partitions)) in group.topics.iter().enumerate() {
        let path = || format!("topics[{i}].partitions");
        builder.topic(name, checked(&COUNT, *partitions, path)?);
        if let Some(partitions) = racks(inventory, name) {
            builder.topic_racks();
            for replicas in partitions {
                let racks = replicas.iter().flatten();
                builder.replica_racks(racks.map(|rack| Ok::<_, GroupError>(rack.as_str())))?;
            }
        }
    }
    builder.group.leader_library = group.leader_library.and_then(Library::by_name);
    for (i, member) in group.members.iter().enumerate() {
        let (instance, client_id) = (member.group_instance_id, Some(member.client_id));
        builder.member(member.member_id, instance, client_id);
        let subscription = group.subscription(member);
        let topics = subscription.topics.iter();
        builder.subscribe_to(topics.map(|topic| Ok::<_, GroupError>(Name::Text(topic))))?;
        own(&mut builder, i, member)?;
        let rack_id = subscription.rack_id.as_deref();
        builder.sent(Some(group.generation_id), rack_id, as_sent(member));
    }
    builder.finish(max_partitions)
}

fn as_sent(member: &Member) -> AsSent {
    let (version, user_data) = member.sent.unzip();
    let by_name = |name| UserData::by_name(name).expect("a name of `wire/sent_members.rs`");
    AsSent {
        subscription_version: version.map(|version| version as u8),
        user_data: user_data.flatten().map(by_name),
        ..AsSent::default()
    }
}

fn checked(kind: &Kind, number: i32, path: impl FnOnce() -> String) -> Result<u32, GroupError> {
    let checked = kind.checked(number.into());
    checked
        .map(|number| number as u32)
        .map_err(|problem| GroupError::new(path(), problem))
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
            Cow::Borrowed(name) => builder.owned_id(Name::Text(name)),
            Cow::Owned(name) => builder.owned_id(Name::Text(repaired(member, &name))),
        };
        if last != Some(topic) {
            (runs, in_run, last) = (runs + 1, 0, Some(topic));
        }
        for partition in entry.partitions() {
            let run = runs - 1;
            let path = || format!("members[{i}].owned_partitions[{run}].partitions[{in_run}]");
            builder.own(topic, checked(&PARTITION, partition, path)?);
            in_run += 1;
        }
    }
    Ok(())
}

/// Returns the member's repaired copy of a name whose bytes are not UTF-8.
fn repaired<'s>(member: &'s Member, name: &str) -> &'s str {
    let found = member.repaired.iter().find(|one| *one == name);
    found.expect("repaired when the record was read")
}
