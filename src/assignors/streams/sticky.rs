// SPDX-License-Identifier: Apache-2.0
//! Mirror of `sticky.py`: lets members keep their tasks, up to a quota. A member is its index in
//! the order of Java's map. Tasks are numbers, by subtopology and partition.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::GroupError;
use crate::group::model::{MemberId, NOBODY, TopicId, TopicPartition};
use crate::group::ownership::{Assignment, offsets};
use crate::group::spec::GroupSpec;
use crate::group::streams::{StreamsMember, Subtopology};
use crate::java::hash_map::slots_for;
use crate::java::hash_table::HashTable;
use crate::java::order::{by_rank, compare_names, name_ranks, string_hash, to_java_hash_order};
use crate::java::priority_queue::PriorityQueue;

pub const NAME: &str = "streams/sticky";

pub fn assign(group: &GroupSpec) -> Result<Assignment, GroupError> {
    let members = members(group)?;
    let topology = Topology::of(group);
    let mut work = Work::new(group, &topology, &members);
    work.give_active(&topology);
    if group.streams.num_standby_replicas > 0 {
        work.give_standby(&topology, group.streams.num_standby_replicas);
    }
    let lists = |tasks: Vec<Vec<u32>>| {
        let mut lists = vec![Vec::new(); members.len()];
        for (&(member, _), mut tasks) in members.iter().zip(tasks) {
            tasks.sort_unstable();
            let tasks = tasks.into_iter().map(|task| topology.task(task));
            lists[member as usize] = tasks.collect();
        }
        Assignment::of_lists(&lists)
    };
    let mut answer = lists(work.active);
    answer.standby = Some(Box::new(lists(work.standby)));
    Ok(answer)
}

fn members<'g, 'a>(
    group: &'g GroupSpec<'a>,
) -> Result<Vec<(MemberId, &'g StreamsMember<'a>)>, GroupError> {
    if group.streams.subtopologies.is_none() {
        let problem = format!("missing; {NAME} assigns their tasks");
        return Err(GroupError::new("subtopologies", problem));
    }
    for m in 0..group.members.len() as MemberId {
        if !group.streams.members.contains_key(&m) {
            let problem = format!("missing; {NAME} reads it");
            return Err(GroupError::new(format!("members[{m}].process_id"), problem));
        }
    }
    let order = group.members_in_order().iter();
    Ok(order.map(|&m| (m, &group.streams.members[&m])).collect())
}

/// The tasks of the group; the tasks of one subtopology have consecutive numbers.
struct Topology<'a> {
    /// Sorted by name.
    subtopologies: Vec<Subtopology<'a>>,
    /// By subtopology: the number of its first task; at the end, the total number of tasks.
    starts: Vec<u32>,
    /// By the subtopology's id: its index in `subtopologies`.
    places: FxHashMap<TopicId, usize>,
}

impl<'a> Topology<'a> {
    fn of(group: &GroupSpec<'a>) -> Self {
        let listed = group.streams.subtopologies.as_deref().unwrap_or_default();
        let ids: Vec<&str> = listed.iter().map(|one| one.subtopology_id).collect();
        let order = by_rank(&name_ranks(&ids)).into_iter();
        let subtopologies: Vec<Subtopology> = order.map(|i| listed[i as usize]).collect();
        let places = subtopologies.iter().enumerate();
        Self {
            starts: offsets(subtopologies.iter().map(|one| one.tasks)),
            places: places.map(|(place, one)| (one.topic, place)).collect(),
            subtopologies,
        }
    }

    fn len(&self) -> u32 {
        self.starts[self.subtopologies.len()]
    }

    fn task(&self, task: u32) -> TopicPartition {
        let place = self.starts.partition_point(|&start| start <= task) - 1;
        TopicPartition {
            topic: self.subtopologies[place].topic,
            partition: task - self.starts[place],
        }
    }

    fn number(&self, task: TopicPartition) -> Option<u32> {
        let &place = self.places.get(&task.topic)?;
        let exists = task.partition < self.subtopologies[place].tasks;
        exists.then(|| self.starts[place] + task.partition)
    }

    /// Returns the tasks of stateful subtopologies, or all, sorted by partition, then by
    /// subtopology.
    fn by_partition(&self, only_stateful: bool) -> Vec<u32> {
        let chosen = |place: &usize| !only_stateful || self.subtopologies[*place].stateful;
        let places = (0..self.subtopologies.len()).filter(chosen);
        let mut tasks: Vec<(u32, u32)> = places
            .flat_map(|place| (0..self.subtopologies[place].tasks).zip(self.starts[place]..))
            .collect();
        tasks.sort_unstable();
        tasks.into_iter().map(|(_, task)| task).collect()
    }
}

/// A quota: a member with `each` tasks or more does not get back more of its earlier tasks.
struct Quota {
    tasks: i64,
    members: i64,
    each: i64,
}

