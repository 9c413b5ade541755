// SPDX-License-Identifier: Apache-2.0
//! Mirror of `high_availability.py`: a task moves to its ideal owner once the owner is caught up.

use rustc_hash::FxHashSet;

use super::application::{Settings, Topology};
use super::processes::{Held, LATEST_OFFSET, StreamsProcess, balance, least};
use super::rack_costs::{BALANCE_SUBTOPOLOGY, NONE, RackCosts, is_known};
use super::standby_tasks;
use crate::group::lists::ascending;
use crate::java::priority_queue::PriorityQueue;

const TRAFFIC_COST: i64 = 10;
const NON_OVERLAP_COST: i64 = 1;

/// Assigns all tasks to processes, which are sorted by id. Returns whether a probing rebalance is
/// needed.
pub fn assign(processes: &mut [StreamsProcess], topology: &Topology, settings: &Settings) -> bool {
    let replicas = settings.num_standby_replicas > 0;
    let strategy = settings.rack_aware_assignment_strategy.as_str();
    let swaps = strategy != NONE && is_known(topology, processes, true, replicas, false);
    let costs = costs(settings, TRAFFIC_COST, NON_OVERLAP_COST);
    let subtopologies = ascending(topology.subtopologies.keys().copied());
    let racks = |inputs: bool, costs: (i64, i64)| RackCosts {
        topology,
        balanced: strategy == BALANCE_SUBTOPOLOGY,
        inputs,
        changelogs: !inputs,
        costs,
    };
    // 1.
    let count = processes.len();
    for (i, &task) in topology.stateful.iter().enumerate() {
        processes[i % count].give(task, Held::Active, topology);
    }
    // 2.
    balance(processes, Held::Active, topology, |_, _| true);
    // 3.
    if swaps {
        racks(true, costs).swap_active(processes, &topology.stateful, &subtopologies);
    }
    // 4.
    if replicas {
        standby_tasks::assign(processes, topology, settings);
        balance(processes, Held::Standby, topology, |source, target| {
            standby_tasks::may_balance(settings, source, target)
        });
        if swaps {
            let may_swap = |processes: &[StreamsProcess], source, target, task| {
                standby_tasks::may_swap(processes, settings, source, target, task)
            };
            // The strategy `min_traffic` decides which standby tasks two processes swap.
            let pairs = RackCosts {
                balanced: false,
                ..racks(false, costs)
            };
            pairs.swap_standby(processes, may_swap);
        }
    }
    let mut moves = Moves::new(processes, topology, settings);
    let moved = moves.move_active() + moves.move_standby();
    // 8.
    for &task in &topology.stateless {
        if let Some(at) = least(processes, 0..count, StreamsProcess::active_load) {
            processes[at].give(task, Held::Active, topology);
        }
    }
    if swaps {
        racks(true, (1, 0)).swap_active(processes, &topology.stateless, &subtopologies);
    }
    // 9.
    moved > 0
}

/// Returns the cost of traffic and of non-overlap: as set, or else the defaults given here.
pub fn costs(settings: &Settings, traffic: i64, non_overlap: i64) -> (i64, i64) {
    (
        settings
            .rack_aware_assignment_traffic_cost
            .unwrap_or(traffic),
        settings
            .rack_aware_assignment_non_overlap_cost
            .unwrap_or(non_overlap),
    )
}

/// Steps 5 to 7.
struct Moves<'m, 'a> {
    processes: &'m mut [StreamsProcess<'a>],
    topology: &'m Topology<'m>,
    acceptable: i64,
    warmups_left: i64,
    warmups: FxHashSet<(usize, u32)>,
}

impl<'m, 'a> Moves<'m, 'a> {
    fn new(
        processes: &'m mut [StreamsProcess<'a>],
        topology: &'m Topology<'m>,
        settings: &Settings,
    ) -> Self {
        Self {
            processes,
            topology,
            acceptable: settings.acceptable_recovery_lag,
            warmups_left: settings.max_warmup_replicas,
            warmups: FxHashSet::default(),
        }
    }

    // 5.
    fn is_caught_up(&self, at: usize, task: u32) -> bool {
        let lag = self.lag(at, task);
        lag == LATEST_OFFSET || self.acceptable == i64::MAX || (0..=self.acceptable).contains(&lag)
    }

    fn lag(&self, at: usize, task: u32) -> i64 {
        self.processes[at].lags[task as usize]
    }

    fn caught_up(&self, task: u32) -> impl Iterator<Item = usize> {
        (0..self.processes.len()).filter(move |&at| self.is_caught_up(at, task))
    }

    fn least_loaded(&self, places: impl Iterator<Item = usize>) -> Option<usize> {
        least(self.processes, places, StreamsProcess::load)
    }

    fn first_by_lag(&self, task: u32, places: impl Iterator<Item = usize>) -> Option<usize> {
        places.min_by_key(|&at| (self.lag(at, task), at))
    }

    /// Runs step 6; returns the number of moves.
    fn move_active(&mut self) -> usize {
        let moves = self.needed(Held::Active);
        for &(task, ideal) in &moves {
            let is_standby = |&at: &usize| self.processes[at].holds(task, Held::Standby);
            let source = self
                .least_loaded(self.caught_up(task).filter(is_standby))
                .or_else(|| self.least_loaded(self.caught_up(task)))
                .or_else(|| self.first_by_lag(task, 0..self.processes.len()))
                .unwrap_or(ideal);
            self.processes[ideal].take(task);
            if self.processes[source].holds(task, Held::Standby) {
                self.processes[source].take(task);
                self.processes[ideal].give(task, Held::Standby, self.topology);
            } else if self.is_warmup_left() {
                self.warmups.insert((ideal, task));
                self.processes[ideal].give(task, Held::Standby, self.topology);
            }
            self.processes[source].give(task, Held::Active, self.topology);
        }
        moves.len()
    }

    /// Runs step 7; returns the number of moves.
    fn move_standby(&mut self) -> usize {
        let mut count = 0;
        for (task, ideal) in self.needed(Held::Standby) {
            let without = |&at: &usize| !self.processes[at].has(task);
            let place = (self.lag(ideal, task), ideal);
            let before = |&at: &usize| (self.lag(at, task), at) < place;
            let all = 0..self.processes.len();
            let source = self
                .least_loaded(self.caught_up(task).filter(without))
                .or_else(|| self.first_by_lag(task, all.filter(before).filter(without)));
            if let Some(source) = source {
                self.processes[source].give(task, Held::Standby, self.topology);
                if !self.is_warmup_left() {
                    self.processes[ideal].take(task);
                }
                count += 1;
            }
        }
        count
    }

    fn needed(&self, how: Held) -> Vec<(u32, usize)> {
        let stateful = &self.topology.stateful;
        let mut known: Vec<(usize, i64)> = vec![(0, 0); self.topology.ids.len()];
        for &task in stateful {
            let least = (0..self.processes.len()).map(|at| self.lag(at, task)).min();
            known[task as usize] = (self.caught_up(task).count(), least.unwrap_or(0));
        }
        let mut queue = PriorityQueue::default();
        for at in 0..self.processes.len() {
            for task in self.processes[at].tasks(how) {
                let (caught_up, least) = known[task as usize];
                let may_move = !self.is_caught_up(at, task) && least < self.lag(at, task);
                if may_move && !self.warmups.contains(&(at, task)) {
                    queue.add((caught_up, task), (task, at));
                }
            }
        }
        std::iter::from_fn(|| queue.poll()).collect()
    }

    fn is_warmup_left(&mut self) -> bool {
        self.warmups_left -= 1;
        self.warmups_left >= 0
    }
}
