// SPDX-License-Identifier: Apache-2.0
//! One group from Python objects, or many from contract lines.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use self_cell::self_cell;

use super::{by_name, raise};
use crate::bulk::lines::{self, Options};
use crate::error::GroupError;
use crate::group::model::{AsSent, GroupBuilder, GroupSpec, MemberFields, UserData};
use crate::group::ownership::Assignment;
use crate::interrupt::Interrupt;

/// `model.Topic`.
#[derive(FromPyObject)]
struct Topic {
    name: PyBackedStr,
    partitions: u32,
    racks: Option<Vec<Vec<Option<PyBackedStr>>>>,
}

/// `model.Member`.
#[derive(FromPyObject)]
struct Member {
    member_id: PyBackedStr,
    topics: Vec<PyBackedStr>,
    group_instance_id: Option<PyBackedStr>,
    client_id: Option<PyBackedStr>,
    owned_partitions: Vec<(PyBackedStr, u32)>,
    generation_id: Option<i32>,
    rack_id: Option<PyBackedStr>,
    subscription_version: Option<u8>,
    user_data: Option<PyBackedStr>,
    user_data_generation_id: Option<i32>,
}

/// `model.GroupSpec`, its names held in place.
#[derive(FromPyObject)]
pub struct Group {
    group_id: PyBackedStr,
    topics: Vec<Topic>,
    members: Vec<Member>,
}

impl Group {
    /// Validated when the Python object was made; here it is only numbered.
    fn spec(&self) -> Result<GroupSpec<'_>, GroupError> {
        let mut builder = GroupBuilder::new(&self.group_id, None);
        for topic in &self.topics {
            builder.topic(&topic.name, topic.partitions);
            if let Some(racks) = &topic.racks {
                builder.topic_racks();
                for racks in racks {
                    builder.replica_racks(racks.iter().flatten().map(|rack| &**rack));
                }
            }
        }
        for member in &self.members {
            builder.member(MemberFields {
                member_id: &member.member_id,
                group_instance_id: member.group_instance_id.as_deref(),
                client_id: member.client_id.as_deref(),
                rack_id: member.rack_id.as_deref(),
                generation_id: member.generation_id,
                as_sent: AsSent {
                    subscription_version: member.subscription_version,
                    // Validated when the Python object was made.
                    user_data: member
                        .user_data
                        .as_deref()
                        .and_then(|name| UserData::by_name(name).ok()),
                    user_data_generation_id: member.user_data_generation_id,
                },
            });
            for topic in &member.topics {
                let topic = builder.topic_id(topic);
                builder.subscribe(topic);
            }
            for (topic, partition) in &member.owned_partitions {
                let topic = builder.topic_id(topic);
                builder.own(topic, *partition);
            }
        }
        builder.finish(u64::MAX)
    }
}

self_cell! {
    struct Cell {
        owner: Group,
        #[covariant]
        dependent: GroupSpec,
    }
}

/// A group that is numbered once, and asked about as often as one likes.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct Interned(Cell);

impl Interned {
    fn spec(&self) -> &GroupSpec<'_> {
        self.0.borrow_dependent()
    }
}

/// Numbers a group's names; the objects that it was made from need not be kept.
#[pyfunction]
pub fn intern(py: Python<'_>, group: Group) -> PyResult<Interned> {
    let cell = py.detach(|| Cell::try_new(group, Group::spec));
    Ok(Interned(cell.map_err(|error| raise(py, &error))?))
}

