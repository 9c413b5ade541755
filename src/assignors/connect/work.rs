// SPDX-License-Identifier: Apache-2.0
//! Mirror of `work.py`: the connectors and tasks of a worker. A connector or worker is a number:
//! the rank of its name. A task is one integer, made of its connector's rank and its task number.
//! So sorting the integers sorts by name.

use rustc_hash::FxHashMap;

use crate::java::order::{compare_names, copied_hash_order, string_hash};

/// The rank of a connector's name.
pub type ConnectorId = u32;
/// The rank of a worker's id.
pub type WorkerId = u32;
/// `connector << 32 | number`.
pub type TaskId = u64;

/// A list of connectors and a list of tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    pub connectors: Vec<ConnectorId>,
    pub tasks: Vec<TaskId>,
}

/// Names, and the rank of each name.
pub struct Names<'a> {
    names: Vec<&'a str>,
    ranks: FxHashMap<&'a str, u32>,
    hashes: Vec<u32>,
}

impl<'a> Names<'a> {
    pub fn of(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = names.collect();
        names.sort_by(|a, b| compare_names(a, b));
        names.dedup();
        Self {
            ranks: names.iter().copied().zip(0..).collect(),
            hashes: names.iter().map(|name| string_hash(name)).collect(),
            names,
        }
    }

    /// Returns the rank of a name, which must be one of those passed to `of`.
    pub fn rank(&self, name: &str) -> u32 {
        self.ranks[name]
    }

    pub fn name(&self, rank: u32) -> &'a str {
        self.names[rank as usize]
    }

    /// Returns connectors in the order of Java's `new HashSet(connectors)`, and tasks in the order
    /// of `new HashSet(tasks)`.
    pub fn in_hash_order(&self, work: &Work) -> Work {
        let hash = |id| self.hash(connector_of(id)).wrapping_mul(31);
        Work {
            connectors: in_hash_order(&work.connectors, |c| self.hash(c)),
            tasks: in_hash_order(&work.tasks, |id| hash(id).wrapping_add(id as u32)),
        }
    }

    fn hash(&self, connector: ConnectorId) -> u32 {
        self.hashes[connector as usize]
    }

    /// Returns the work in the order in which a worker reads it from the leader's bytes: connectors
    /// in hash order; tasks grouped by connector, first those of the connectors in
    /// `work.connectors`, in that hash order.
    pub fn after_wire(&self, work: &Work) -> Work {
        let connectors = in_hash_order(&work.connectors, |c| self.hash(c));
        let mut places: FxHashMap<ConnectorId, usize> = FxHashMap::default();
        let with_tasks = work.tasks.iter().map(|&id| connector_of(id));
        for connector in connectors.iter().copied().chain(with_tasks) {
            let next = places.len();
            places.entry(connector).or_insert(next);
        }
        let mut tasks = work.tasks.clone();
        tasks.sort_by_key(|&id| places[&connector_of(id)]);
        Work { connectors, tasks }
    }
}

/// Returns the entries in the order of Java's `new HashSet(list)`. Connector ranks and task ids
/// sort as their names do, which breaks ties.
fn in_hash_order<T: Ord + Copy>(list: &[T], hash: impl Fn(T) -> u32) -> Vec<T> {
    let hashes: Vec<u32> = list.iter().map(|&one| hash(one)).collect();
    let tie = |a: u32, b: u32| list[a as usize].cmp(&list[b as usize]);
    let order = copied_hash_order(&hashes, &tie).into_iter();
    order.map(|i| list[i as usize]).collect()
}

/// Returns all configured work, sorted; `config` maps each connector to its number of tasks.
pub fn configured(config: impl IntoIterator<Item = (ConnectorId, u32)>) -> Work {
    let mut work = Work::default();
    for (connector, count) in config {
        work.connectors.push(connector);
        work.tasks
            .extend((0..count).map(|number| task(connector, number)));
    }
    work.sorted()
}

pub fn task(connector: ConnectorId, number: u32) -> TaskId {
    u64::from(connector) << 32 | u64::from(number)
}

pub fn connector_of(id: TaskId) -> ConnectorId {
    (id >> 32) as ConnectorId
}

impl Work {
    pub fn is_empty(&self) -> bool {
        self.connectors.is_empty() && self.tasks.is_empty()
    }

    /// Returns the work sorted by name, without duplicates.
    pub fn sorted(mut self) -> Self {
        self.sort();
        self
    }

    /// Sorts in place and removes duplicates. Returns the entries that occurred more than once.
    pub fn sort(&mut self) -> Self {
        Self {
            connectors: sort(&mut self.connectors),
            tasks: sort(&mut self.tasks),
        }
    }

    /// Returns the work that is not in `other`; both must be sorted.
    pub fn minus(&self, other: &Self) -> Self {
        Self {
            connectors: minus(&self.connectors, &other.connectors),
            tasks: minus(&self.tasks, &other.tasks),
        }
    }

    /// Returns the work that is not in `other`; only `other` must be sorted.
    pub fn without(&self, other: &Self) -> Self {
        Self {
            connectors: without(&self.connectors, &other.connectors),
            tasks: without(&self.tasks, &other.tasks),
        }
    }

    /// Returns the work that is also in `other`, which must be sorted.
    pub fn within(&self, other: &Self) -> Self {
        Self {
            connectors: within(&self.connectors, &other.connectors),
            tasks: within(&self.tasks, &other.tasks),
        }
    }

    pub fn extend(&mut self, other: &Self) {
        self.connectors.extend_from_slice(&other.connectors);
        self.tasks.extend_from_slice(&other.tasks);
    }
}

fn sort<T: Ord + Copy>(list: &mut Vec<T>) -> Vec<T> {
    list.sort_unstable();
    let runs = list.chunk_by(|a, b| a == b).filter(|run| run.len() > 1);
    let repeated = runs.map(|run| run[0]).collect();
    list.dedup();
    repeated
}

fn minus<T: Ord + Copy>(sorted: &[T], other: &[T]) -> Vec<T> {
    let mut other = other.iter().peekable();
    let stays = |one: &&T| {
        while other.next_if(|&&next| next < **one).is_some() {}
        other.peek() != Some(one)
    };
    sorted.iter().filter(stays).copied().collect()
}

fn without<T: Ord + Copy>(some: &[T], sorted: &[T]) -> Vec<T> {
    let stays = |one: &&T| sorted.binary_search(one).is_err();
    some.iter().filter(stays).copied().collect()
}

fn within<T: Ord + Copy>(some: &[T], sorted: &[T]) -> Vec<T> {
    let stays = |one: &&T| sorted.binary_search(one).is_ok();
    some.iter().filter(stays).copied().collect()
}
