// SPDX-License-Identifier: Apache-2.0
//! Mirror of `cooperative_sticky.py`: takes the general algorithm's answer, and withholds
//! partitions until their owners have revoked them.

use super::claims::settle;
use super::general;
use super::movements::dies;
use super::subscriptions::{compare_by_instance, members_with_topics};
use crate::error::GroupError;
use crate::group::model::{MemberId, NOBODY, PartitionId};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;

pub const NAME: &str = super::movements::NAME;

pub fn assign(group: &GroupSpec, interrupt: &Interrupt) -> Result<Assignment, GroupError> {
    let members = members_with_topics(group);
    let mut answer = vec![Vec::new(); group.members.len()];
    if members.is_empty() && !group.members.is_empty() {
        return Err(dies("no member subscribes to a topic"));
    }
    if !members.is_empty() {
        let claims = settle(group, &members)?;
        let numbered = claims.numbers.count();
        // The partitions in the members' lists, each once, and by partition the last member that
        // has it.
        let last_members = |lists: &[Vec<PartitionId>]| {
            let (mut met, mut last) = (Vec::new(), vec![NOBODY; numbered]);
            for &m in &members {
                for &id in &lists[m as usize] {
                    if std::mem::replace(&mut last[id as usize], m) == NOBODY {
                        met.push(id);
                    }
                }
            }
            (met, last)
        };
        // 1. The owner of a partition is the last member that claims it.
        let (owned, owner) = last_members(&claims.claimed);
        let (numbers, target) = general::assign(group, &members, claims, interrupt)?;
        let (assigned, given_to) = last_members(&target);
        let mut give = |m: MemberId, id| answer[m as usize].push(numbers.partition(id));
        let is_owner =
            |m: MemberId, owner| owner != NOBODY && compare_by_instance(group, m, owner).is_eq();
        // 2. Give each partition that stays with its owner to the owner.
        for &id in &assigned {
            let owner = owner[id as usize];
            if is_owner(given_to[id as usize], owner) {
                give(owner, id);
            }
        }
        // 3. Give each partition without an owner to the member that the general algorithm chose.
        for &id in assigned.iter().filter(|&&id| owner[id as usize] == NOBODY) {
            give(given_to[id as usize], id);
        }
        // 4. Return each partition that the general algorithm assigned to no member to its owner.
        for &id in owned.iter().filter(|&&id| given_to[id as usize] == NOBODY) {
            give(owner[id as usize], id);
        }
    }
    let mut answer = Assignment::of_lists(&answer);
    answer.find_anomalies(group, true);
    Ok(answer)
}
