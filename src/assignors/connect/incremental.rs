// SPDX-License-Identifier: Apache-2.0
//! Mirror of `incremental.py`: one round of the leader (one rebalance), in the steps that the
//! Python module explains. Sets are sorted lists of integers.

use rustc_hash::FxHashMap;

use super::work::{Names, Work, WorkerId};
use crate::error::GroupError;
use crate::java::order::to_java_hash_order;

/// The input of one round.
pub struct ConnectSpec {
    /// The workers in member order, each with the work that it reports as running.
    pub running: Vec<(WorkerId, Work)>,
    /// All configured work, sorted.
    pub target: Work,
    pub max_delay_ms: i64,
    pub generation_id: i32,
    pub last_completed_generation_id: i32,
}

/// Mirror of `Result`.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// Both `assigned` and `revoked` are in member order.
    pub assigned: Vec<(WorkerId, Work)>,
    pub revoked: Vec<(WorkerId, Work)>,
    pub delay_ms: i64,
    pub scheduled_rebalance_ms: i64,
}

/// The data that the leader keeps from one rebalance to the next.
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

/// A worker, and its work as it changes during the round.
struct Worker {
    id: WorkerId,
    work: Work,
    /// How many connectors and tasks the worker keeps. They come first in `work`; new ones follow.
    kept: (usize, usize),
    revoked: Work,
}

/// The state of a round while it is computed.
struct Leader<'a> {
    now_ms: i64,
    max_delay_ms: i64,
    /// All workers, in the order of a HashMap of their ids.
    workers: Vec<Worker>,
    names: &'a Names<'a>,
    /// The leader's memory: at first after the last round; from `remember` on, after this round.
    memory: Memory,
}

/// Computes one round. `connectors` and `workers` hold the names for this round's numbers.
pub fn handle(
    memory: &Memory,
    spec: &ConnectSpec,
    now_ms: i64,
    connectors: &Names,
    workers: &Names,
) -> Result<(Memory, Answer), GroupError> {
    if spec.running.is_empty() {
        return Err(GroupError::assignor_throws(
            "connect/incremental",
            "IndexOutOfBoundsException",
            "there is no worker",
        ));
    }
    let target = &spec.target;
    let mut active = combined(spec.running.iter().map(|(_, work)| work));
    let duplicated = active.sort();
    // 1. Find out which work was assigned before this round.
    let mut previous = Work::default();
    if memory.generation_id == spec.last_completed_generation_id {
        previous = memory.assigned.clone();
    }
    if !memory.revoked.within(&active).is_empty() {
        previous = active.clone();
    }
    // 2. Compare the assigned, the running and the configured work.
    let deleted = previous.minus(target);
    let lost = previous.minus(&active).minus(&deleted);
    let created = target.minus(&previous).minus(&active);
    let mut leader = Leader {
        now_ms,
        max_delay_ms: spec.max_delay_ms,
        workers: Vec::new(),
        names: workers,
        memory: memory.clone(),
    };
    // 3. Revoke work that is deleted, or that runs on more than one worker.
    for i in hash_order(spec, workers) {
        let (id, reported) = &spec.running[i as usize];
        let mut worker = Worker {
            id: *id,
            revoked: Work::default(),
            kept: (0, 0),
            work: reported.clone(),
        };
        for gone in [&deleted, &duplicated] {
            worker.revoke(&running_of(connectors, reported, gone));
        }
        leader.workers.push(worker);
    }
    // 4. Let lost work wait for its worker, or assign it.
    let kept = |worker: &Worker| (worker.work.connectors.len(), worker.work.tasks.len());
    for worker in &mut leader.workers {
        worker.kept = kept(worker);
    }
    let lost_as_new = leader.handle_lost(&lost);
    // 5. If no work waits, revoke excess work from workers with more than their share.
    if leader.memory.delay_ms == 0 {
        leader.balance_load(target);
    } else {
        leader.memory.revoked_in_previous = false;
    }
    // 6. Assign new work. No work is both created and lost, so no work is assigned twice.
    let mut new = created;
    new.extend(&lost_as_new);
    deal(&mut leader.workers, &new.connectors, |worker| {
        &mut worker.work.connectors
    });
    deal(&mut leader.workers, &new.tasks, |worker| {
        &mut worker.work.tasks
    });
    Ok((leader.remember(spec, &lost), leader.answer(spec)))
}

/// Returns the indices of the workers in the order of Kafka's HashMap, which is a copy of another
/// HashMap that was filled in member order.
fn hash_order(spec: &ConnectSpec, workers: &Names) -> Vec<u32> {
    let id = |&i: &u32| workers.name(spec.running[i as usize].0);
    let mut order: Vec<u32> = (0..spec.running.len() as u32).collect();
    to_java_hash_order(&mut order, id);
    to_java_hash_order(&mut order, id);
    order
}

