// SPDX-License-Identifier: Apache-2.0
//! Converts the best possible result of a group for `plans/possible/optimum.py`, with topics' names
//! instead of their numbers.

use pyo3::prelude::*;

use super::assign::{Columns, columns};
use super::group::Interned;
use crate::assignors::balance::budget::curve_points;
use crate::assignors::balance::classes::Classes;
use crate::assignors::balance::levels::levels;
use crate::assignors::balance::network::fewest_taken;
use crate::plans::possible::optimum;

/// The fields of `optimum.Level`; `members` are indices of the group's members.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
#[derive(Clone)]
pub struct Level {
    load: i64,
    extra: i64,
    topics: Vec<String>,
    members: Vec<u32>,
    partitions: i64,
}

/// The fields of `optimum.Possible`; `member_prices` holds pairs of a member's index and its price.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Possible {
    least_moves: i64,
    levels: Vec<Level>,
    assignment: Py<Columns>,
    topic_prices: Vec<(String, i64)>,
    member_prices: Vec<(u32, i64)>,
}

impl Possible {
    /// `topic_names` holds the names by topic number; `best` is the best assignment.
    pub fn of(
        py: Python<'_>,
        found: &optimum::Possible,
        topic_names: &[impl AsRef<str>],
        best: Columns,
    ) -> PyResult<Self> {
        let classes = &found.classes;
        let names = |c: u32| {
            let topics = classes.topics[c as usize].iter();
            topics.map(|&topic| topic_names[topic as usize].as_ref().to_owned())
        };
        let levels = found.levels.iter().map(|level| {
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
        let prices = found.moved.iter().flat_map(|level| &level.topic_prices);
        let prices = prices.flat_map(|&(c, price)| names(c).map(move |topic| (topic, price)));
        let of_members = found.moved.iter().flat_map(|level| &level.member_prices);
        Ok(Self {
            least_moves: found.least_moves,
            levels: levels.collect(),
            assignment: Py::new(py, best)?,
            topic_prices: prices.collect(),
            member_prices: of_members.copied().collect(),
        })
    }
}

#[pyfunction]
pub fn best_possible(py: Python<'_>, group: &Bound<'_, Interned>) -> PyResult<Possible> {
    let spec = group.get().spec();
    let (found, best) = py.detach(|| {
        let found = optimum::Possible::of(spec);
        let best = found.assignment(spec);
        (found, best)
    });
    Possible::of(py, &found, &spec.topic_names(), columns(py, spec, &best)?)
}

/// Returns the fields of `CurvePoint` for each point up to `most`, and the number of partitions
/// that the best balance takes from their owners.
#[pyfunction]
pub fn balance_curve(
    py: Python<'_>,
    group: &Bound<'_, Interned>,
    most: i64,
) -> (Vec<[i64; 5]>, i64) {
    let spec = group.get().spec();
    py.detach(|| {
        let classes = Classes::of(spec);
        let points = curve_points(&classes, most).into_iter();
        let fields = points.map(|p| [p.taken_at_most, p.taken, p.greatest, p.squares, p.bound]);
        (
            fields.collect(),
            fewest_taken(spec, &classes, &levels(&classes)),
        )
    })
}
