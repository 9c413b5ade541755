// SPDX-License-Identifier: Apache-2.0
//! Encodes and decodes protocol bytes for the Python package `wire`.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::arguments::{exception, listed};
use super::partitions::Maker;
use crate::wire::group_records;
use crate::wire::{self, Assigned, Entries, NamedPartition, Subscription};

type UserData = Option<Py<PyBytes>>;

fn checked<T>(py: Python<'_>, result: wire::Result<T>) -> PyResult<T> {
    result.map_err(|problem| exception(py, "WireError", (problem,)))
}

fn encoded<'py>(py: Python<'py>, bytes: wire::Result<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &checked(py, bytes)?))
}

fn user_data(py: Python<'_>, data: Option<Cow<'_, [u8]>>) -> UserData {
    data.map(|data| PyBytes::new(py, &data).unbind())
}

/// Makes `TopicPartition`s; those of one entry share one string for the topic.
fn named<'py>(py: Python<'py>, entries: Entries) -> PyResult<Bound<'py, PyTuple>> {
    let maker = Maker::new(py)?;
    let mut made = Vec::new();
    for entry in entries.iter() {
        let topic = PyString::new(py, &entry.topic());
        for partition in entry.partitions() {
            made.push(maker.make(&topic, partition)?);
        }
    }
    PyTuple::new(py, made)
}

fn unnamed(partitions: Vec<(String, i32)>) -> Vec<NamedPartition> {
    let pairs = partitions.into_iter();
    pairs.map(|(topic, p)| (topic.into(), p)).collect()
}

/// Returns the 64-bit hash XXH3 with seed 0; brokers compute this hash over the metadata of topics.
#[pyfunction]
pub fn xxh3(data: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(data)
}

type DecodedSubscription<'py> = (
    Bound<'py, PyTuple>,
    UserData,
    Bound<'py, PyTuple>,
    Option<i32>,
    Option<String>,
    i16,
);

/// Returns the fields of `consumer_protocol.Subscription`, in their order.
#[pyfunction]
pub fn decode_subscription<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<DecodedSubscription<'py>> {
    let read = checked(py, wire::decode_subscription(data))?;
    Ok((
        PyTuple::new(py, read.topics)?,
        user_data(py, read.user_data),
        named(py, read.owned_partitions)?,
        read.generation_id,
        read.rack_id.map(Cow::into_owned),
        read.version,
    ))
}

/// The fields of `consumer_protocol.Subscription`.
#[derive(FromPyObject)]
pub struct SubscriptionFields {
    version: i16,
    #[pyo3(from_py_with = listed)]
    topics: Vec<String>,
    user_data: Option<PyBackedBytes>,
    #[pyo3(from_py_with = listed)]
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
        topics: sent.topics.into_iter().map(Cow::Owned).collect(),
        user_data: sent.user_data.as_deref().map(Cow::Borrowed),
        owned_partitions: unnamed(sent.owned_partitions),
        generation_id: sent.generation_id,
        rack_id: sent.rack_id.map(Cow::Owned),
    };
    encoded(py, wire::encode_subscription(&subscription))
}

/// Returns the fields of `consumer_protocol.AssignmentData`, in their order.
#[pyfunction]
pub fn decode_assignment<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<(Bound<'py, PyTuple>, UserData, i16)> {
    let read = checked(py, wire::decode_assignment(data))?;
    let user_data = user_data(py, read.user_data);
    Ok((named(py, read.partitions)?, user_data, read.version))
}

#[pyfunction]
pub fn encode_assignment<'py>(
    py: Python<'py>,
    version: i16,
    #[pyo3(from_py_with = listed)] partitions: Vec<(String, i32)>,
    user_data: Option<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let assigned = Assigned {
        version,
        partitions: unnamed(partitions),
        user_data: user_data.as_deref().map(Cow::Borrowed),
    };
    encoded(py, wire::encode_assignment(&assigned))
}

/// Returns the fields of `consumer_protocol.StickyUserData`.
#[pyfunction]
pub fn decode_sticky_user_data<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<(Bound<'py, PyTuple>, Option<i32>)> {
    let (partitions, generation_id) = wire::decode_sticky_user_data(data);
    Ok((named(py, partitions)?, generation_id))
}

#[pyfunction]
pub fn encode_sticky_user_data<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = listed)] partitions: Vec<(String, i32)>,
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

type Member<'a> = (
    &'a str,
    Option<&'a str>,
    &'a str,
    &'a str,
    i32,
    i32,
    &'a [u8],
    &'a [u8],
);
type Group<'a> = (
    &'a str,
    i32,
    Option<&'a str>,
    Option<&'a str>,
    i64,
    Option<Vec<Member<'a>>>,
);

/// Returns the fields of `group_records.GroupMetadataValue` and of its members, in their order. If
/// type and members are those in `before`, the members are None.
#[pyfunction]
#[pyo3(signature = (data, before=None))]
pub fn decode_group<'a>(
    py: Python<'_>,
    data: &'a [u8],
    before: Option<&[u8]>,
) -> PyResult<Group<'a>> {
    let read = checked(py, group_records::decode_group(data))?;
    let before = before.and_then(|before| group_records::decode_group(before).ok());
    let is_new = before.is_none_or(|before| {
        (before.protocol_type, &before.members) != (read.protocol_type, &read.members)
    });
    let members = read.members.into_iter().map(|one| {
        (
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.rebalance_timeout_ms,
            one.session_timeout_ms,
            one.subscription,
            one.assignment,
        )
    });
    Ok((
        read.protocol_type,
        read.generation_id,
        read.protocol,
        read.leader,
        read.current_state_timestamp_ms,
        is_new.then(|| members.collect()),
    ))
}
