// SPDX-License-Identifier: Apache-2.0
//! Reads arguments of calls from Python, and makes the exceptions that calls raise.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

use crate::assignors::Assignor;
use crate::bulk::lines::Options;
use crate::error::{ErrorKind, GroupError};

/// Makes the exception of `errors.py` that belongs to an error's kind.
pub fn raise(py: Python<'_>, error: &GroupError) -> PyErr {
    let class = match error.kind {
        ErrorKind::BadField => "GroupError",
        ErrorKind::NotAffected => "NotAffected",
        ErrorKind::NoMembersLeft => "NoMembersLeft",
        ErrorKind::Throws => "AssignorThrows",
        ErrorKind::NeverEnds => "NeverEnds",
    };
    exception(py, class, (&error.path, &error.problem))
}

pub fn exception<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let raised = py
        .import("kafka_rebalance.errors")
        .and_then(|errors| errors.getattr(class)?.call1(arguments));
    match raised {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Reads a list entry by entry. PyO3's own `Vec` first reserves as much memory as `__len__`
/// returns, and an object may return any number.
pub fn listed<'py, T: FromPyObjectOwned<'py>>(given: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("a str is not a list"));
    }
    let mut entries = Vec::new();
    for entry in given.cast::<PySequence>()?.try_iter()? {
        entries.push(entry?.extract().map_err(Into::into)?);
    }
    Ok(entries)
}

pub fn listed_or_none<'py, T: FromPyObjectOwned<'py>>(
    given: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<T>>> {
    (!given.is_none()).then(|| listed(given)).transpose()
}

pub fn by_name(py: Python<'_>, name: &str) -> PyResult<Assignor> {
    Assignor::by_name(name).map_err(|error| raise(py, &error))
}

pub fn options(
    py: Python<'_>,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
) -> PyResult<Options> {
    Ok(Options {
        assignor: assignor.map(|name| by_name(py, name)).transpose()?,
        max_partitions,
        threads,
    })
}
