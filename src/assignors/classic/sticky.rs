// SPDX-License-Identifier: Apache-2.0
//! Mirror of `sticky.py`: members keep as many of their partitions as the balance allows.

use super::claims::{Sent, settle};
use super::{constrained, general};
use crate::error::GroupError;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;

pub const NAME: &str = "sticky";

pub fn assign(group: &GroupSpec, interrupt: &Interrupt) -> Result<Assignment, GroupError> {
    // 1. Settle the claims in the user data.
    let (claims, owned) = settle(group, Sent::BySticky, interrupt);
    // 2. If all subscriptions are equal, run the constrained algorithm.
    let lists = if claims.equal_subscriptions {
        constrained::assign(NAME, &claims, owned)?.assignment
    // 3. Else run the general algorithm.
    } else {
        general::assign(NAME, &claims, owned)?.0
    };
    let mut answer = claims.answer(&lists);
    if !claims.is_plain() {
        answer.find_anomalies(group, false);
    }
    Ok(answer)
}
