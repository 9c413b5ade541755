//! Mirror of `memory.py`: what the incremental leader remembers between rounds.

use serde::{Deserialize, Serialize};

use super::work::NamedWork;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Memory {
    pub assigned: NamedWork,
    pub revoked: NamedWork,
    pub generation_id: i32,
    pub members: Vec<String>,
    pub candidates: Vec<String>,
    pub scheduled_rebalance_ms: i64,
    pub delay_ms: i64,
    pub revoked_in_previous: bool,
    pub revoking_rounds: i64,
}
