// SPDX-License-Identifier: Apache-2.0
//! Mirror of `consumer/balanced.py`: the assignor `balanced` as a plug-in of the brokers.

use super::targets::Ids;
use crate::assignors::balance::balanced::{self, OBJECTIVE};
use crate::error::GroupError;
use crate::group::model::{MemberId, TopicId};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "consumer/balanced";

pub fn assign(group: &GroupSpec) -> Result<Assignment, GroupError> {
    // 1. Topics are in the order of their ids, and present targets have no generation.
    let ids = Ids::of(group, NAME)?;
    let mut topics: Vec<TopicId> = (0..group.topics.len() as TopicId).collect();
    topics.sort_by(|&a, &b| ids.compare(a, b));
    let members: Vec<MemberId> = (0..group.members.len() as MemberId).collect();
    let mut seen = group.listed(&members).with_topic_order(&topics);
    for member in &mut seen.members {
        member.generation_id = None;
    }
    // 2.
    Ok(balanced::assign(&seen, OBJECTIVE))
}
