// SPDX-License-Identifier: Apache-2.0
//! Mirror of `cooperative_sticky.py`.

use super::claims::{Claims, NOBODY, Sent, settle};
use super::{constrained, general};
use crate::error::GroupError;
use crate::group::lists::Lists;
use crate::group::model::{GroupSpec, MemberId, PartitionId};
use crate::group::ownership::Assignment;
use crate::interrupt::Interrupt;

pub const NAME: &str = "cooperative-sticky";

pub fn assign(group: &GroupSpec, interrupt: &Interrupt) -> Result<Assignment, GroupError> {
    // 1.
    let (claims, owned) = settle(group, Sent::ByCooperative, interrupt);
    // 2.
    let (mut assignment, transferring) = if claims.equal_subscriptions {
        let target = constrained::assign(NAME, &claims, owned)?;
        (target.assignment, target.transferring)
    // 3.
    } else {
        let (assignment, order) = general::assign(NAME, &claims, owned)?;
        let transferring = transferring(&claims, &assignment, &order);
        (assignment, transferring)
    };
    // 4.
    take_out(&claims, &mut assignment, &transferring);
    let mut answer = claims.answer(&assignment);
    if !claims.is_plain() {
        answer.find_anomalies(group, true);
    }
    Ok(answer)
}

/// Each partition is taken out of its new owner's list once, where it stands first. Of several new
/// owners of one partition the last one counts.
fn take_out(claims: &Claims, lists: &mut Lists, transferring: &[(PartitionId, MemberId)]) {
    if transferring.is_empty() {
        return;
    }
    let mut new_owner = vec![NOBODY; claims.numbered()];
    let mut loses = vec![false; lists.members()];
    for &(id, member) in transferring {
        new_owner[id as usize] = member;
        loses[member as usize] = true;
    }
    for m in (0..lists.members() as MemberId).filter(|&m| loses[m as usize]) {
        lists.retain(m, |id| {
            let leaves = new_owner[id as usize] == m;
            if leaves {
                new_owner[id as usize] = NOBODY;
            }
            !leaves
        });
    }
}

/// To whom partitions are new that somebody who claims them loses; `order` is the order of the
/// answer's map, of which the last member counts that a partition is new to.
fn transferring(
    claims: &Claims,
    assignment: &Lists,
    order: &[MemberId],
) -> Vec<(PartitionId, MemberId)> {
    // Which member a partition was last seen with: sets that need no clearing.
    let mut seen_with = vec![NOBODY; claims.numbered()];
    let mut revoked = vec![false; claims.numbered()];
    for &member in order {
        for &id in assignment.of(member) {
            seen_with[id as usize] = member;
        }
        for id in claims.sent(member) {
            revoked[id as usize] |= seen_with[id as usize] != member;
        }
    }
    seen_with.fill(NOBODY);
    let mut added = Vec::new();
    for &member in order {
        for id in claims.sent(member) {
            seen_with[id as usize] = member;
        }
        let all = assignment.of(member).iter().map(|&id| (id, member));
        added.extend(
            all.filter(|&(id, _)| revoked[id as usize] && seen_with[id as usize] != member),
        );
    }
    added
}
