//! Protocol bytes, for `wire/`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::exception;
use crate::wire::{self, Assigned, NamedPartition, Subscription};

type UserData<'py> = Option<Bound<'py, PyBytes>>;

fn checked<T>(py: Python<'_>, result: wire::Result<T>) -> PyResult<T> {
    result.map_err(|problem| exception(py, "WireError", (problem,)))
}

fn user_data<'py>(py: Python<'py>, data: Option<Vec<u8>>) -> UserData<'py> {
    data.map(|data| PyBytes::new(py, &data))
}

type SubscriptionFields<'py> = (
    i16,
    Vec<String>,
    UserData<'py>,
    Vec<NamedPartition>,
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
        read.owned_partitions,
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
    owned_partitions: Vec<NamedPartition>,
    generation_id: Option<i32>,
    rack_id: Option<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let subscription = Subscription {
        version,
        topics,
        user_data,
        owned_partitions,
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
) -> PyResult<(i16, Vec<NamedPartition>, UserData<'py>)> {
    let read = checked(py, wire::decode_assignment(data))?;
    Ok((read.version, read.partitions, user_data(py, read.user_data)))
}

#[pyfunction]
pub fn encode_assignment<'py>(
    py: Python<'py>,
    version: i16,
    partitions: Vec<NamedPartition>,
    user_data: Option<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let assigned = Assigned {
        version,
        partitions,
        user_data,
    };
    let bytes = checked(py, wire::encode_assignment(&assigned))?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn decode_sticky_user_data(data: &[u8]) -> (Vec<NamedPartition>, Option<i32>) {
    wire::decode_sticky_user_data(data)
}

#[pyfunction]
pub fn encode_sticky_user_data<'py>(
    py: Python<'py>,
    partitions: Vec<NamedPartition>,
    generation_id: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = checked(
        py,
        wire::encode_sticky_user_data(&partitions, generation_id),
    )?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn decode_cooperative_user_data(data: &[u8]) -> i32 {
    wire::decode_cooperative_user_data(data)
}
