// SPDX-License-Identifier: Apache-2.0
//! Mirror of `rack_costs.py`: swaps tasks between processes so that fewer partitions are read from
//! another rack.

use super::application::{NO_RACK, Partition, Topology};
use super::min_cost_flow::Graph;
use super::processes::{Held, StreamsProcess};
use crate::group::lists::ascending;

pub const NONE: &str = "none";
pub const BALANCE_SUBTOPOLOGY: &str = "balance_subtopology";
const ROUNDS: usize = 4;
const SOURCE: usize = 0;

/// Runs step 1: returns whether all racks are known; `public` selects KIP-924's form.
pub fn is_known(
    topology: &Topology,
    processes: &[StreamsProcess],
    inputs: bool,
    changelogs: bool,
    public: bool,
) -> bool {
    let one_rack = |one: &StreamsProcess| {
        one.rack() != NO_RACK && (public || one.racks.iter().all(|&rack| rack == one.rack()))
    };
    let all_known = |tps: &[Partition]| {
        let mut racks = tps
            .iter()
            .map(|tp| &topology.racks[tp.0 as usize][tp.1 as usize]);
        racks.all(|racks| {
            if public {
                racks.iter().any(|&rack| rack != NO_RACK)
            } else {
                !racks.contains(&NO_RACK)
            }
        })
    };
    processes.iter().all(one_rack)
        && topology.tasks.iter().all(|&task| {
            (!inputs || all_known(&topology.inputs[task as usize]))
                && (!changelogs || all_known(&topology.changelogs[task as usize]))
        })
}

/// The swaps for one assignor. Costs count the partitions of inputs, of changelogs, or of both.
#[derive(Clone, Copy)]
pub struct RackCosts<'a> {
    pub topology: &'a Topology<'a>,
    pub balanced: bool,
    pub inputs: bool,
    pub changelogs: bool,
    /// The cost of traffic, and that of non-overlap.
    pub costs: (i64, i64),
}

