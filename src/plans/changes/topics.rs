// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/topics.py`: changes to topics, and to subscriptions.

use rustc_hash::FxHashSet;

use super::draft::{Draft, DraftMember};
use super::edits::{Follows, error, find_member, find_topic, guard};
use super::made_up::MadeUp;
use crate::error::GroupError;
use crate::group::model::{TopicId, quoted};
use crate::plans::clients::{Client, clients_for};

pub fn add_partitions(
    group: &mut Draft,
    name: &str,
    partitions: u32,
    ids: &mut MadeUp,
) -> Result<Follows, GroupError> {
    let topic = find_topic(group, name)?;
    let now = group.topics[topic as usize].partitions;
    if partitions <= now {
        let s = if now == 1 { "" } else { "s" };
        return Err(error(format!(
            "{} has {now} partition{s} already; \
             give the number that it shall have in all, Kafka never takes any away",
            quoted(name)
        )));
    }
    guard(group, u64::from(partitions - now))?;
    group.grow(topic, partitions, ids);
    Ok(if_any(are_read(group, &[topic])))
}

fn if_any(rebalances: bool) -> Follows {
    if rebalances {
        Follows::Rebalance
    } else {
        Follows::Nothing
    }
}

fn are_read(group: &Draft, topics: &[TopicId]) -> bool {
    let mut subscribed = group.members.iter().flat_map(|member| &member.topics);
    subscribed.any(|topic| topics.contains(topic))
}

pub fn add_topics(group: &mut Draft, topics: &[(String, u32)]) -> Result<Follows, GroupError> {
    let mut known: FxHashSet<&str> = FxHashSet::default();
    for (name, _) in topics {
        if group.topic(name).is_some() || !known.insert(name) {
            return Err(error(format!("{} is there already", quoted(name))));
        }
    }
    guard(
        group,
        topics.iter().map(|&(_, count)| u64::from(count)).sum(),
    )?;
    for (name, count) in topics {
        let topic = group.create(name, *count);
        for member in &mut group.members {
            if !member.topics.contains(&topic) {
                member.topics.push(topic);
            }
        }
    }
    Ok(Follows::Rebalance)
}

pub fn remove_topics(group: &mut Draft, topics: &[String]) -> Result<Follows, GroupError> {
    let gone: Result<Vec<u32>, GroupError> =
        topics.iter().map(|name| find_topic(group, name)).collect();
    let gone = gone?;
    let follows = if_any(are_read(group, &gone));
    for topic in gone {
        group.delete(topic);
        for member in &mut group.members {
            member.topics.retain(|&other| other != topic);
        }
    }
    Ok(follows)
}

pub fn resubscribe(
    group: &mut Draft,
    topics: &[String],
    member: Option<&str>,
) -> Result<Follows, GroupError> {
    let topics: Result<Vec<u32>, GroupError> =
        topics.iter().map(|name| find_topic(group, name)).collect();
    let topics = topics?;
    let who = member.map(|name| find_member(group, name)).transpose()?;
    let new: FxHashSet<TopicId> = topics.iter().copied().collect();
    let is_asked = |m: usize| who.is_none_or(|who| who == m);
    let joins = |member: &DraftMember| {
        let old: FxHashSet<TopicId> = member.topics.iter().copied().collect();
        old != new || joins_anyway(group, member)
    };
    let mut asked = (0..).zip(&group.members).filter(|&(m, _)| is_asked(m));
    let follows = if_any(asked.any(|(_, member)| joins(member)));
    for (m, member) in group.members.iter_mut().enumerate() {
        if is_asked(m) {
            member.topics.clone_from(&topics);
        }
    }
    Ok(follows)
}

/// Whether the member joins again although its new subscription equals its present one.
fn joins_anyway(group: &Draft, member: &DraftMember) -> bool {
    let (id, instance) = (
        member.client_id.as_deref(),
        member.group_instance_id.as_deref(),
    );
    let clients = clients_for(id, instance, member.as_sent.library, group.group_id);
    let is_eager = group.is_eager || !group.assignor.withholds();
    (clients.contains(&Client::Aiokafka) && !clients.contains(&Client::Java))
        || (clients == [Client::Librdkafka] && is_eager)
}
