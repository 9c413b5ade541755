// SPDX-License-Identifier: Apache-2.0
//! Mirror of `legacy_sticky.py`: tasks stay at their processes, and there are no warm-ups.

use rustc_hash::{FxHashMap, FxHashSet};

use super::application::{Settings, Topology};
use super::high_availability::costs;
use super::processes::{Held, StreamsProcess, id_set, sorted_by_id};
use super::rack_costs::{BALANCE_SUBTOPOLOGY, NONE, RackCosts, is_known};
use crate::group::lists::ascending;
use crate::java::hash_map::HashMap;
use crate::java::hash_table::DEFAULT_SLOTS;
use crate::java::slots::copied_slots;

const TRAFFIC_COST: i64 = 1;
const NON_OVERLAP_COST: i64 = 10;

/// Assigns all tasks to processes, which are in hash order; `public` selects KIP-924's form.
pub fn assign(
    processes: &mut [StreamsProcess],
    topology: &Topology,
    settings: &Settings,
    keep: bool,
    public: bool,
) {
    let racks = Racks::new(processes, topology, settings, public);
    let mut work = Work::new(processes, topology, public);
    work.give_active(keep);
    // 4.
    if !keep {
        racks.swap_active(work.processes);
    }
    // 5.
    if settings.num_standby_replicas > 0 {
        let active = work.processes.iter().map(|one| one.tasks(Held::Active));
        work.held = active.collect();
        work.give_standby(settings.num_standby_replicas);
        // 6.
        if !keep {
            racks.swap_standby(work.processes);
        }
    }
}

struct Work<'w, 'a> {
    processes: &'w mut [StreamsProcess<'a>],
    topology: &'w Topology<'w>,
    public: bool,
    /// By task: the place of the last process that had it as active; in Java's order of tasks.
    had_active: HashMap<usize>,
    /// By task: the places of the processes that had it as standby, in Java's order.
    had_standby: FxHashMap<u32, Vec<usize>>,
    pairs: FxHashSet<(u32, u32)>,
    /// By process: its tasks.
    held: Vec<Vec<u32>>,
}

