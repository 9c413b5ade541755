// SPDX-License-Identifier: Apache-2.0
//! PyO3 functions with which the Python package `wire` encodes and decodes protocol bytes.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::exception;
use crate::wire::{self, Assigned, NamedPartition, Subscription};

type UserData = Option<Py<PyBytes>>;

fn checked<T>(py: Python<'_>, result: wire::Result<T>) -> PyResult<T> {
    result.map_err(|problem| exception(py, "WireError", (problem,)))
}

fn encoded<'py>(py: Python<'py>, bytes: wire::Result<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &checked(py, bytes)?))
}

fn user_data(py: Python<'_>, data: Option<Vec<u8>>) -> UserData {
    data.map(|data| PyBytes::new(py, &data).unbind())
}

/// Partitions of one decoded entry share one string, as they do in `wire`.
fn named(py: Python<'_>, partitions: Vec<NamedPartition>) -> PyResult<Py<PyList>> {
    let mut last: Option<(Arc<str>, Bound<'_, PyString>)> = None;
    let pairs = partitions.into_iter().map(|(topic, partition)| {
        let name = match &last {
            Some((same, name)) if Arc::ptr_eq(same, &topic) => name.clone(),
            _ => PyString::new(py, &topic),
        };
        last = Some((topic, name.clone()));
        (name, partition)
    });
    let pairs: Vec<(Bound<'_, PyString>, i32)> = pairs.collect();
    Ok(PyList::new(py, pairs)?.unbind())
}

fn unnamed(partitions: Vec<(String, i32)>) -> Vec<NamedPartition> {
    let pairs = partitions.into_iter();
    pairs.map(|(topic, p)| (topic.into(), p)).collect()
}

/// The fields of `consumer_protocol.Subscription`, in its order.
type Read = (
    Vec<String>,
    UserData,
    Py<PyList>,
    Option<i32>,
    Option<String>,
    i16,
);

#[pyfunction]
pub fn decode_subscription(py: Python<'_>, data: &[u8]) -> PyResult<Read> {
    let read = checked(py, wire::decode_subscription(data))?;
    let (data, owned) = (
        user_data(py, read.user_data),
        named(py, read.owned_partitions)?,
    );
    Ok((
        read.topics,
        data,
        owned,
        read.generation_id,
        read.rack_id,
        read.version,
    ))
}

/// The fields of `consumer_protocol.Subscription`.
#[derive(FromPyObject)]
pub struct SubscriptionFields {
    version: i16,
    topics: Vec<String>,
    user_data: Option<Vec<u8>>,
    owned_partitions: Vec<(String, i32)>,
    generation_id: Option<i32>,
    rack_id: Option<String>,
}

#[pyfunction]
pub fn encode_subscription(
    py: Python<'_>,
    sent: SubscriptionFields,
) -> PyResult<Bound<'_, PyBytes>> {
    let subscription = Subscription {
        version: sent.version,
        topics: sent.topics,
        user_data: sent.user_data,
        owned_partitions: unnamed(sent.owned_partitions),
        generation_id: sent.generation_id,
        rack_id: sent.rack_id,
    };
    encoded(py, wire::encode_subscription(&subscription))
}

/// Returns the fields of `consumer_protocol.AssignmentData`, in its order.
#[pyfunction]
pub fn decode_assignment(py: Python<'_>, data: &[u8]) -> PyResult<(Py<PyList>, UserData, i16)> {
    let read = checked(py, wire::decode_assignment(data))?;
    let data = user_data(py, read.user_data);
    Ok((named(py, read.partitions)?, data, read.version))
}

#[pyfunction]
pub fn encode_assignment<'py>(
    py: Python<'py>,
    version: i16,
    partitions: Vec<(String, i32)>,
    user_data: Option<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let assigned = Assigned {
        version,
        partitions: unnamed(partitions),
        user_data,
    };
    encoded(py, wire::encode_assignment(&assigned))
}

/// Returns the fields of `user_data.StickyUserData`, in its order.
#[pyfunction]
pub fn decode_sticky_user_data(py: Python<'_>, data: &[u8]) -> PyResult<(Py<PyList>, Option<i32>)> {
    let (partitions, generation_id) = wire::decode_sticky_user_data(data);
    Ok((named(py, partitions)?, generation_id))
}

#[pyfunction]
pub fn encode_sticky_user_data<'py>(
    py: Python<'py>,
    partitions: Vec<(String, i32)>,
    generation_id: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    let partitions = unnamed(partitions);
    encoded(
        py,
        wire::encode_sticky_user_data(&partitions, generation_id),
    )
}

#[pyfunction]
pub fn decode_cooperative_user_data(data: &[u8]) -> i32 {
    wire::decode_cooperative_user_data(data)
}