/// Beyond this, names and partitions together, a computation may last: it can be interrupted.
const SHORT: usize = 20_000;
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter lock. Work on a large group has a thread of its own, while
/// this one looks for signals: Ctrl-C ends both.
fn interruptibly<T: Send>(
    py: Python<'_>,
    group: &GroupSpec,
    work: impl FnOnce(&Interrupt) -> Result<T, GroupError> + Send,
) -> PyResult<T> {
    let never = Interrupt::default();
    if group.size() <= SHORT {
        let done = py.detach(|| work(&never));
        return done.map_err(|error| raise(py, &error));
    }
    let interrupt = Interrupt::default();
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped when the work is done, which ends the waiting.
                let _sender = sender;
                work(&interrupt)
            });
            while receiver.recv_timeout(LOOK_FOR_SIGNALS) == Err(RecvTimeoutError::Timeout) {
                if let Err(signal) = Python::attach(|py| py.check_signals()) {
                    interrupt.request();
                    return Err(signal);
                }
            }
            Ok(worker.join())
        })
    });
    match done? {
        Ok(done) => done.map_err(|error| raise(py, &error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// An assignment with the names that it is told with.
struct Answer {
    topics: Vec<String>,
    answer: Assignment,
    anomalies: Vec<(&'static str, String, u32, Option<String>)>,
}

/// Columns of an answer: topic names, then native u32s: offsets, topic ids, partitions; anomalies.
type Columns<'py> = (
    Vec<String>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Vec<(&'static str, String, u32, Option<String>)>,
);

impl Answer {
    fn of(group: &GroupSpec, answer: Assignment) -> Self {
        let anomalies = answer.anomalies.iter().map(|anomaly| {
            let topic = group.topics[anomaly.partition.topic as usize].name;
            let member = anomaly.member.map(|m| group.members[m as usize].member_id);
            (
                anomaly.kind.name(),
                topic.to_owned(),
                anomaly.partition.partition,
                member.map(ToOwned::to_owned),
            )
        });
        Self {
            anomalies: anomalies.collect(),
            topics: group.topic_names().into_iter().map(Into::into).collect(),
            answer,
        }
    }

    fn columns(self, py: Python<'_>) -> Columns<'_> {
        let native = |numbers: &mut dyn Iterator<Item = u32>| {
            let bytes: Vec<u8> = numbers.flat_map(u32::to_ne_bytes).collect();
            PyBytes::new(py, &bytes)
        };
        (
            self.topics,
            native(&mut self.answer.offsets.iter().copied()),
            native(&mut self.answer.partitions.iter().map(|tp| tp.topic)),
            native(&mut self.answer.partitions.iter().map(|tp| tp.partition)),
            self.anomalies,
        )
    }
}

#[pyfunction]
pub fn assign<'py>(
    py: Python<'py>,
    group: &Bound<'py, Interned>,
    assignor: &str,
) -> PyResult<Columns<'py>> {
    let Some(assignor) = by_name(py, Some(assignor))? else {
        return Err(pyo3::exceptions::PyValueError::new_err("no assignor"));
    };
    let spec = group.get().spec();
    let answer = interruptibly(py, spec, |interrupt| {
        Ok(Answer::of(spec, assignor.assign_until(spec, interrupt)?))
    })?;
    Ok(answer.columns(py))
}

/// Load, extra, topics, members, partitions.
type Level = (i64, i64, Vec<String>, Vec<u32>, i64);

type Possible<'py> = (
    i64,
    Vec<Level>,
    Columns<'py>,
    Vec<(String, i64)>,
    Vec<(u32, i64)>,
);

#[pyfunction]
pub fn best_possible<'py>(
    py: Python<'py>,
    group: &Bound<'py, Interned>,
) -> PyResult<Possible<'py>> {
    let spec = group.get().spec();
    let (moves, levels, answer, topic_prices, member_prices) = py.detach(|| {
        let possible = crate::plans::possible::optimum::Possible::of(spec);
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
            (
                level.load,
                level.extra,
                level.topics.iter().flat_map(|&c| names(c)).collect(),
                members,
                supply.sum(),
            )
        });
        let levels: Vec<Level> = levels.collect();
        let topic_prices = possible.topic_prices().into_iter();
        let topic_prices =
            topic_prices.flat_map(|(c, price)| names(c).map(move |topic| (topic, price)));
        let topic_prices: Vec<(String, i64)> = topic_prices.collect();
        (
            possible.least_moves,
            levels,
            Answer::of(spec, possible.assignment(spec)),
            topic_prices,
            possible.member_prices(),
        )
    });
    Ok((
        moves,
        levels,
        answer.columns(py),
        topic_prices,
        member_prices,
    ))
}

#[pyfunction]
pub fn assign_lines<'py>(
    py: Python<'py>,
    lines: Vec<PyBackedBytes>,
    first: u64,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
) -> PyResult<Vec<(Bound<'py, PyBytes>, bool)>> {
    let options = Options {
        assignor: by_name(py, assignor)?,
        max_partitions,
        threads,
    };
    let answers = py.detach(|| {
        let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).collect();
        lines::assign_lines(&lines, first, options)
    });
    let answers = answers.into_iter();
    Ok(answers
        .map(|answer| (PyBytes::new(py, &answer.line), answer.is_error))
        .collect())
}
