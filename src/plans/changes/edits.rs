// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/edits.py`: what changes of every kind need, and what follows one.

use super::draft::Draft;
use crate::error::GroupError;
use crate::group::model::{MAX_PARTITIONS, quoted};

/// What follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    Rebalance,
    /// One in which the members have given up everything, and forgotten what they owned.
    StartingOver,
    Nothing,
}

/// By member_id, else by group_instance_id.
pub fn find_member(group: &Draft, name: &str) -> Result<usize, GroupError> {
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

pub fn find_topic(group: &Draft, name: &str) -> Result<u32, GroupError> {
    let found = group.topic(name);
    found.ok_or_else(|| GroupError::not_affected(format!("there is no topic {}", quoted(name))))
}

/// A group that was let in above the usual limit may stay as it is.
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