fn combined<'w>(works: impl Iterator<Item = &'w Work>) -> Work {
    let mut all = Work::default();
    for work in works {
        all.extend(work);
    }
    all
}

/// Returns the part of `running` that is in `gone`, in the order of a HashSet of all of `running`.
fn running_of(names: &Names, running: &Work, gone: &Work) -> Work {
    if running.within(gone).is_empty() {
        return Work::default(); // an empty list needs no order
    }
    names.in_hash_order(running).within(gone)
}

impl Worker {
    fn revoke(&mut self, gone: &Work) {
        if gone.is_empty() {
            return;
        }
        let new = gone.without(&self.revoked.clone().sorted());
        self.revoked.extend(&new);
        self.work = self.work.without(&gone.clone().sorted());
    }
}

impl Leader<'_> {
    /// Lets lost work wait for its worker, or assigns it. Returns the part that counts as new work.
    fn handle_lost(&mut self, lost: &Work) -> Work {
        if lost.is_empty() && !self.memory.revoked_in_previous {
            self.end_wait();
            return Work::default();
        }
        let place = |id: &WorkerId| self.workers.iter().position(|worker| worker.id == *id);
        if self.memory.scheduled_rebalance_ms <= 0
            && self.memory.members.iter().all(|id| place(id).is_some())
        {
            return lost.clone(); // no worker is missing, so some worker did not get its assignment
        }
        if self.max_delay_ms == 0 {
            return lost.clone();
        }
        if 0 < self.memory.scheduled_rebalance_ms
            && self.memory.scheduled_rebalance_ms <= self.now_ms
        {
            let takers: Vec<usize> = self.memory.candidates.iter().filter_map(place).collect();
            if !takers.is_empty() {
                for (&connector, &w) in lost.connectors.iter().zip(takers.iter().cycle()) {
                    self.workers[w].work.connectors.push(connector);
                }
                for (&task, &w) in lost.tasks.iter().zip(takers.iter().cycle()) {
                    self.workers[w].work.tasks.push(task);
                }
            }
            self.end_wait();
            self.memory.revoked_in_previous = false;
            return if takers.is_empty() {
                lost.clone()
            } else {
                Work::default()
            };
        }
        let empty = self.workers.iter().filter(|worker| worker.work.is_empty());
        let mut empty: Vec<WorkerId> = empty.map(|worker| worker.id).collect();
        to_java_hash_order(&mut empty, |&id| self.names.name(id));
        for id in empty {
            if !self.memory.candidates.contains(&id) {
                self.memory.candidates.push(id);
            }
        }
        let left_ms = self.memory.scheduled_rebalance_ms - self.now_ms;
        self.memory.delay_ms = if left_ms > 0 {
            left_ms.min(self.max_delay_ms)
        } else {
            self.max_delay_ms
        };
        self.memory.scheduled_rebalance_ms = self.now_ms + self.memory.delay_ms;
        Work::default()
    }

    fn end_wait(&mut self) {
        self.memory.candidates.clear();
        self.memory.scheduled_rebalance_ms = 0;
        self.memory.delay_ms = 0;
    }

    fn balance_load(&mut self, target: &Work) {
        let surplus = self.surplus(target);
        let any = surplus.iter().any(|work| !work.is_empty());
        if any && self.memory.revoked_in_previous {
            self.memory.revoking_rounds += 1;
            self.memory.delay_ms = backoff_ms(self.memory.revoking_rounds, self.max_delay_ms);
            if self.memory.delay_ms != 0 {
                self.memory.scheduled_rebalance_ms = self.now_ms + self.memory.delay_ms;
            } else {
                self.revoke(&surplus);
            }
        } else if any {
            self.revoke(&surplus);
            self.memory.revoked_in_previous = true;
        } else if self.memory.revoked_in_previous {
            self.memory.revoked_in_previous = false;
            self.memory.revoking_rounds = 0;
        }
    }

    fn revoke(&mut self, surplus: &[Work]) {
        for (worker, gone) in self.workers.iter_mut().zip(surplus) {
            let given = (
                worker.work.connectors.len() - worker.kept.0,
                worker.work.tasks.len() - worker.kept.1,
            );
            worker.revoke(gone);
            // Work is revoked from the front of the lists, so the new work is still at their ends.
            worker.kept.0 = worker.work.connectors.len().saturating_sub(given.0);
            worker.kept.1 = worker.work.tasks.len().saturating_sub(given.1);
        }
    }

    /// Returns, by worker, the work above its share, which the worker has to stop.
    fn surplus(&self, target: &Work) -> Vec<Work> {
        let mut surplus = vec![Work::default(); self.workers.len()];
        if target.is_empty() || self.workers.iter().all(|worker| worker.work.is_empty()) {
            return surplus;
        }
        let sizes = |size: fn(&Work) -> usize| -> Vec<usize> {
            self.workers
                .iter()
                .map(|worker| size(&worker.work))
                .collect()
        };
        let connectors = above_share(
            &sizes(|work| work.connectors.len()),
            target.connectors.len(),
        );
        let tasks = above_share(&sizes(|work| work.tasks.len()), target.tasks.len());
        for (w, worker) in self.workers.iter().enumerate() {
            surplus[w].connectors = worker.work.connectors[..connectors[w]].to_vec();
            surplus[w].tasks = worker.work.tasks[..tasks[w]].to_vec();
        }
        surplus
    }

    fn remember(&self, spec: &ConnectSpec, lost: &Work) -> Memory {
        let revoked = combined(self.workers.iter().map(|worker| &worker.revoked)).sorted();
        let held = combined(self.workers.iter().map(|worker| &worker.work));
        let mut assigned = held.without(&revoked);
        assigned.extend(lost);
        Memory {
            assigned: assigned.sorted(),
            revoked,
            generation_id: spec.generation_id,
            members: spec.running.iter().map(|&(id, _)| id).collect(),
            ..self.memory.clone()
        }
    }

    fn answer(self, spec: &ConnectSpec) -> Answer {
        // `assigned` contains only new work, which follows the kept work in the lists.
        let assigned = |worker: &Worker| Work {
            connectors: worker.work.connectors[worker.kept.0..].to_vec(),
            tasks: worker.work.tasks[worker.kept.1..].to_vec(),
        };
        let by_id: FxHashMap<WorkerId, &Worker> = self
            .workers
            .iter()
            .map(|worker| (worker.id, worker))
            .collect();
        let each = |work: &dyn Fn(&Worker) -> Work| -> Vec<(WorkerId, Work)> {
            let ids = spec.running.iter().map(|&(id, _)| id);
            ids.map(|id| (id, work(by_id[&id]))).collect()
        };
        Answer {
            assigned: each(&assigned),
            revoked: each(&|worker| worker.revoked.clone()),
            delay_ms: self.memory.delay_ms,
            scheduled_rebalance_ms: self.memory.scheduled_rebalance_ms,
        }
    }
}