impl Quota {
    fn new(tasks: u128, members: usize) -> Self {
        let mut new = Self {
            tasks: tasks as i64,
            members: members as i64,
            each: 0,
        };
        new.divide();
        new
    }

    fn divide(&mut self) {
        // Rounded up, also if negative.
        let each = (-self.tasks).checked_div_euclid(self.members);
        self.each = -each.unwrap_or(0);
    }

    /// Updates the quota after a member got a task; `tasks` is the number of its tasks from now on.
    fn count(&mut self, tasks: u32) {
        if i64::from(tasks) == self.each {
            self.members -= 1;
            self.tasks -= i64::from(tasks);
            self.divide();
        }
    }
}

struct Process {
    /// The members' indices, in the order of Java's map.
    members: Vec<u32>,
    tasks: FxHashSet<u32>,
    load: f64,
    by_count: Option<PriorityQueue<u32, u32>>,
}

/// The tasks given to each member so far. Steps 1 and 2 prepare quotas, previous owners and
/// candidates; steps 3 to 7 give tasks.
struct Work {
    active_quota: Quota,
    quota: Quota,
    /// By member.
    active: Vec<Vec<u32>>,
    standby: Vec<Vec<u32>>,
    counts: Vec<u32>,
    process_of: Vec<u32>,
    processes: Vec<Process>,
    processes_in_order: Vec<u32>,
    /// By task.
    owner: Vec<u32>,
    candidates: Vec<u32>,
    candidates_of: FxHashMap<u32, Range<usize>>,
}

impl Work {
    fn new(group: &GroupSpec, topology: &Topology, members: &[(MemberId, &StreamsMember)]) -> Self {
        // 1.
        let replicas = group.streams.num_standby_replicas;
        let (process_of, processes, processes_in_order) = processes(group, members);
        // 2.
        let mut owner = vec![NOBODY; topology.len() as usize];
        let mut ranked = Vec::new();
        for (m, (_, member)) in (0..).zip(members) {
            for task in member
                .active_tasks
                .iter()
                .filter_map(|&t| topology.number(t))
            {
                owner[task as usize] = m;
            }
            let offsets = member.task_offsets.iter();
            let offsets: FxHashMap<TopicPartition, i64> = offsets.copied().collect();
            let standby: FxHashSet<_> = member.standby_tasks.iter().copied().collect();
            let reported = offsets.keys().filter(|task| !standby.contains(task));
            for &task in standby.iter().chain(reported) {
                let offset = offsets.get(&task).copied().unwrap_or(0);
                if let Some(number) = topology.number(task) {
                    ranked.push((number, !standby.contains(&task), Reverse(offset), m));
                }
            }
        }
        ranked.sort_unstable();
        let mut candidates_of = FxHashMap::default();
        let mut start = 0;
        for of_task in ranked.chunk_by(|a, b| a.0 == b.0) {
            candidates_of.insert(of_task[0].0, start..start + of_task.len());
            start += of_task.len();
        }
        Self {
            active_quota: Quota::new(group.streams.all_tasks(0), members.len()),
            quota: Quota::new(group.streams.all_tasks(replicas), members.len()),
            active: vec![Vec::new(); members.len()],
            standby: vec![Vec::new(); members.len()],
            counts: vec![0; members.len()],
            process_of,
            processes,
            processes_in_order,
            owner,
            candidates: ranked.into_iter().map(|place| place.3).collect(),
            candidates_of,
        }
    }

    fn give_active(&mut self, topology: &Topology) {
        // 3.
        let mut left = topology.by_partition(false);
        left.retain(|&task| {
            let owner = self.owner_of(task);
            !self.give_if(owner, task, true)
        });
        // 4.
        left.retain(|&task| {
            let best = self.best_candidate(task, false);
            !self.give_if(best, task, true)
        });
        // 5.
        let mut queue = self.processes_by_load();
        left.sort_unstable();
        for task in left {
            if let Some(p) = queue.poll() {
                let m = self.next_member(p);
                self.give(m, task, true);
                queue.add(self.processes[p as usize].load, p);
            }
        }
    }

    fn give_standby(&mut self, topology: &Topology, replicas: u32) {
        // 6.
        let mut missing = Vec::new();
        for task in topology.by_partition(true).into_iter().rev() {
            for given in 0..replicas {
                if !self.give_to_earlier(task) {
                    missing.push((task, replicas - given));
                    break;
                }
            }
        }
        // 7.
        let mut queue = self.processes_by_load();
        missing.sort_unstable_by_key(|&(task, _)| Reverse(task));
        for (task, replicas) in missing {
            for _ in 0..replicas {
                if !self.give_to_least_loaded(&mut queue, task) {
                    break;
                }
            }
        }
    }

    /// Gives one replica to the previous owner or the best candidate. Returns false if neither can
    /// take it.
    fn give_to_earlier(&mut self, task: u32) -> bool {
        let owner = self.owner_of(task).filter(|&m| !self.has(m, task));
        if self.give_if(owner, task, false) {
            return true;
        }
        let best = self.best_candidate(task, true);
        self.give_if(best, task, false)
    }

