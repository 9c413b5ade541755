//! Mirror of `spec.py`: what the incremental leader is told in one round, and what it answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::work::NamedWork;

#[derive(Clone, Debug, Deserialize)]
pub struct ConnectSpec {
    /// In member order.
    pub running: Vec<(String, NamedWork)>,
    /// Connector to number of tasks.
    pub config: BTreeMap<String, u32>,
    pub max_delay_ms: i64,
    pub generation_id: i32,
    pub last_completed_generation_id: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// In member order, as are `revoked`.
    pub assigned: Vec<(String, NamedWork)>,
    pub revoked: Vec<(String, NamedWork)>,
    pub delay_ms: i64,
    pub scheduled_rebalance_ms: i64,
}
