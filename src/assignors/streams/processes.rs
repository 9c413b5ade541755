// SPDX-License-Identifier: Apache-2.0
//! Mirror of `processes.py`: the processes of an application, with each one's previous and new
//! tasks.

use rustc_hash::FxHashMap;

use super::application::{StreamThread, Topology, Uuid};
use crate::java::hash_map::{HashMap, uuid_hash};

pub const LATEST_OFFSET: i64 = -2;
pub const UNKNOWN_OFFSET_SUM: i64 = -3;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Held {
    Not,
    Active,
    Standby,
}

#[derive(Default)]
pub struct StreamsProcess<'a> {
    pub process_id: Uuid,
    pub threads: Vec<&'a StreamThread>,
    pub racks: Vec<u32>,
    pub tags: &'a [(String, String)],
    pub end_point: &'a str,
    sums: FxHashMap<u32, i64>,
    /// The tasks that each thread reported, sorted.
    pub reported: Vec<Vec<u32>>,
    /// By task: whether the process had it as active. The next three fields are by task, too.
    pub previous_active: Vec<bool>,
    pub previous_standby: Vec<bool>,
    pub lags: Vec<i64>,
    pub held: Vec<Held>,
    /// The number of active tasks, then that of standby tasks.
    pub active: u32,
    standby: u32,
    /// Mirror of the reference's `placed`; None unless KIP-924's form needs it.
    pub placed: Option<HashMap<bool>>,
}

impl<'a> StreamsProcess<'a> {
    pub fn new(process_id: Uuid, topology: &Topology, public: bool) -> Self {
        let tasks = topology.ids.len();
        Self {
            process_id,
            previous_active: vec![false; tasks],
            previous_standby: vec![false; tasks],
            lags: vec![0; tasks],
            held: vec![Held::Not; tasks],
            placed: public.then(HashMap::default),
            ..Self::default()
        }
    }

    pub fn join(&mut self, thread: &'a StreamThread, topology: &Topology, is_future: bool) {
        if self.threads.is_empty() && !is_future {
            self.tags = &thread.client_tags;
            self.end_point = &thread.user_end_point;
        }
        self.threads.push(thread);
        self.racks.push(topology.rack(&thread.rack_id));
        let mut reported = Vec::new();
        if !is_future {
            for (&id, &sum) in &thread.offset_sums {
                let task = topology.number(id);
                reported.push(task);
                self.sums.insert(task, sum);
            }
        }
        reported.sort_unstable();
        self.reported.push(reported);
    }

    /// Records the previous tasks, and computes the lag of every stateful task.
    pub fn had(&mut self, owned: &[u32], topology: &Topology, ends: Option<&[i64]>) {
        for (&task, &sum) in &self.sums {
            let is_active = sum == LATEST_OFFSET;
            self.previous_active[task as usize] |= is_active;
            self.previous_standby[task as usize] |= !is_active;
        }
        for &task in owned {
            self.previous_active[task as usize] = true;
            self.previous_standby[task as usize] = false;
        }
        for &task in &topology.stateful {
            let sum = self.sums.get(&task).copied().unwrap_or(0);
            let end = ends.map_or(UNKNOWN_OFFSET_SUM, |ends| ends[task as usize]);
            self.lags[task as usize] = match sum {
                LATEST_OFFSET | UNKNOWN_OFFSET_SUM => sum,
                _ if sum > end => end,
                _ => end.saturating_sub(sum),
            };
        }
    }

    pub fn rack(&self) -> u32 {
        self.racks[0]
    }

    pub fn capacity(&self) -> u32 {
        self.threads.len() as u32
    }

    pub fn count(&self) -> u32 {
        self.active + self.standby
    }

    pub fn load(&self) -> f64 {
        f64::from(self.count()) / f64::from(self.capacity())
    }

    pub fn active_load(&self) -> f64 {
        f64::from(self.active) / f64::from(self.capacity())
    }

    pub fn has(&self, task: u32) -> bool {
        self.held[task as usize] != Held::Not
    }