impl RackCosts<'_> {
    /// Runs step 3.
    pub fn swap_active(
        &self,
        processes: &mut [StreamsProcess],
        tasks: &[u32],
        subtopologies: &[i32],
    ) {
        let places: Vec<usize> = (0..processes.len()).collect();
        let subtopologies = self.balanced.then_some(subtopologies);
        self.swap(processes, &places, tasks, subtopologies, Held::Active);
    }

    /// Runs step 4.
    pub fn swap_standby(
        &self,
        processes: &mut [StreamsProcess],
        may_move: impl Fn(&[StreamsProcess], usize, usize, u32) -> bool,
    ) {
        for _ in 0..ROUNDS {
            let mut moved = false;
            for i in 0..processes.len() {
                for j in i + 1..processes.len() {
                    if processes[i].rack() == processes[j].rack() {
                        continue;
                    }
                    let movable = |source: usize, target: usize| -> Vec<u32> {
                        let mut tasks = processes[source].tasks(Held::Standby);
                        tasks.retain(|&task| {
                            !processes[target].has(task)
                                && may_move(processes, source, target, task)
                        });
                        tasks
                    };
                    let (mut tasks, others) = (movable(i, j), movable(j, i));
                    if tasks.is_empty() || others.is_empty() {
                        continue;
                    }
                    tasks.extend(others);
                    tasks.sort_unstable();
                    let ids = tasks.iter().map(|&task| self.topology.ids[task as usize].0);
                    let own = ascending(ids);
                    let own = self.balanced.then_some(own.as_slice());
                    moved |= self.swap(processes, &[i, j], &tasks, own, Held::Standby);
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// Moves tasks as the flow of minimum cost requires. Returns whether any task moved.
    fn swap(
        &self,
        processes: &mut [StreamsProcess],
        places: &[usize],
        tasks: &[u32],
        subtopologies: Option<&[i32]>,
        how: Held,
    ) -> bool {
        if tasks.is_empty() {
            return false;
        }
        let holder = |task: u32| places.iter().position(|&at| processes[at].holds(task, how));
        let now: Vec<usize> = tasks.iter().filter_map(|&task| holder(task)).collect();
        let row = |&task: &u32| -> Vec<i64> {
            let cost = |&at: &usize| self.cost(task, &processes[at], how);
            places.iter().map(cost).collect()
        };
        let costs: Vec<Vec<i64>> = tasks.iter().map(row).collect();
        let chosen = match subtopologies {
            None => min_traffic(&costs, &now),
            Some(subtopologies) => {
                let ids = tasks.iter().map(|&task| self.topology.ids[task as usize].0);
                balance_subtopology(&costs, &now, &ids.collect::<Vec<_>>(), subtopologies)
            }
        };
        for ((&task, &old), &new) in tasks.iter().zip(&now).zip(&chosen) {
            if old != new {
                processes[places[old]].take(task);
                processes[places[new]].give(task, how, self.topology);
            }
        }
        chosen != now
    }

    /// Runs step 2: returns the cost of a task in a process.
    fn cost(&self, task: u32, process: &StreamsProcess, how: Held) -> i64 {
        let remote = |tps: &[Partition]| {
            let racks = tps
                .iter()
                .map(|tp| &self.topology.racks[tp.0 as usize][tp.1 as usize]);
            racks
                .filter(|racks| !racks.contains(&process.rack()))
                .count() as i64
        };
        let mut count = 0;
        if self.inputs {
            count += remote(&self.topology.inputs[task as usize]);
        }
        if self.changelogs {
            count += remote(&self.topology.changelogs[task as usize]);
        }
        if self.inputs && self.changelogs {
            // A source topic that is also a changelog counts once.
            let inputs = &self.topology.inputs[task as usize];
            let changelogs = self.topology.changelogs[task as usize].iter().copied();
            let both: Vec<Partition> = changelogs.filter(|tp| inputs.contains(tp)).collect();
            count -= remote(&both);
        }
        let (traffic, non_overlap) = self.costs;
        let here = process.holds(task, how);
        traffic * count + if here { 0 } else { non_overlap }
    }
}

fn counts(now: &[usize], processes: usize) -> Vec<i64> {
    let mut counts = vec![0; processes];
    for &at in now {
        counts[at] += 1;
    }
    counts
}

fn min_traffic(costs: &[Vec<i64>], now: &[usize]) -> Vec<usize> {
    let (tasks, processes) = (costs.len(), costs[0].len());
    let first = 1 + tasks;
    let sink = first + processes;
    let mut graph = Graph::new(sink + 1);
    let mut edges = Vec::new();
    for (task, row) in costs.iter().enumerate() {
        graph.add(SOURCE, 1 + task, 1, 0, 1);
        for (i, &cost) in row.iter().enumerate() {
            edges.push(graph.add(1 + task, first + i, 1, cost, i64::from(now[task] == i)));
        }
    }
    for (i, &count) in counts(now, processes).iter().enumerate() {
        graph.add(first + i, sink, count, 0, count);
    }
    graph.solve();
    chosen(&graph, &edges, processes)
}

fn balance_subtopology(
    costs: &[Vec<i64>],
    now: &[usize],
    ids: &[i32],
    subtopologies: &[i32],
) -> Vec<usize> {
    let (tasks, processes) = (costs.len(), costs[0].len());
    let second = 1 + tasks + processes * subtopologies.len();
    let sink = second + processes;
    let mut graph = Graph::new(sink + 1);
    let mut edges = Vec::new();
    let mut of_each = vec![0i64; subtopologies.len()];
    for (task, row) in costs.iter().enumerate() {
        let place = subtopologies.partition_point(|&one| one < ids[task]);
        of_each[place] += 1;
        graph.add(SOURCE, 1 + task, 1, 0, 0);
        for (i, &cost) in row.iter().enumerate() {
            let end = 1 + tasks + processes * place + i;
            edges.push(graph.add(1 + task, end, 1, cost, 0));
        }
    }
    for (i, &count) in counts(now, processes).iter().enumerate() {
        graph.add(second + i, sink, count, 0, 0);
        for (place, &of_one) in of_each
            .iter()
            .enumerate()
            .filter(|(_, of_one)| **of_one > 0)
        {
            let most = (count as f64 / tasks as f64 * of_one as f64).ceil() as i64;
            graph.add(1 + tasks + processes * place + i, second + i, most, 0, 0);
        }
    }
    graph.fill(SOURCE, sink);
    graph.solve();
    chosen(&graph, &edges, processes)
}

/// Returns, by task, the index of the process whose edge has flow.
fn chosen(graph: &Graph, edges: &[usize], processes: usize) -> Vec<usize> {
    let first = |of_one: &[usize]| of_one.iter().position(|&edge| graph.has_flow(edge));
    edges
        .chunks(processes)
        .map(|of_one| first(of_one).unwrap_or(0))
        .collect()
}
