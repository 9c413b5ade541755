// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/edits.py`: look-ups, a limit and errors for all kinds of changes, and
//! the rebalance that follows a change.

use super::draft::Draft;
use super::made_up::is_short_name;
use crate::error::GroupError;
use crate::group::model::{MAX_PARTITIONS, quoted};

/// The rebalance that follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    Rebalance,
    /// A rebalance that begins after all members have revoked all partitions; they claim none.
    StartingOver,
    Nothing,
}

/// Finds a member by its member_id, else by its group_instance_id, else by the short name that
/// reports show. Returns an error if there is no such member, or more than one.
pub fn find_member(group: &Draft, name: &str) -> Result<usize, GroupError> {
    let members = &group.members;
    let by_id = members.iter().position(|member| member.member_id == name);
    let found = by_id.or_else(|| {
        members
            .iter()
            .position(|member| member.group_instance_id.as_deref() == Some(name))
    });
    if let Some(place) = found {
        return Ok(place);
    }
    let mut short = (0..members.len()).filter(|&i| is_short_name(name, &members[i].member_id));
    let first = short.next();
    let count = usize::from(first.is_some()) + short.count();
    let name = quoted(name);
    if count > 1 {
        let problem = format!("{name} is short for {count} members; give a whole member_id");
        return Err(error(problem));
    }
    first.ok_or_else(|| {
        GroupError::not_affected(format!(
            "no member has the member_id or group_instance_id {name}"
        ))
    })
}

pub fn find_topic(group: &Draft, name: &str) -> Result<u32, GroupError> {
    let found = group.topic(name);
    found
        .ok_or_else(|| GroupError::not_affected(format!("the group has no topic {}", quoted(name))))
}

/// Returns an error if `more` new partitions would exceed the limit: `MAX_PARTITIONS`, or the
/// group's present number of partitions if that is greater.
pub fn guard(group: &Draft, more: u64) -> Result<(), GroupError> {
    let limit = MAX_PARTITIONS.max(group.total());
    let total = group.total() + more;
    if total > limit {
        let problem = format!("{total} partitions in all, more than the limit of {limit}");
        return Err(error(problem));
    }
    Ok(())
}

pub fn error(problem: String) -> GroupError {
    GroupError::new("change", problem)
}
