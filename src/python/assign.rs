// SPDX-License-Identifier: Apache-2.0
//! Assigns one group, and defines the columns in which Rust hands assignments to Python.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::by_name;
use super::group::Interned;
use super::interrupt::interruptibly;
use crate::group::model::{GroupSpec, TopicPartition};
use crate::group::ownership::{self, Assignment};

/// The fields of `ownership.Anomaly`.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
#[derive(Clone)]
pub struct Anomaly {
    kind: &'static str,
    topic: String,
    partition: u32,
    member_id: Option<String>,
}

/// The columns of an `ownership.Assignment`; each `Py<PyBytes>` has u32s in native byte order.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Columns {
    topics: Py<PyTuple>,
    offsets: Py<PyBytes>,
    topic_ids: Py<PyBytes>,
    partitions: Py<PyBytes>,
    anomalies: Vec<Anomaly>,
}

impl Columns {
    /// `topics` has the names that belong to topic numbers.
    pub fn of(
        py: Python<'_>,
        topics: &Py<PyTuple>,
        answer: &Assignment,
        anomalies: Vec<Anomaly>,
    ) -> Self {
        let partitions = &answer.partitions;
        Self {
            topics: topics.clone_ref(py),
            offsets: native(py, answer.offsets.iter().copied()),
            topic_ids: native(py, partitions.iter().map(|tp| tp.topic)),
            partitions: native(py, partitions.iter().map(|tp| tp.partition)),
            anomalies,
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

pub fn native(py: Python<'_>, numbers: impl Iterator<Item = u32>) -> Py<PyBytes> {
    let bytes: Vec<u8> = numbers.flat_map(u32::to_ne_bytes).collect();
    PyBytes::new(py, &bytes).unbind()
}

/// Anomalies with names in place of numbers.
pub fn named(
    anomalies: &[ownership::Anomaly],
    topic: impl Fn(u32) -> String,
    member: impl Fn(u32) -> String,
) -> Vec<Anomaly> {
    let named = anomalies.iter().map(|anomaly| Anomaly {
        kind: anomaly.kind.name(),
        topic: topic(anomaly.partition.topic),
        partition: anomaly.partition.partition,
        member_id: anomaly.member.map(&member),
    });
    named.collect()
}

pub fn columns(py: Python<'_>, group: &GroupSpec, answer: &Assignment) -> PyResult<Columns> {
    let topics = PyTuple::new(py, group.topic_names())?.unbind();
    let anomalies = named(
        &answer.anomalies,
        |t| group.topics[t as usize].name.to_owned(),
        |m| group.members[m as usize].member_id.to_owned(),
    );
    Ok(Columns::of(py, &topics, answer, anomalies))
}

#[pyfunction]
pub fn assign(py: Python<'_>, group: &Bound<'_, Interned>, assignor: &str) -> PyResult<Columns> {
    let Some(assignor) = by_name(py, Some(assignor))? else {
        return Err(pyo3::exceptions::PyValueError::new_err("no assignor"));
    };
    let spec = group.get().spec();
    let answer = interruptibly(py, spec.size(), |interrupt| {
        assignor.assign_until(spec, interrupt)
    })?;
    columns(py, spec, &answer)
}
