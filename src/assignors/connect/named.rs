// SPDX-License-Identifier: Apache-2.0
//! The door: specs, memories and answers with names, as JSON has them, to numbers and back.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::memory::Memory;
use super::spec::{Answer, ConnectSpec};
use super::work::{Names, Work, WorkerId, connector_of, task};

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NamedWork {
    pub connectors: Vec<String>,
    pub tasks: Vec<(String, u32)>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NamedMemory {
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

#[derive(Clone, Debug, Deserialize)]
pub struct NamedSpec {
    /// In member order.
    pub running: Vec<(String, NamedWork)>,
    /// Connector to number of tasks.
    pub config: BTreeMap<String, u32>,
    pub max_delay_ms: i64,
    pub generation_id: i32,
    pub last_completed_generation_id: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedAnswer {
    pub assigned: Vec<(String, NamedWork)>,
    pub revoked: Vec<(String, NamedWork)>,
    pub delay_ms: i64,
    pub scheduled_rebalance_ms: i64,
}

/// Names of everything that a round speaks of.
pub fn names<'a>(memory: &'a NamedMemory, spec: &'a NamedSpec) -> (Names<'a>, Names<'a>) {
    let reported = spec.running.iter().map(|(_, work)| work);
    let mut connectors: FxHashSet<&str> = spec.config.keys().map(String::as_str).collect();
    for work in reported.chain([&memory.assigned, &memory.revoked]) {
        connectors.extend(work.connectors.iter().map(String::as_str));
        connectors.extend(work.tasks.iter().map(|(connector, _)| connector.as_str()));
    }
    let workers = spec.running.iter().map(|(id, _)| id);
    let known = memory.members.iter().chain(&memory.candidates);
    (
        Names::of(connectors.into_iter()),
        Names::of(workers.chain(known).map(String::as_str)),
    )
}

impl NamedMemory {
    pub fn numbered(&self, connectors: &Names, workers: &Names) -> Memory {
        let ranks =
            |ids: &[String]| -> Vec<WorkerId> { ids.iter().map(|id| workers.rank(id)).collect() };
        Memory {
            assigned: self.assigned.numbered(connectors).sorted(),
            revoked: self.revoked.numbered(connectors).sorted(),
            generation_id: self.generation_id,
            members: ranks(&self.members),
            candidates: ranks(&self.candidates),
            scheduled_rebalance_ms: self.scheduled_rebalance_ms,
            delay_ms: self.delay_ms,
            revoked_in_previous: self.revoked_in_previous,
            revoking_rounds: self.revoking_rounds,
        }
    }

    pub fn of(memory: &Memory, connectors: &Names, workers: &Names) -> Self {
        let ids = |ids: &[WorkerId]| ids.iter().map(|&id| workers.name(id).into()).collect();
        Self {
            assigned: NamedWork::of(&memory.assigned, connectors),
            revoked: NamedWork::of(&memory.revoked, connectors),
            generation_id: memory.generation_id,
            members: ids(&memory.members),
            candidates: ids(&memory.candidates),
            scheduled_rebalance_ms: memory.scheduled_rebalance_ms,
            delay_ms: memory.delay_ms,
            revoked_in_previous: memory.revoked_in_previous,
            revoking_rounds: memory.revoking_rounds,
        }
    }
}

impl NamedSpec {
    pub fn numbered(&self, connectors: &Names, workers: &Names) -> ConnectSpec {
        let running = self.running.iter();
        ConnectSpec {
            running: running
                .map(|(id, work)| (workers.rank(id), work.numbered(connectors)))
                .collect(),
            target: configured(&self.config, connectors),
            max_delay_ms: self.max_delay_ms,
            generation_id: self.generation_id,
            last_completed_generation_id: self.last_completed_generation_id,
        }
    }
}

impl NamedAnswer {
    pub fn of(answer: &Answer, connectors: &Names, workers: &Names) -> Self {
        let named = |works: &[(WorkerId, Work)]| {
            let works = works.iter();
            works
                .map(|(id, work)| (workers.name(*id).into(), NamedWork::of(work, connectors)))
                .collect()
        };
        Self {
            assigned: named(&answer.assigned),
            revoked: named(&answer.revoked),
            delay_ms: answer.delay_ms,
            scheduled_rebalance_ms: answer.scheduled_rebalance_ms,
        }
    }
}

impl NamedWork {
    fn numbered(&self, names: &Names) -> Work {
        let tasks = self.tasks.iter();
        Work {
            connectors: self
                .connectors
                .iter()
                .map(|name| names.rank(name))
                .collect(),
            tasks: tasks
                .map(|(name, number)| task(names.rank(name), *number))
                .collect(),
        }
    }

    pub fn of(work: &Work, names: &Names) -> Self {
        let name = |connector: u32| names.name(connector).to_owned();
        let tasks = work.tasks.iter();
        Self {
            connectors: work
                .connectors
                .iter()
                .map(|&connector| name(connector))
                .collect(),
            tasks: tasks
                .map(|&id| (name(connector_of(id)), id as u32))
                .collect(),
        }
    }
}

/// All connectors and tasks that there should be, sorted.
pub fn configured(config: &BTreeMap<String, u32>, names: &Names) -> Work {
    let mut work = Work::default();
    for (name, &count) in config {
        let connector = names.rank(name);
        work.connectors.push(connector);
        work.tasks
            .extend((0..count).map(|number| task(connector, number)));
    }
    work.sorted()
}
