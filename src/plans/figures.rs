// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/figures.py`: the figures of a plan.

use crate::group::model::TopicPartition;
use crate::group::spec::GroupSpec;

pub struct Balance {
    pub min: u32,
    pub max: u32,
    pub mean: f64,
    pub stddev: f64,
}

impl Balance {
    /// Adds integers and divides last, so that no rounding depends on the order of the members.
    pub fn of(counts: &[u32]) -> Self {
        let members = counts.len() as i128;
        let total: i128 = counts.iter().map(|&count| i128::from(count)).sum();
        let squares: i128 = counts.iter().map(|&count| i128::from(count).pow(2)).sum();
        let spread = members * squares - total * total;
        Self {
            min: counts.iter().copied().min().unwrap_or(0),
            max: counts.iter().copied().max().unwrap_or(0),
            mean: total as f64 / members as f64,
            stddev: (spread as f64 / (members * members) as f64).sqrt(),
        }
    }
}

pub struct Figures {
    pub rounds: usize,
    pub moves: u64,
    pub least_moves: i64,
    pub unavailable: u64,
    pub unavailable_rounds: u64,
    pub waiting: u64,
    pub leaderless: u64,
    pub balance_before: Balance,
    pub balance_after: Balance,
    pub balance_possible: Balance,
    pub rack_share_before: Option<f64>,
    pub rack_share_after: Option<f64>,
    pub settled: bool,
    pub depends_on_ids: bool,
    pub owns_nothing: bool,
}

pub fn balance(group: &GroupSpec) -> Balance {
    let members = 0..group.members.len() as u32;
    let counts: Vec<u32> = members.map(|m| group.owned(m).len() as u32).collect();
    Balance::of(&counts)
}

/// Returns the share of partitions that are read in the rack of a replica. A partition counts only
/// if the racks of its reader and of a replica are known; None if no partition counts.
pub fn rack_share(group: &GroupSpec) -> Option<f64> {
    let (mut known, mut near) = (0u64, 0u64);
    for (m, member) in group.members.iter().enumerate() {
        let Some(rack) = member.rack else { continue };
        let exists =
            |tp: &&TopicPartition| tp.partition < group.topics[tp.topic as usize].partitions;
        for &tp in group.owned(m as u32).iter().filter(exists) {
            let replicas = group.replica_racks(tp);
            known += u64::from(!replicas.is_empty());
            near += u64::from(replicas.contains(&rack));
        }
    }
    (known > 0).then(|| near as f64 / known as f64)
}
