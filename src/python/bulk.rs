// SPDX-License-Identifier: Apache-2.0
//! Assigns, plans and compares many groups in one call. Record batches are exchanged through the
//! Arrow C data interface (PyCapsule protocol) with any library that supports it; none of these
//! libraries is imported.

use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{Array, RecordBatch, StructArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use super::arguments::{listed, listed_or_none, options};
use crate::bulk::batch::{self, Form};
use crate::bulk::columns::SchemaError;
use crate::bulk::records::{columns, group};
use crate::bulk::{commits, imported, lines};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// A record batch that any library with support for Arrow can read.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct ArrowBatch(RecordBatch);

#[pymethods]
impl ArrowBatch {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.0.schema()).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol allows a producer to ignore the requested schema if it cannot cast.
        let _ = requested_schema;
        let data = StructArray::from(self.0.clone()).into_data();
        let (array, schema) = to_ffi(&data).map_err(arrow_error)?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA)?,
            PyCapsule::new_with_value(py, array, ARRAY)?,
        ))
    }
}

#[pyfunction]
#[pyo3(
    signature = (batch, assignor, max_partitions, threads, form=GivenForm::Columns),
    text_signature = "(batch, assignor, max_partitions, threads, form='columns')"
)]
pub fn assign_batch(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
    form: GivenForm,
) -> PyResult<ArrowBatch> {
    let options = options(py, assignor, max_partitions, threads)?;
    let assign = |batch: &_| batch::assign_batch(batch, options, form.of(), false);
    answer(py, batch, assign)
}

#[pyfunction]
#[pyo3(
    signature = (batch, assignor, max_partitions, threads, form=GivenForm::Columns),
    text_signature = "(batch, assignor, max_partitions, threads, form='columns')"
)]
pub fn owners_batch(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
    form: GivenForm,
) -> PyResult<ArrowBatch> {
    let options = options(py, assignor, max_partitions, threads)?;
    let assign = |batch: &_| batch::assign_batch(batch, options, form.of(), true);
    answer(py, batch, assign)
}

#[pyfunction]
#[pyo3(
    signature = (batch, assignor, changes, max_partitions, threads, form=GivenForm::Columns),
    text_signature = "(batch, assignor, changes, max_partitions, threads, form='columns')"
)]
pub fn plan_batch(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    assignor: Option<&str>,
    #[pyo3(from_py_with = listed_or_none)] changes: Option<Vec<String>>,
    max_partitions: u64,
    threads: usize,
    form: GivenForm,
) -> PyResult<ArrowBatch> {
    let options = options(py, assignor, max_partitions, threads)?;
    let plan = |batch: &_| batch::plan_batch(batch, changes.as_deref(), options, form.of());
    answer(py, batch, plan)
}

#[pyfunction]
#[pyo3(
    signature = (batch, changes, max_partitions, threads, form=GivenForm::Columns),
    text_signature = "(batch, changes, max_partitions, threads, form='columns')"
)]
pub fn compare_batch(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = listed)] changes: Vec<String>,
    max_partitions: u64,
    threads: usize,
    form: GivenForm,
) -> PyResult<ArrowBatch> {
    let options = options(py, None, max_partitions, threads)?;
    let compare = |batch: &_| batch::compare_batch(batch, &changes, options, form.of());
    answer(py, batch, compare)
}

/// The argument `form` of a call: "columns", "lines", or, for records, the cluster's topics.
pub enum GivenForm {
    Columns,
    Lines,
    Records(Py<TopicInventory>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for GivenForm {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(topics) = given.extract() {
            return Ok(Self::Records(topics));
        }
        match given.extract::<&str>()? {
            "columns" => Ok(Self::Columns),
            "lines" => Ok(Self::Lines),
            other => Err(PyValueError::new_err(format!(
                "{other:?} is not a form of rows"
            ))),
        }
    }
}

impl GivenForm {
    fn of(&self) -> Form<'_> {
        match self {
            Self::Columns => Form::Columns,
            Self::Lines => Form::Lines,
            Self::Records(topics) => Form::Records(&topics.get().0),
        }
    }
}

/// Partition counts and racks of topics, for reading records. With `assume_assigned`, a topic that
/// is not listed is assumed to end with its highest assigned partition.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct TopicInventory(group::Inventory);

#[pymethods]
impl TopicInventory {
    #[new]
    #[pyo3(signature = (topics, assume_assigned=false))]
    fn new(topics: &Bound<'_, PyAny>, assume_assigned: bool) -> PyResult<Self> {
        let read = group::Inventory::of(&read(topics)?, assume_assigned);
        read.map(Self).map_err(schema_error)
    }
}

#[pyfunction]
pub fn groups_from_records(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    topics: &TopicInventory,
) -> PyResult<ArrowBatch> {
    answer(py, batch, |batch| columns::groups(batch, &topics.0))
}

#[pyfunction]
pub fn commits_from_records(py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<ArrowBatch> {
    answer(py, batch, commits::commits)
}

/// Computes the answer for a batch while the interpreter lock is released.
fn answer(
    py: Python<'_>,
    batch: &Bound<'_, PyAny>,
    answer: impl Fn(&RecordBatch) -> Result<RecordBatch, SchemaError> + Sync,
) -> PyResult<ArrowBatch> {
    let batch = read(batch)?;
    let answered = py.detach(|| answer(&batch));
    answered.map(ArrowBatch).map_err(schema_error)
}

pub fn read(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    if !batch.hasattr("__arrow_c_array__")? {
        let found = batch.get_type().name()?;
        let problem = format!("{found} is not an Arrow record batch: it has no __arrow_c_array__");
        return Err(PyTypeError::new_err(problem));
    }
    let capsules = batch
        .call_method0("__arrow_c_array__")?
        .cast_into::<PyTuple>()?;
    let schema = pointer::<FFI_ArrowSchema>(&capsules.get_item(0)?, SCHEMA)?;
    let array = pointer::<FFI_ArrowArray>(&capsules.get_item(1)?, ARRAY)?;
    // SAFETY: capsules with these names hold such structures, and are alive here. `from_raw` moves
    // the structure out and marks the one in the capsule as released, so nothing is freed twice.
    let (schema, array) = unsafe {
        (
            FFI_ArrowSchema::from_raw(schema.as_ptr()),
            FFI_ArrowArray::from_raw(array.as_ptr()),
        )
    };
    // SAFETY: one call returned both, so the schema describes the array. The interface does not
    // pass the sizes of most buffers: they follow from the length, the offset and the last offsets,
    // which the producer must state correctly. `imported` checks everything else before it is read.
    let data = unsafe { from_ffi(array, &schema) }.map_err(arrow_error)?;
    if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) {
        let problem = format!("{} is not a record batch", data.data_type());
        return Err(PyTypeError::new_err(problem));
    }
    imported::record_batch(data).map_err(PyValueError::new_err)
}

fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

pub fn schema_error(error: SchemaError) -> PyErr {
    PyTypeError::new_err(error.to_string())
}

fn arrow_error(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

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

/// Passes a result line to `write` in pieces and returns None; if the line is wrong or the assignor
/// fails, returns an error line.
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
    // An exception from `write` is raised again, unchanged.
    let error_line = py.detach(|| lines::assign_long_line(&line, number, options, pass))?;
    Ok(error_line.map(|line| PyBytes::new(py, &line).unbind()))
}