/// Returns how many connectors (or tasks) each worker has to stop; `held` is how many each runs.
fn above_share(held: &[usize], total: usize) -> Vec<usize> {
    let share = total / held.len();
    let mut extras = total % held.len();
    let exactly = |size| held.iter().filter(|&&held| held == size).count();
    let mut surplus = vec![0; held.len()];
    let above = exactly(share + 1);
    if above == extras && exactly(share) + above == held.len() {
        return surplus;
    }
    for (surplus, &held) in surplus.iter_mut().zip(held) {
        if held <= share {
            continue;
        }
        let mut keep = share;
        if extras > 0 {
            extras -= 1;
            keep += 1;
        }
        *surplus = held - keep;
    }
    surplus
}

/// Assigns `new` work to the workers, sorted by how many entries they hold, then by id. The workers
/// that hold the fewest get one entry each, in this order, until no work is left.
fn deal<T: Copy>(workers: &mut [Worker], new: &[T], held: impl Fn(&mut Worker) -> &mut Vec<T>) {
    let mut order: Vec<(usize, WorkerId, usize)> = workers
        .iter_mut()
        .enumerate()
        .map(|(w, worker)| (held(worker).len(), worker.id, w))
        .collect();
    order.sort_unstable();
    let mut left = new.iter();
    while left.len() > 0 {
        let level = order[0].0;
        for (size, _, w) in &mut order {
            if *size > level {
                break;
            }
            let Some(&one) = left.next() else { break };
            held(&mut workers[*w]).push(one);
            *size += 1;
        }
    }
}

/// Returns the back-off in milliseconds after `rounds` successive rounds with work to revoke; at
/// most `max_delay_ms`.
pub fn backoff_ms(rounds: i64, max_delay_ms: i64) -> i64 {
    let first = max_delay_ms.min(1);
    if max_delay_ms <= first {
        return first;
    }
    let exponent =
        (rounds as f64).min((max_delay_ms as f64 / first.max(1) as f64).ln() / 40f64.ln());
    ((first as f64 * 40f64.powf(exponent)) as i64).min(max_delay_ms)
}