impl<'w, 'a> Work<'w, 'a> {
    fn new(
        processes: &'w mut [StreamsProcess<'a>],
        topology: &'w Topology<'w>,
        public: bool,
    ) -> Self {
        let mut had_active = HashMap::default();
        let mut had_standby: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (at, one) in processes.iter().enumerate() {
            for task in 0..topology.ids.len() as u32 {
                if one.previous_active[task as usize] {
                    topology.put(&mut had_active, task, at);
                }
                if one.previous_standby[task as usize] {
                    had_standby.entry(task).or_default().push(at);
                }
            }
        }
        for places in had_standby.values_mut() {
            *places = id_set(processes, places.iter().copied(), DEFAULT_SLOTS);
        }
        Self {
            held: vec![Vec::new(); processes.len()],
            processes,
            topology,
            public,
            had_active,
            had_standby,
            pairs: FxHashSet::default(),
        }
    }

    fn give_active(&mut self, keep: bool) {
        let tasks = self.topology.in_java_order(&self.topology.tasks);
        let threads: u32 = self.processes.iter().map(StreamsProcess::capacity).sum();
        let per_thread = tasks.len() as u32 / threads;
        let fits = |one: &StreamsProcess| one.active < one.capacity() * per_thread;
        let slots = copied_slots(tasks.len());
        let mut left = self.topology.set(tasks, slots);
        // 1.
        for task in self.had_active.keys() {
            let at = self.had_active.get(task).copied().unwrap_or(0);
            if left.get(task).is_some() && (keep || fits(&self.processes[at])) {
                self.give(at, task, Held::Active);
                left.remove(task);
            }
        }
        // 2.
        for task in left.keys() {
            let places = self.had_standby.get(&task).into_iter().flatten().copied();
            let found = places.clone().find(|&at| fits(&self.processes[at]));
            if let Some(at) = found {
                self.give(at, task, Held::Active);
                left.remove(task);
            }
        }
        // 3.
        let mut left = left.keys();
        left.sort_unstable();
        let all: Vec<usize> = (0..self.processes.len()).collect();
        for task in left {
            let at = self.best(task, &all);
            self.give(at, task, Held::Active);
        }
    }

    fn give_standby(&mut self, replicas: u32) {
        let mut stateful = self.topology.stateful.clone();
        if !self.public {
            let tasks = self.topology.in_java_order(&stateful);
            stateful = self.topology.set(tasks, DEFAULT_SLOTS).keys();
        }
        for task in stateful {
            for _ in 0..replicas {
                let all = 0..self.processes.len();
                let without = all.filter(|&at| !self.processes[at].has(task));
                let without = id_set(self.processes, without, DEFAULT_SLOTS);
                if without.is_empty() {
                    break;
                }
                let at = self.best(task, &without);
                self.give(at, task, Held::Standby);
            }
        }
    }

    fn give(&mut self, at: usize, task: u32, how: Held) {
        for &other in &self.held[at] {
            self.pairs.insert((task.min(other), task.max(other)));
        }
        self.held[at].push(task);
        self.processes[at].give(task, how, self.topology);
    }

    fn best(&self, task: u32, candidates: &[usize]) -> usize {
        if candidates.len() == 1 {
            return candidates[0];
        }
        let standby = self.least_loaded(task, &self.previous_standby(task, candidates));
        let owner = self.had_active.get(task).copied();
        let previous = owner.filter(|at| candidates.contains(at)).or(standby);
        let fits = |at: &usize| !self.is_too_full(*at);
        previous
            .filter(fits)
            .or_else(|| previous.and(standby).filter(fits))
            .or_else(|| self.least_loaded(task, candidates))
            .unwrap_or(candidates[0])
    }

    fn previous_standby(&self, task: u32, candidates: &[usize]) -> Vec<usize> {
        let places = self.had_standby.get(&task).map_or(&[][..], Vec::as_slice);
        let slots = copied_slots(places.len());
        let mut copied = id_set(self.processes, places.iter().copied(), slots);
        copied.retain(|at| candidates.contains(at));
        copied
    }

    fn is_too_full(&self, at: usize) -> bool {
        let one = &self.processes[at];
        let has_more_room = |other: &StreamsProcess| self.has_more_room(other, one);
        one.count() >= one.capacity() && self.processes.iter().any(has_more_room)
    }

    fn has_more_room(&self, one: &StreamsProcess, other: &StreamsProcess) -> bool {
        if one.load() == other.load() && !self.public {
            return one.capacity() > other.capacity();
        }
        one.load() < other.load()
    }

    fn least_loaded(&self, task: u32, candidates: &[usize]) -> Option<usize> {
        for only_new in [true, false] {
            let mut found: Option<usize> = None;
            for &at in candidates {
                let one = &self.processes[at];
                if one.count() == 0 {
                    return Some(at);
                }
                let more = found.is_none_or(|best| self.has_more_room(one, &self.processes[best]));
                if more && (!only_new || self.meets_new(at, task)) {
                    found = Some(at);
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn meets_new(&self, at: usize, task: u32) -> bool {
        let mut others = self.held[at].iter().copied();
        others.any(|other| !self.pairs.contains(&(task.min(other), task.max(other))))
    }
}

/// The swaps of steps 4 and 6, if they are enabled.
struct Racks<'r> {
    /// The costs of stateful active tasks.
    costs: RackCosts<'r>,
    public: bool,
    /// Whether active tasks are swapped, and whether standby tasks are. The two differ only in
    /// KIP-924's form, which tests other racks for standby tasks.
    enabled: [bool; 2],
}

impl<'r> Racks<'r> {
    fn new(
        processes: &[StreamsProcess],
        topology: &'r Topology<'r>,
        settings: &Settings,
        public: bool,
    ) -> Self {
        let strategy = settings.rack_aware_assignment_strategy.as_str();
        let no_cost = settings.rack_aware_assignment_traffic_cost.is_none()
            || settings.rack_aware_assignment_non_overlap_cost.is_none();
        let changelogs = settings.num_standby_replicas > 0 || public;
        let is_on = strategy != NONE && !(public && no_cost);
        let enabled = [true, !public]
            .map(|inputs| is_on && is_known(topology, processes, inputs, changelogs, public));
        let costs = RackCosts {
            topology,
            balanced: strategy == BALANCE_SUBTOPOLOGY,
            inputs: true,
            changelogs: public,
            costs: costs(settings, TRAFFIC_COST, NON_OVERLAP_COST),
        };
        Self {
            costs,
            public,
            enabled,
        }
    }

    fn swap_active(&self, processes: &mut [StreamsProcess]) {
        if !self.enabled[0] {
            return;
        }
        let topology = self.costs.topology;
        let is_stateful = |task: &u32| {
            let one = topology.subtopologies[&topology.ids[*task as usize].0];
            let unlogged = self.public && one.unlogged_stores > 0;
            topology.is_stateful[*task as usize] || unlogged
        };
        let (stateful, stateless): (Vec<u32>, Vec<u32>) =
            topology.tasks.iter().copied().partition(is_stateful);
        self.in_order(processes, |processes| {
            for (tasks, costs) in [(stateful, self.costs.costs), (stateless, (1, 0))] {
                let own = if self.public {
                    ascending(tasks.iter().map(|&task| topology.ids[task as usize].0))
                } else {
                    ascending(topology.subtopologies.keys().copied())
                };
                let racks = RackCosts {
                    costs,
                    ..self.costs
                };
                racks.swap_active(processes, &tasks, &own);
            }
        });
    }

    fn swap_standby(&self, processes: &mut [StreamsProcess]) {
        if self.enabled[1] {
            let racks = RackCosts {
                balanced: self.public && self.costs.balanced,
                inputs: false,
                changelogs: true,
                ..self.costs
            };
            self.in_order(processes, |processes| {
                racks.swap_standby(processes, |_, _, _, _| true);
            });
        }
    }

    /// Runs `swap` with the processes sorted by id; in KIP-924's form, in hash order.
    fn in_order(&self, processes: &mut [StreamsProcess], swap: impl FnOnce(&mut [StreamsProcess])) {
        if self.public {
            swap(processes);
        } else {
            sorted_by_id(processes, swap);
        }
    }
}
