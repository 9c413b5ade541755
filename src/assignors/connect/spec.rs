// SPDX-License-Identifier: Apache-2.0
//! Mirror of `spec.py`: the input and the answer of the incremental leader in one rebalance.

use super::work::{Work, WorkerId};

pub struct ConnectSpec {
    /// The workers in member order, each with the work that it reports as running.
    pub running: Vec<(WorkerId, Work)>,
    /// All configured work, sorted.
    pub target: Work,
    pub max_delay_ms: i64,
    pub generation_id: i32,
    pub last_completed_generation_id: i32,
}

#[derive(Debug, PartialEq)]
pub struct Answer {
    /// Both `assigned` and `revoked` are in member order.
    pub assigned: Vec<(WorkerId, Work)>,
    pub revoked: Vec<(WorkerId, Work)>,
    pub delay_ms: i64,
    pub scheduled_rebalance_ms: i64,
}
