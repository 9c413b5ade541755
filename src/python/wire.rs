// SPDX-License-Identifier: Apache-2.0
//! Protocol bytes, for `wire/`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::exception;
use crate::wire::{self, Assigned, NamedPartition, Subscription};

type UserData<'py> = Option<Bound<'py, PyBytes>>;
type Named<'py> = Vec<(Bound<'py, PyString>, i32)>;

fn checked<T>(py: Python<'_>, result: wire::Result<T>) -> PyResult<T> {
    result.map_err(|problem| exception(py, "WireError", (problem,)))
}

fn user_data<'py>(py: Python<'py>, data: Option<Vec<u8>>) -> UserData<'py> {
    data.map(|data| PyBytes::new(py, &data))
}

/// Partitions of one decoded entry share one string, as they do in `wire`.
fn named<'py>(py: Python<'py>, partitions: Vec<NamedPartition>) -> Named<'py> {
    let mut last: Option<(Arc<str>, Bound<'py, PyString>)> = None;
    let pairs = partitions.into_iter().map(|(topic, partition)| {
        let name = match &last {
            Some((same, name)) if Arc::ptr_eq(same, &topic) => name.clone(),
            _ => PyString::new(py, &topic),
        };
        last = Some((topic, name.clone()));
        (name, partition)
    });
    pairs.collect()
}

fn unnamed(partitions: Vec<(String, i32)>) -> Vec<NamedPartition> {
    let pairs = partitions.into_iter();
    pairs.map(|(topic, p)| (topic.into(), p)).collect()
}

type SubscriptionFields<'py> = (
    i16,
    Vec<String>,
    UserData<'py>,
    Named<'py>,
    Option<i32>,
    Option<String>,
);

#[pyfunction]
pub fn decode_subscription<'py>(py: Python<'py>, data: &[u8]) -> PyResult<SubscriptionFields<'py>> {
    let read = checked(py, wire::decode_subscription(data))?;
    Ok((
        read.version,
        read.topics,
        user_data(py, read.user_data),
        named(py, read.owned_partitions),
        read.generation_id,
        read.rack_id,
    ))
}

#[pyfunction]
pub fn encode_subscription<'py>(
    py: Python<'py>,
    version: i16,
    topics: Vec<String>,
    user_data: Option<Vec<u8>>,
    owned_partitions: Vec<(String, i32)>,
    generation_id: Option<i32>,
    rack_id: Option<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let subscription = Subscription {
        version,
        topics,
        user_data,
        owned_partitions: unnamed(owned_partitions),
        generation_id,
        rack_id,
    };
    let bytes = checked(py, wire::encode_subscription(&subscription))?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn decode_assignment<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<(i16, Named<'py>, UserData<'py>)> {
    let read = checked(py, wire::decode_assignment(data))?;
    Ok((
        read.version,
        named(py, read.partitions),
        user_data(py, read.user_data),
    ))
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
    let bytes = checked(py, wire::encode_assignment(&assigned))?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn decode_sticky_user_data<'py>(py: Python<'py>, data: &[u8]) -> (Named<'py>, Option<i32>) {
    let (partitions, generation_id) = wire::decode_sticky_user_data(data);
    (named(py, partitions), generation_id)
}

#[pyfunction]
pub fn encode_sticky_user_data<'py>(
    py: Python<'py>,
    partitions: Vec<(String, i32)>,
    generation_id: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = checked(
        py,
        wire::encode_sticky_user_data(&unnamed(partitions), generation_id),
    )?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn decode_cooperative_user_data(data: &[u8]) -> i32 {
    wire::decode_cooperative_user_data(data)
}