    /// Gives one replica to the least loaded process without the task. Returns false if all have
    /// it.
    fn give_to_least_loaded(&mut self, queue: &mut PriorityQueue<f64, u32>, task: u32) -> bool {
        let mut passed = Vec::new();
        let mut gave = false;
        while let Some(p) = queue.poll() {
            passed.push(p);
            if !self.processes[p as usize].tasks.contains(&task) {
                let m = self.next_member(p);
                self.give(m, task, false);
                gave = true;
                break;
            }
        }
        for p in passed.into_iter().rev() {
            queue.add(self.processes[p as usize].load, p);
        }
        gave
    }

    fn owner_of(&self, task: u32) -> Option<u32> {
        Some(self.owner[task as usize]).filter(|&m| m != NOBODY)
    }

    fn process(&self, m: u32) -> &Process {
        &self.processes[self.process_of[m as usize] as usize]
    }

    fn has(&self, m: u32, task: u32) -> bool {
        self.process(m).tasks.contains(&task)
    }

    /// Returns the best candidate; with `without_task`, only one whose process does not have the
    /// task.
    fn best_candidate(&self, task: u32, without_task: bool) -> Option<u32> {
        let range = self.candidates_of.get(&task)?.clone();
        let mut best: Option<(f64, u32, u32)> = None;
        for &m in &self.candidates[range] {
            if without_task && self.has(m, task) {
                continue;
            }
            let (load, count) = (self.process(m).load, self.counts[m as usize]);
            if best.is_none_or(|best| load < best.0 && count < best.1) {
                best = Some((load, count, m));
            }
        }
        best.map(|best| best.2)
    }

    /// Gives a task to a member that has fewer tasks than the quota. Returns whether it did.
    fn give_if(&mut self, m: Option<u32>, task: u32, active: bool) -> bool {
        let quota = if active {
            &self.active_quota
        } else {
            &self.quota
        };
        let fits = |&m: &u32| i64::from(self.counts[m as usize]) < quota.each;
        let Some(m) = m.filter(fits) else {
            return false;
        };
        self.processes[self.process_of[m as usize] as usize].by_count = None;
        self.give(m, task, active);
        true
    }

    fn give(&mut self, m: u32, task: u32, active: bool) {
        let count = &mut self.counts[m as usize];
        *count += 1;
        let process = &mut self.processes[self.process_of[m as usize] as usize];
        process.tasks.insert(task);
        process.load = process.tasks.len() as f64 / process.members.len() as f64;
        if active {
            self.active_quota.count(*count);
        }
        self.quota.count(*count);
        let lists = if active {
            &mut self.active
        } else {
            &mut self.standby
        };
        lists[m as usize].push(task);
    }

    /// Returns the process's member with the fewest tasks. The caller must give this member a task.
    fn next_member(&mut self, p: u32) -> u32 {
        let Process {
            members, by_count, ..
        } = &mut self.processes[p as usize];
        if members.len() == 1 {
            return members[0];
        }
        let queue = by_count.get_or_insert_with(|| {
            let mut queue = PriorityQueue::default();
            for &m in &*members {
                queue.add(self.counts[m as usize], m);
            }
            queue
        });
        // A process has members, so the queue has entries.
        let m = queue.poll().unwrap_or(members[0]);
        queue.add(self.counts[m as usize] + 1, m);
        m
    }

    fn processes_by_load(&self) -> PriorityQueue<f64, u32> {
        let mut queue = PriorityQueue::default();
        for &p in &self.processes_in_order {
            queue.add(self.processes[p as usize].load, p);
        }
        queue
    }
}

/// Returns the process of each member, all processes, and their order in Java's map.
fn processes(
    group: &GroupSpec,
    members: &[(MemberId, &StreamsMember)],
) -> (Vec<u32>, Vec<Process>, Vec<u32>) {
    let mut ids: Vec<&str> = Vec::new();
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut members_of: Vec<Vec<u32>> = Vec::new();
    let mut process_of = Vec::new();
    let mut table = HashTable::with_slots(slots_for(members.len()));
    for (m, (_, member)) in (0..).zip(members) {
        let p = *numbers.entry(member.process_id).or_insert_with(|| {
            ids.push(member.process_id);
            members_of.push(Vec::new());
            ids.len() as u32 - 1
        });
        let tie = |a: u32, b: u32| compare_names(ids[a as usize], ids[b as usize]);
        table.compute_if_absent(p, string_hash(member.process_id), &tie);
        members_of[p as usize].push(m);
        process_of.push(p);
    }
    let id = |&m: &u32| group.members[members[m as usize].0 as usize].member_id;
    let processes = members_of.into_iter().map(|mut members| {
        to_java_hash_order(&mut members, id);
        Process {
            members,
            tasks: FxHashSet::default(),
            load: 0.0,
            by_count: None,
        }
    });
    (process_of, processes.collect(), table.keys())
}
