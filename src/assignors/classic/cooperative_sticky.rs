// SPDX-License-Identifier: Apache-2.0
//! Mirror of `cooperative_sticky.py`: assigns as sticky does, but withholds a partition from its
//! new owner while another member must first revoke it.

use super::claims::{Claims, Sent, settle};
use super::{constrained, general};
use crate::error::GroupError;
use crate::group::lists::Lists;
use crate::group::model::{MemberId, NOBODY, PartitionId};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;

pub const NAME: &str = "cooperative-sticky";

pub fn assign(group: &GroupSpec, interrupt: &Interrupt) -> Result<Assignment, GroupError> {
    // 1. Settle the claims in the subscriptions' fields.
    let (claims, owned) = settle(group, Sent::ByCooperative, interrupt);
    // 2. The constrained algorithm records which partitions are transferring.
    let (mut assignment, transferring) = if claims.equal_subscriptions {
        let target = constrained::assign(NAME, &claims, owned)?;
        (target.assignment, target.transferring)
    } else {
        // 3. The general algorithm does not record them; find them in its answer.
        let (assignment, order) = general::assign(NAME, &claims, owned)?;
        let transferring = transferring(&claims, &assignment, &order);
        (assignment, transferring)
    };
    // 4. Withhold the transferring partitions.
    take_out(&claims, &mut assignment, &transferring);
    let mut answer = claims.answer(&assignment);
    if !claims.is_plain() {
        answer.find_anomalies(group, true);
    }
    Ok(answer)
}

/// Removes each transferring partition from its new owner's list: only the first entry, if the list
/// has two. If `transferring` names several new owners of a partition, only the last one counts.
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

/// Finds the partitions that one member claims but does not get, and that another member gains.
/// Returns each of them with the member that gains it, once for each such member. The entries are
/// in the `order` of the members in the answer's map.
fn transferring(
    claims: &Claims,
    assignment: &Lists,
    order: &[MemberId],
) -> Vec<(PartitionId, MemberId)> {
    // By partition: the last member whose list contains it. The array need not be cleared for each
    // member, because a member looks only for its own number.
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
