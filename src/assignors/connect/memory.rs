// SPDX-License-Identifier: Apache-2.0
//! Mirror of `memory.py`: the data that the incremental leader keeps from one rebalance to the
//! next.

use super::work::{Work, WorkerId};

#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Both `assigned` and `revoked` are sorted.
    pub assigned: Work,
    pub revoked: Work,
    pub generation_id: i32,
    pub members: Vec<WorkerId>,
    pub candidates: Vec<WorkerId>,
    pub scheduled_rebalance_ms: i64,
    pub delay_ms: i64,
    pub revoked_in_previous: bool,
    pub revoking_rounds: i64,
}
