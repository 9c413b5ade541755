// SPDX-License-Identifier: Apache-2.0
//! Mirror of `standby_tasks.py`: assigns the standby replicas of stateful tasks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::application::{Settings, Topology};
use super::processes::{Held, StreamsProcess, least};
use crate::java::hash_map::HashMap;

/// Assigns the standby replicas; `processes` are sorted by id.
pub fn assign(processes: &mut [StreamsProcess], topology: &Topology, settings: &Settings) {
    let replicas = settings.num_standby_replicas;
    let mut left_over: Vec<(u32, u32)> = topology
        .stateful
        .iter()
        .map(|&task| (task, replicas))
        .collect();
    if !settings.rack_aware_assignment_tags.is_empty() {
        let mut missing: HashMap<u32> = HashMap::default();
        for &(task, count) in &left_over {
            topology.put(&mut missing, task, count);
        }
        let values = values(processes);
        for &task in &topology.stateful {
            match by_tags(processes, task, topology, settings, &values) {
                0 => missing.remove(task),
                left => topology.put(&mut missing, task, left),
            }
        }
        // 4.
        left_over = missing
            .items()
            .map(|(task, &count)| (task, count))
            .collect();
    }
    for (task, count) in left_over {
        for _ in 0..count {
            let without = (0..processes.len()).filter(|&at| !processes[at].has(task));
            match least(processes, without, StreamsProcess::load) {
                Some(at) => processes[at].give(task, Held::Standby, topology),
                None => break,
            }
        }
    }
}

/// Whether a standby task may move; with rack-aware tags, only if the target has all tags of the
/// source.
pub fn may_balance(settings: &Settings, source: &StreamsProcess, target: &StreamsProcess) -> bool {
    settings.rack_aware_assignment_tags.is_empty()
        || source.tags.iter().all(|tag| target.tags.contains(tag))
}

/// Whether the copies of a task have at least as many different tags after the swap; true without
/// rack-aware tags.
pub fn may_swap(
    processes: &[StreamsProcess],
    settings: &Settings,
    source: usize,
    target: usize,
    task: u32,
) -> bool {
    if settings.rack_aware_assignment_tags.is_empty() {
        return true;
    }
    let distinct = |also: usize| {
        let others = (0..processes.len()).filter(|&at| processes[at].has(task) && at != source);
        let tags = others.chain([also]).flat_map(|at| processes[at].tags);
        tags.collect::<FxHashSet<_>>().len()
    };
    distinct(target) >= distinct(source)
}

/// Returns, by tag key, the number of its different values.
fn values<'a>(processes: &[StreamsProcess<'a>]) -> FxHashMap<&'a str, u32> {
    let tags: FxHashSet<&(String, String)> = processes.iter().flat_map(|one| one.tags).collect();
    let mut counts = FxHashMap::default();
    for (key, _) in tags {
        *counts.entry(key.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Assigns replicas of a task by tags. Returns the number of replicas that are missing.
fn by_tags(
    processes: &mut [StreamsProcess],
    task: u32,
    topology: &Topology,
    settings: &Settings,
    values: &FxHashMap<&str, u32>,
) -> u32 {
    // 1.
    let is_active = |one: &StreamsProcess| one.holds(task, Held::Active);
    let mut last = processes.iter().position(is_active).unwrap_or(0);
    let mut excluded: Vec<&(String, String)> = Vec::new();
    for given in 0..settings.num_standby_replicas {
        // 2.
        for tag in processes[last].tags {
            if !settings.rack_aware_assignment_tags.contains(&tag.0) {
                continue;
            }
            if values[tag.0.as_str()] <= given + 1 {
                excluded.retain(|one| one.0 != tag.0);
            } else {
                excluded.push(tag);
            }
        }
        // 3.
        let fits = |&at: &usize| {
            let one = &processes[at];
            !one.has(task) && !one.tags.iter().any(|tag| excluded.contains(&tag))
        };
        let places = (0..processes.len()).filter(fits);
        let Some(found) = least(processes, places, StreamsProcess::load) else {
            return settings.num_standby_replicas - given;
        };
        processes[found].give(task, Held::Standby, topology);
        last = found;
    }
    0
}
