// SPDX-License-Identifier: Apache-2.0
//! The best balance of a group, and the least moves to it, with names in place of numbers.

use pyo3::prelude::*;

use super::assign::{Columns, columns};
use super::group::Interned;
use crate::group::model::GroupSpec;
use crate::group::ownership::Assignment;
use crate::plans::possible::optimum;

/// The fields of `optimum.Level`; members are given by their place in the group.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
#[derive(Clone)]
pub struct Level {
    load: i64,
    extra: i64,
    topics: Vec<String>,
    members: Vec<u32>,
    partitions: i64,
}

/// The fields of `optimum.Possible`; member prices have the member's place in the group.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Possible {
    least_moves: i64,
    levels: Vec<Level>,
    assignment: Py<Columns>,
    topic_prices: Vec<(String, i64)>,
    member_prices: Vec<(u32, i64)>,
}

/// The data of `Possible`, computed without the interpreter.
pub struct Found {
    least_moves: i64,
    levels: Vec<Level>,
    assignment: Assignment,
    topic_prices: Vec<(String, i64)>,
    member_prices: Vec<(u32, i64)>,
}

impl Found {
    pub fn of(spec: &GroupSpec) -> Self {
        let possible = optimum::Possible::of(spec);
        let classes = &possible.classes;
        let names = |c: u32| {
            let topics = classes.topics[c as usize].iter();
            topics.map(|&topic| spec.topics[topic as usize].name.to_owned())
        };
        let levels = possible.levels.iter().map(|level| {
            let of_class = |&k: &u32| classes.members[k as usize].clone();
            let mut members: Vec<u32> = level.members.iter().flat_map(of_class).collect();
            members.sort_unstable();
            let supply = level.topics.iter().map(|&c| classes.supply[c as usize]);
            Level {
                load: level.load,
                extra: level.extra,
                topics: level.topics.iter().flat_map(|&c| names(c)).collect(),
                members,
                partitions: supply.sum(),
            }
        });
        let prices = possible.topic_prices().into_iter();
        let prices = prices.flat_map(|(c, price)| names(c).map(move |topic| (topic, price)));
        Self {
            least_moves: possible.least_moves,
            levels: levels.collect(),
            topic_prices: prices.collect(),
            member_prices: possible.member_prices(),
            assignment: possible.assignment(spec),
        }
    }

    /// `columns` converts an assignment to columns.
    pub fn record(
        self,
        py: Python<'_>,
        columns: impl Fn(&Assignment) -> PyResult<Columns>,
    ) -> PyResult<Possible> {
        Ok(Possible {
            least_moves: self.least_moves,
            levels: self.levels,
            assignment: Py::new(py, columns(&self.assignment)?)?,
            topic_prices: self.topic_prices,
            member_prices: self.member_prices,
        })
    }
}

#[pyfunction]
pub fn best_possible(py: Python<'_>, group: &Bound<'_, Interned>) -> PyResult<Possible> {
    let spec = group.get().spec();
    let found = py.detach(|| Found::of(spec));
    found.record(py, |assignment| columns(py, spec, assignment))
}
