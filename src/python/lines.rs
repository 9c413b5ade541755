// SPDX-License-Identifier: Apache-2.0
//! The function with which `bulk/lines.py` assigns many groups from contract lines.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::options;
use crate::bulk::lines;

/// Returns result and error lines, each with a flag that tells whether it is an error line.
#[pyfunction]
pub fn assign_lines(
    py: Python<'_>,
    lines: Vec<PyBackedBytes>,
    first: u64,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
) -> PyResult<Vec<(Py<PyBytes>, bool)>> {
    let options = options(py, assignor, max_partitions, threads)?;
    let answers = py.detach(|| {
        let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).collect();
        lines::assign_lines(&lines, first, options)
    });
    let answers = answers.into_iter();
    Ok(answers
        .map(|answer| (PyBytes::new(py, &answer.line).unbind(), answer.is_error))
        .collect())
}
