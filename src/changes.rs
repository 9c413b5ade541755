//! Mirror of `changes/kinds.py`: what can happen to a group.

pub mod draft;
pub mod made_up;
mod text;

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::{MAX_PARTITIONS, quoted};
use draft::{Draft, DraftMember};
use made_up::{MadeUp, next_instance_id, prefix_of};

const MOST_NEW_MEMBERS: u32 = 100_000;

/// Members are named by member_id or group_instance_id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    AddMembers {
        count: u32,
        like: Option<String>,
        rack: Option<String>,
    },
    RemoveLast(u32),
    RemoveMember(String),
    RemoveRack(String),
    RemoveClient(String),
    AddPartitions {
        topic: String,
        partitions: u32,
    },
    AddTopics(Vec<(String, u32)>),
    RemoveTopics(Vec<String>),
    Resubscribe {
        topics: Vec<String>,
        member: Option<String>,
    },
    SwitchAssignor(String),
    BounceMembers {
        member: Option<String>,
        is_static: Option<bool>,
    },
}

/// What follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    Rebalance,
    /// One in which the members have given up everything, and forgotten what they owned.
    StartingOver,
    Nothing,
}

impl Change {
    /// Edits the group, one event after another; `then` is called after each.
    pub fn play<'a>(
        &self,
        group: &mut Draft<'a>,
        ids: &mut MadeUp,
        mut then: impl FnMut(&mut Draft<'a>, Follows) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        let follows = match self {
            Self::AddMembers { count, like, rack } => {
                add_members(group, ids, *count, like.as_deref(), rack.as_deref())?
            }
            Self::RemoveLast(count) => {
                let members = group.members.len();
                let count = *count as usize;
                if !(1..=members).contains(&count) {
                    let problem = format!("{count} is not a number of members from 1 to {members}");
                    return Err(error(problem));
                }
                remove(group, |m, _| m >= members - count)?
            }
            Self::RemoveMember(name) => {
                let gone = find_member(group, name)?;
                remove(group, |m, _| m == gone)?
            }
            Self::RemoveRack(name) => {
                let rack = group.rack_names.iter().position(|rack| rack == name);
                let rack = rack.map(|rack| rack as u32);
                if rack.is_none() || !group.members.iter().any(|m| m.rack == rack) {
                    return Err(error(format!("no member is in rack {}", quoted(name))));
                }
                remove(group, |_, member| member.rack == rack)?
            }
            Self::RemoveClient(client_id) => {
                let is_its = |member: &DraftMember| member.client_id == Some(client_id);
                if !group.members.iter().any(is_its) {
                    let problem = format!("no member has the client_id {}", quoted(client_id));
                    return Err(error(problem));
                }
                remove(group, |_, member| is_its(member))?
            }
            Self::AddPartitions { topic, partitions } => add_partitions(group, topic, *partitions)?,
            Self::AddTopics(topics) => add_topics(group, topics)?,
            Self::RemoveTopics(topics) => remove_topics(group, topics)?,
            Self::Resubscribe { topics, member } => resubscribe(group, topics, member.as_deref())?,
            Self::SwitchAssignor(name) => switch_assignor(group, name)?,
            Self::BounceMembers { member, is_static } => {
                return bounce(group, ids, member.as_deref(), *is_static, then);
            }
        };
        then(group, follows)
    }
}

fn add_members(
    group: &mut Draft,
    ids: &mut MadeUp,
    count: u32,
    like: Option<&str>,
    rack: Option<&str>,
) -> Result<Follows, GroupError> {
    if !(1..=MOST_NEW_MEMBERS).contains(&count) {
        let problem = format!("{count} is not a number of members from 1 to {MOST_NEW_MEMBERS}");
        return Err(error(problem));
    }
    let model = match like {
        Some(name) => find_member(group, name)?,
        None => group.members.len() - 1,
    };
    let mut model = group.members[model].clone();
    if let Some(name) = rack {
        model.rack = group.rack(name);
    }
    model.owned.clear();
    model.generation_id = None;
    model.as_sent.user_data_generation_id = None;
    model.origin = None;
    let instances = group.members.iter();
    let mut instances: FxHashSet<String> = instances
        .filter_map(|member| member.group_instance_id.as_deref().map(Into::into))
        .collect();
    let mut joined: Vec<DraftMember> = Vec::with_capacity(count as usize);
    // A made-up id never comes twice, so that the new ones need not be looked at.
    let taken = group.member_ids();
    for _ in 0..count {
        let mut member = model.clone();
        if let Some(instance) = &model.group_instance_id {
            let instance = next_instance_id(instance, &instances);
            instances.insert(instance.clone());
            member.group_instance_id = Some(Cow::Owned(instance));
        }
        let prefix = match &member.group_instance_id {
            Some(instance) if !instance.is_empty() => instance,
            _ => prefix_of(model.client_id, &model.member_id),
        };
        member.member_id = Cow::Owned(ids.member_id(prefix, &taken));
        joined.push(member);
    }
    group.members.extend(joined);
    Ok(Follows::Rebalance)
}

