//! Mirror of `cooperative_sticky.py`.

use super::claims::{Claims, NOBODY, PartitionId, sent_by_cooperative, settle};
use super::{constrained, general};
use crate::error::GroupError;
use crate::group::{GroupSpec, MemberId};
use crate::interrupt::Interrupt;
use crate::ownership::Assignment;

pub const NAME: &str = "cooperative-sticky";

pub fn assign(group: &GroupSpec, interrupt: &Interrupt) -> Result<Assignment, GroupError> {
    // 1.
    let claims = settle(group, interrupt);
    // 2.
    let (mut assignment, transferring) = if claims.equal_subscriptions {
        let target = constrained::assign(NAME, &claims)?;
        (target.assignment, target.transferring)
    // 3.
    } else {
        let (assignment, order) = general::assign(NAME, &claims, sent_by_cooperative)?;
        let transferring = transferring(&claims, &assignment, &order);
        (assignment, transferring)
    };
    // 4. Each partition is taken out once, where it stands first.
    let mut transferring = transferring;
    for (m, list) in assignment.iter_mut().enumerate() {
        list.retain(|&id| {
            let leaves = transferring[id as usize] == m as MemberId;
            if leaves {
                transferring[id as usize] = NOBODY;
            }
            !leaves
        });
    }
    let mut answer = claims.answer(&assignment);
    if !claims.is_plain() {
        answer.find_anomalies(group, true);
    }
    Ok(answer)
}

/// To whom partitions are new that somebody who claims them loses; `order` is the order of the
/// answer's map, of which the last member counts that a partition is new to.
fn transferring(
    claims: &Claims,
    assignment: &[Vec<PartitionId>],
    order: &[MemberId],
) -> Vec<MemberId> {
    let mut added = vec![NOBODY; claims.numbered()];
    let mut revoked = vec![false; claims.numbered()];
    // Which member a partition was last seen with: sets that need no clearing.
    let mut owned_by = vec![NOBODY; claims.numbered()];
    let mut assigned_to = vec![NOBODY; claims.numbered()];
    for &member in order {
        for id in claims.sent(member) {
            owned_by[id as usize] = member;
        }
        for &id in &assignment[member as usize] {
            assigned_to[id as usize] = member;
            if owned_by[id as usize] != member {
                added[id as usize] = member;
            }
        }
        for id in claims.sent(member) {
            revoked[id as usize] |= assigned_to[id as usize] != member;
        }
    }
    for (member, revoked) in added.iter_mut().zip(revoked) {
        if !revoked {
            *member = NOBODY;
        }
    }
    added
}
