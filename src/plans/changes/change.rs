// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/change.py`: the kinds of changes, and how each edits a group.

use super::assignor;
use super::bounces;
use super::draft::{Draft, DraftMember};
use super::edits::{Follows, error, find_member};
use super::made_up::MadeUp;
use super::members::{self, AddMembers};
use super::topics;
use crate::error::GroupError;
use crate::group::model::quoted;

/// A change to a group. A member is named by its member_id, its group_instance_id, or the short
/// name that reports show.
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
        away_ms: Option<u64>,
    },
}

impl Change {
    /// Edits the group, one event after another. After each event, `then` is called with the group,
    /// the rebalance that follows, and the cause (None if the cause is the change itself).
    pub fn play<'a>(
        &self,
        group: &mut Draft<'a>,
        ids: &mut MadeUp,
        mut then: impl FnMut(&mut Draft<'a>, Follows, Option<String>) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        let follows = match self {
            Self::AddMembers(added) => added.join(group, ids)?,
            Self::RemoveLast(count) => {
                let members = group.members.len();
                let count = *count as usize;
                if count > members && members > 1 {
                    let problem = format!("{count} is not a number of members from 1 to {members}");
                    return Err(error(problem));
                }
                members::remove(group, |m, _| m >= members.saturating_sub(count))?
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
                topics::add_partitions(group, topic, *partitions, ids)?
            }
            Self::AddTopics(topics) => topics::add_topics(group, topics)?,
            Self::RemoveTopics(topics) => topics::remove_topics(group, topics)?,
            Self::Resubscribe { topics, member } => {
                topics::resubscribe(group, topics, member.as_deref())?
            }
            Self::SwitchAssignor(name) => return assignor::switch(group, ids, name, then),
            Self::BounceMembers {
                member,
                is_static,
                away_ms,
            } => {
                let member = member.as_deref();
                return bounces::bounce(group, ids, member, *is_static, *away_ms, then);
            }
        };
        then(group, follows, None)
    }
}

/// Returns the change with made-up names replaced by those of the draw `ids`. (A draw is one choice
/// of made-up ids; a change names members by the ids of draw 0, the plan itself.)
pub fn renamed(change: &Change, ids: &MadeUp) -> Change {
    let mut change = change.clone();
    let named = match &mut change {
        Change::AddMembers(added) => added.like.as_mut(),
        Change::RemoveMember(member) => Some(member),
        Change::Resubscribe { member, .. } | Change::BounceMembers { member, .. } => {
            member.as_mut()
        }
        Change::RemoveClient(client_id) => {
            if let Some(alias) = ids.client_aliases.get(client_id) {
                client_id.clone_from(alias);
            }
            None
        }
        _ => None,
    };
    if let Some(name) = named
        && let Some(alias) = ids.aliases.get(name)
    {
        name.clone_from(alias);
    }
    change
}