    pub fn holds(&self, task: u32, how: Held) -> bool {
        self.held[task as usize] == how
    }

    /// Returns the active or the standby tasks, sorted.
    pub fn tasks(&self, how: Held) -> Vec<u32> {
        let held = (0..).zip(&self.held);
        held.filter(|&(_, &one)| one == how)
            .map(|(task, _)| task)
            .collect()
    }

    pub fn give(&mut self, task: u32, how: Held, topology: &Topology) {
        self.held[task as usize] = how;
        *self.counter(how) += 1;
        if let Some(placed) = &mut self.placed {
            topology.put(placed, task, how == Held::Active);
        }
    }

    pub fn take(&mut self, task: u32) {
        let how = self.held[task as usize];
        *self.counter(how) -= 1;
        self.held[task as usize] = Held::Not;
        if let Some(placed) = &mut self.placed {
            placed.remove(task);
        }
    }

    fn counter(&mut self, how: Held) -> &mut u32 {
        if how == Held::Active {
            &mut self.active
        } else {
            &mut self.standby
        }
    }
}

/// Returns the given places in the order of a set of the ids of the processes at these places.
pub fn id_set(
    processes: &[StreamsProcess],
    places: impl Iterator<Item = usize>,
    slots: usize,
) -> Vec<usize> {
    let id = |at: u32| processes[at as usize].process_id;
    let mut set: HashMap<()> = HashMap::with_slots(slots);
    for at in places.map(|at| at as u32) {
        set.put(at, uuid_hash(id(at)), &|a, b| id(a).cmp(&id(b)), ());
    }
    set.keys().into_iter().map(|at| at as usize).collect()
}

/// Returns the place of the process with the least `load`; of equal loads, the first one.
pub fn least<'a>(
    processes: &[StreamsProcess<'a>],
    places: impl Iterator<Item = usize>,
    load: impl Fn(&StreamsProcess<'a>) -> f64,
) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for at in places {
        let load = load(&processes[at]);
        if best.is_none_or(|best| load < best.0) {
            best = Some((load, at));
        }
    }
    best.map(|best| best.1)
}

/// Runs a step with the processes sorted by id, then restores their order.
pub fn sorted_by_id<'a, T>(
    processes: &mut [StreamsProcess<'a>],
    step: impl FnOnce(&mut [StreamsProcess<'a>]) -> T,
) -> T {
    let before = processes.iter().map(|one| one.process_id);
    let places: FxHashMap<Uuid, usize> = before.zip(0..).collect();
    processes.sort_unstable_by_key(|one| one.process_id);
    let result = step(processes);
    processes.sort_unstable_by_key(|one| places[&one.process_id]);
    result
}

/// Moves tasks from process to process while a move reduces the difference of their loads.
pub fn balance(
    processes: &mut [StreamsProcess],
    how: Held,
    topology: &Topology,
    allowed: impl Fn(&StreamsProcess, &StreamsProcess) -> bool,
) {
    let mut moved = true;
    while moved {
        moved = false;
        for source in 0..processes.len() {
            for target in 0..processes.len() {
                // The reference lacks this first call of `should_move`, which saves lists of tasks.
                if source == target
                    || !should_move(&processes[source], &processes[target])
                    || !allowed(&processes[source], &processes[target])
                {
                    continue;
                }
                for task in processes[source].tasks(how) {
                    if !should_move(&processes[source], &processes[target]) {
                        break;
                    }
                    if !processes[target].has(task) {
                        processes[source].take(task);
                        processes[target].give(task, how, topology);
                        moved = true;
                    }
                }
            }
        }
    }
}

fn should_move(source: &StreamsProcess, target: &StreamsProcess) -> bool {
    let skew = source.load() - target.load();
    if skew <= 0.0 {
        return false;
    }
    let new = (f64::from(source.count()) - 1.0) / f64::from(source.capacity())
        - (f64::from(target.count()) + 1.0) / f64::from(target.capacity());
    (0.0..skew).contains(&new)
}
