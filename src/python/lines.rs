// SPDX-License-Identifier: Apache-2.0
//! Assigns many groups from contract lines, for `bulk/lines.py`.

use std::io;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::{listed, options};
use crate::bulk::lines;

/// One result line, or one error line.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct ResultLine {
    line: Py<PyBytes>,
    is_error: bool,
}

#[pyfunction]
pub fn assign_lines(
    py: Python<'_>,
    #[pyo3(from_py_with = listed)] lines: Vec<PyBackedBytes>,
    first: u64,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
) -> PyResult<Vec<ResultLine>> {
    let options = options(py, assignor, max_partitions, threads)?;
    let answers = py.detach(|| {
        let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).collect();
        lines::assign_lines(&lines, first, options)
    });
    let answers = answers.into_iter();
    Ok(answers
        .map(|answer| ResultLine {
            line: PyBytes::new(py, &answer.line).unbind(),
            is_error: answer.is_error,
        })
        .collect())
}

/// Passes a result line to `write` in pieces; returns an error line instead.
#[pyfunction]
pub fn assign_long_line(
    py: Python<'_>,
    line: PyBackedBytes,
    number: u64,
    assignor: Option<&str>,
    max_partitions: u64,
    write: Py<PyAny>,
) -> PyResult<Option<Py<PyBytes>>> {
    let options = options(py, assignor, max_partitions, 1)?;
    let pass = |piece: &[u8]| {
        let called = Python::attach(|py| write.call1(py, (PyBytes::new(py, piece),)));
        called.map(drop).map_err(io::Error::other)
    };
    // An error of `write` becomes a Python error again.
    let error_line = py.detach(|| lines::assign_long_line(&line, number, options, pass))?;
    Ok(error_line.map(|line| PyBytes::new(py, &line).unbind()))
}
