// SPDX-License-Identifier: Apache-2.0
//! Assigns one group, and defines the columns in which Python receives assignments from Rust.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::by_name;
use super::group::Interned;
use super::interrupt::interruptibly;
use crate::group::model::TopicPartition;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

/// The fields of `ownership.Anomaly`.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
#[derive(Clone)]
pub struct Anomaly {
    kind: &'static str,
    topic: String,
    partition: u32,
    member_id: Option<String>,
}

/// The columns of an `ownership.Assignment`; each `Py<PyBytes>` holds u32s in native byte order.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Columns {
    topics: Py<PyTuple>,
    offsets: Py<PyBytes>,
    topic_ids: Py<PyBytes>,
    partitions: Py<PyBytes>,
    anomalies: Vec<Anomaly>,
    standby: Option<Py<Columns>>,
    /// Pairs of a member's index and its topics, as indices in `topics`.
    owned_topics: Vec<(u32, Vec<u32>)>,
}

impl Columns {
    /// `topics` contains the names by topic number; `topic` and `member` return one name for a
    /// number.
    pub fn of<'n>(
        py: Python<'_>,
        topics: &Py<PyTuple>,
        answer: &Assignment,
        topic: impl Fn(u32) -> &'n str,
        member: impl Fn(u32) -> &'n str,
    ) -> Self {
        let anomalies = answer.anomalies.iter().map(|anomaly| Anomaly {
            kind: anomaly.kind.name(),
            topic: topic(anomaly.partition.topic).to_owned(),
            partition: anomaly.partition.partition,
            member_id: anomaly.member.map(|m| member(m).to_owned()),
        });
        let Partitions {
            topics,
            topic_ids,
            partitions,
        } = Partitions::of(py, topics, &answer.partitions);
        Self {
            topics,
            offsets: native(py, answer.offsets.iter().copied()),
            topic_ids,
            partitions,
            anomalies: anomalies.collect(),
            standby: None,
            owned_topics: answer.owned_topics.clone(),
        }
    }
}

/// Partitions in order, as columns of u32s in native byte order.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Partitions {
    topics: Py<PyTuple>,
    topic_ids: Py<PyBytes>,
    partitions: Py<PyBytes>,
}

impl Partitions {
    pub fn of(py: Python<'_>, topics: &Py<PyTuple>, partitions: &[TopicPartition]) -> Self {
        Self {
            topics: topics.clone_ref(py),
            topic_ids: native(py, partitions.iter().map(|tp| tp.topic)),
            partitions: native(py, partitions.iter().map(|tp| tp.partition)),
        }
    }
}

/// Returns the numbers as bytes: u32s in native byte order.
pub fn native(py: Python<'_>, numbers: impl Iterator<Item = u32>) -> Py<PyBytes> {
    let numbers: Vec<[u8; 4]> = numbers.map(u32::to_ne_bytes).collect();
    PyBytes::new(py, numbers.as_flattened()).unbind()
}

pub fn columns(py: Python<'_>, group: &GroupSpec, answer: &Assignment) -> PyResult<Columns> {
    let topics = PyTuple::new(py, group.topic_names())?.unbind();
    let topic = |t: u32| group.topics[t as usize].name;
    let member = |m: u32| group.members[m as usize].member_id;
    let mut found = Columns::of(py, &topics, answer, topic, member);
    if let Some(standby) = &answer.standby {
        found.standby = Some(Py::new(
            py,
            Columns::of(py, &topics, standby, topic, member),
        )?);
    }
    Ok(found)
}

#[pyfunction]
pub fn assign(py: Python<'_>, group: &Bound<'_, Interned>, assignor: &str) -> PyResult<Columns> {
    let assignor = by_name(py, assignor)?;
    let spec = group.get().spec();
    let answer = interruptibly(py, spec.size(), |interrupt| {
        assignor.assign_until(spec, interrupt)
    })?;
    columns(py, spec, &answer)
}