fn remove(
    group: &mut Draft,
    is_gone: impl Fn(usize, &DraftMember) -> bool,
) -> Result<Follows, GroupError> {
    let gone: Vec<bool> = (0..)
        .zip(&group.members)
        .map(|(m, one)| is_gone(m, one))
        .collect();
    if gone.iter().all(|&gone| gone) {
        let problem = "no member would be left, and a group without members has no assignment";
        return Err(error(problem.into()));
    }
    let mut gone = gone.into_iter();
    group.members.retain(|_| gone.next() == Some(false));
    Ok(Follows::Rebalance)
}

fn add_partitions(group: &mut Draft, name: &str, partitions: u32) -> Result<Follows, GroupError> {
    let topic = find_topic(group, name)?;
    let now = group.topics[topic as usize].partitions;
    if partitions <= now {
        return Err(error(format!(
            "{} has {now} partitions already; \
             give the number that it shall have in all, Kafka never takes any away",
            quoted(name)
        )));
    }
    guard(group, u64::from(partitions - now))?;
    group.grow(topic, partitions);
    Ok(Follows::Rebalance)
}

fn add_topics(group: &mut Draft, topics: &[(String, u32)]) -> Result<Follows, GroupError> {
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

fn remove_topics(group: &mut Draft, topics: &[String]) -> Result<Follows, GroupError> {
    let gone: Result<Vec<u32>, GroupError> =
        topics.iter().map(|name| find_topic(group, name)).collect();
    for topic in gone? {
        group.delete(topic);
        for member in &mut group.members {
            member.topics.retain(|&other| other != topic);
        }
    }
    Ok(Follows::Rebalance)
}

fn resubscribe(
    group: &mut Draft,
    topics: &[String],
    member: Option<&str>,
) -> Result<Follows, GroupError> {
    let topics: Result<Vec<u32>, GroupError> =
        topics.iter().map(|name| find_topic(group, name)).collect();
    let topics = topics?;
    let who = member.map(|name| find_member(group, name)).transpose()?;
    for (m, member) in group.members.iter_mut().enumerate() {
        if who.is_none_or(|who| who == m) {
            member.topics.clone_from(&topics);
        }
    }
    Ok(Follows::Rebalance)
}

fn switch_assignor(group: &mut Draft, name: &str) -> Result<Follows, GroupError> {
    let assignor = Assignor::by_name(name).map_err(|unknown| error(unknown.problem))?;
    if assignor == group.assignor {
        let problem = format!("{} is the group's assignor already", quoted(name));
        return Err(error(problem));
    }
    group.assignor = assignor;
    Ok(Follows::StartingOver)
}

fn bounce<'a>(
    group: &mut Draft<'a>,
    ids: &mut MadeUp,
    member: Option<&str>,
    is_static: Option<bool>,
    mut then: impl FnMut(&mut Draft<'a>, Follows) -> Result<(), GroupError>,
) -> Result<(), GroupError> {
    let bounced: Vec<Cow<'a, str>> = match member {
        Some(name) => vec![group.members[find_member(group, name)?].member_id.clone()],
        None => group.members.iter().map(|m| m.member_id.clone()).collect(),
    };
    for member_id in bounced {
        let place = group.members.iter().position(|m| m.member_id == member_id);
        let Some(m) = place else { continue };
        let instance = group.members[m].group_instance_id.clone();
        if is_static.unwrap_or(instance.is_some()) {
            // Back in time: a new member id in its old place (KIP-345).
            if let Some(instance) = instance {
                let member_id = ids.member_id(&instance, &group.member_ids());
                group.members[m].member_id = Cow::Owned(member_id);
            }
            then(group, Follows::Nothing)?;
            continue;
        }
        let mut back = group.members.remove(m);
        // With nobody there in between, nobody is there to rebalance.
        if !group.members.is_empty() {
            then(group, Follows::Rebalance)?;
        }
        let prefix = match &back.group_instance_id {
            Some(instance) if !instance.is_empty() => instance,
            _ => prefix_of(back.client_id, &back.member_id),
        };
        back.member_id = Cow::Owned(ids.member_id(prefix, &group.member_ids()));
        back.owned.clear();
        back.generation_id = None;
        back.as_sent.user_data_generation_id = None;
        group.members.push(back);
        then(group, Follows::Rebalance)?;
    }
    Ok(())
}

/// By member_id, else by group_instance_id.
fn find_member(group: &Draft, name: &str) -> Result<usize, GroupError> {
    let members = &group.members;
    let by_id = members.iter().position(|member| member.member_id == name);
    let found = by_id.or_else(|| {
        members
            .iter()
            .position(|member| member.group_instance_id.as_deref() == Some(name))
    });
    found.ok_or_else(|| {
        let name = quoted(name);
        error(format!(
            "no member has the member_id or group_instance_id {name}"
        ))
    })
}

fn find_topic(group: &Draft, name: &str) -> Result<u32, GroupError> {
    let found = group.topic(name);
    found.ok_or_else(|| error(format!("there is no topic {}", quoted(name))))
}

/// A group that was let in above the usual limit may stay as it is.
fn guard(group: &Draft, more: u64) -> Result<(), GroupError> {
    let limit = MAX_PARTITIONS.max(group.total());
    let total = group.total() + more;
    if total > limit {
        let problem = format!("{total} partitions in all, more than the limit of {limit}");
        return Err(error(problem));
    }
    Ok(())
}

fn error(problem: String) -> GroupError {
    GroupError::new("change", problem)
}
