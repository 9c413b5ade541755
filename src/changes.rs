//! Mirror of `changes/kinds.py`: what can happen to a group.

pub mod draft;
pub mod made_up;
mod members;
mod text;
mod topics;

use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::{MAX_PARTITIONS, quoted};
use draft::{Draft, DraftMember};
use made_up::MadeUp;
pub use members::AddMembers;

/// Members are named by member_id or group_instance_id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    AddMembers(AddMembers),
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
            Self::AddMembers(added) => added.join(group, ids)?,
            Self::RemoveLast(count) => {
                let members = group.members.len();
                let count = *count as usize;
                if !(1..=members).contains(&count) {
                    let problem = format!("{count} is not a number of members from 1 to {members}");
                    return Err(error(problem));
                }
                members::remove(group, |m, _| m >= members - count)?
            }
            Self::RemoveMember(name) => {
                let gone = find_member(group, name)?;
                members::remove(group, |m, _| m == gone)?
            }
            Self::RemoveRack(name) => members::lose_rack(group, name)?,
            Self::RemoveClient(client_id) => {
                let is_its = |member: &DraftMember| member.client_id.as_deref() == Some(client_id);
                if !group.members.iter().any(is_its) {
                    let problem = format!("no member has the client_id {}", quoted(client_id));
                    return Err(GroupError::not_affected(problem));
                }
                members::remove(group, |_, member| is_its(member))?
            }
            Self::AddPartitions { topic, partitions } => {
                topics::add_partitions(group, topic, *partitions)?
            }
            Self::AddTopics(topics) => topics::add_topics(group, topics)?,
            Self::RemoveTopics(topics) => topics::remove_topics(group, topics)?,
            Self::Resubscribe { topics, member } => {
                topics::resubscribe(group, topics, member.as_deref())?
            }
            Self::SwitchAssignor(name) => switch_assignor(group, name)?,
            Self::BounceMembers { member, is_static } => {
                return members::bounce(group, ids, member.as_deref(), *is_static, then);
            }
        };
        then(group, follows)
    }
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
        GroupError::not_affected(format!(
            "no member has the member_id or group_instance_id {name}"
        ))
    })
}

fn find_topic(group: &Draft, name: &str) -> Result<u32, GroupError> {
    let found = group.topic(name);
    found.ok_or_else(|| GroupError::not_affected(format!("there is no topic {}", quoted(name))))
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
