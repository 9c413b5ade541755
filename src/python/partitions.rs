// SPDX-License-Identifier: Apache-2.0
//! Makes the `TopicPartition`s of `group/model.py`: tuples of a name and a number.
//!
//! In CPython 3.11 to 3.13, a call of the class takes ten times longer than the functions of the
//! stable ABI that allocate such a tuple and fill it. A later Python may initialize its tuples in
//! another way (for example with a cached hash). So `are_alike` first compares a tuple made in this
//! way with one of the class; if they differ, `Maker` calls the class.

use std::sync::MutexGuard;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};

use super::arguments::listed;
use super::group::{Interned, Kept};
use crate::group::spec::GroupSpec;

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ALLOCATES: PyOnceLock<bool> = PyOnceLock::new();

/// Makes TopicPartitions, and keeps the ints that it has made for their numbers.
pub struct Maker<'py> {
    class: &'py Bound<'py, PyType>,
    /// Whether tuples are allocated directly.
    allocates: bool,
    /// The ints 0, 1, …
    numbers: Vec<Bound<'py, PyAny>>,
}

impl<'py> Maker<'py> {
    pub fn new(py: Python<'py>) -> PyResult<Self> {
        let class = CLASS.import(py, "kafka_rebalance.group.model", "TopicPartition")?;
        let allocates = *ALLOCATES.get_or_try_init(py, || are_alike(class))?;
        Ok(Self {
            class,
            allocates,
            numbers: Vec::new(),
        })
    }

    /// Makes the ints up to `most` in advance, each only once, if `count` (about the number of
    /// partitions that follow) is greater than `most`.
    pub fn expect(&mut self, most: u32, count: usize) -> PyResult<()> {
        if (most as usize) < count {
            for number in self.numbers.len() as u32..=most {
                self.numbers
                    .push(number.into_pyobject(self.class.py())?.into_any());
            }
        }
        Ok(())
    }

    pub fn make(
        &self,
        topic: &Bound<'py, PyString>,
        partition: impl Into<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let partition = partition.into();
        let allocates = self.allocates && topic.is_exact_instance_of::<PyString>();
        let topic = topic.clone().into_any();
        let partition = match self.numbers.get(partition as usize) {
            Some(number) => number.clone(),
            None => partition.into_pyobject(self.class.py())?.into_any(),
        };
        if allocates {
            allocated(self.class, topic, partition)
        } else {
            self.class.call1((topic, partition))
        }
    }
}

/// Allocates a tuple of a class without fields of its own. `topic` must be an exact str: an object
/// of a subclass can have attributes, and through them refer to the tuple.
fn allocated<'py>(
    class: &Bound<'py, PyType>,
    topic: Bound<'py, PyAny>,
    partition: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `class` is a subclass of tuple, so `PyType_GenericAlloc` makes a tuple with two empty
    // places. Nothing else refers to it yet. `PyTuple_SetItem` takes over one reference each.
    unsafe {
        let made = ffi::PyType_GenericAlloc(class.as_type_ptr(), 2);
        let made = Bound::from_owned_ptr_or_err(class.py(), made)?;
        ffi::PyTuple_SetItem(made.as_ptr(), 0, topic.into_ptr());
        ffi::PyTuple_SetItem(made.as_ptr(), 1, partition.into_ptr());
        // An exact str and an int refer to nothing, and `CLASS` keeps the class forever. So the
        // tuple is never part of a reference cycle, and the garbage collector need not visit it.
        ffi::PyObject_GC_UnTrack(made.as_ptr().cast());
        Ok(made)
    }
}

/// Whether an allocated tuple has the fields, the hash and the repr of a tuple made by the class.
fn are_alike(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    let topic = PyString::new(py, "topic");
    let made = allocated(
        class,
        topic.clone().into_any(),
        1000u32.into_pyobject(py)?.into_any(),
    )?;
    let called = class.call1((topic, 1000u32))?;
    Ok(made.eq(&called)?
        && made.hash()? == called.hash()?
        && made.repr()?.to_str()? == called.repr()?.to_str()?
        && made.get_type().is(class))
}

/// Makes one list of partitions; `topic_ids` holds indices into `topics`. If `group` is given, the
/// columns are an answer for this group.
#[pyfunction]
#[pyo3(signature = (topics, topic_ids, partitions, group=None))]
pub fn topic_partitions<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = listed)] topics: Vec<Bound<'py, PyString>>,
    topic_ids: PyBuffer<u32>,
    partitions: PyBuffer<u32>,
    group: Option<&Bound<'py, Interned>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let entries = entries(py, &topic_ids, &partitions)?;
    Lists::new(py, topics, group)?.tuple(&entries)
}

/// Makes each member's partitions: for member m, from `offsets[m]..offsets[m + 1]` of the columns.
#[pyfunction]
#[pyo3(signature = (topics, offsets, topic_ids, partitions, group=None))]
pub fn owned_partitions<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = listed)] topics: Vec<Bound<'py, PyString>>,
    offsets: PyBuffer<u32>,
    topic_ids: PyBuffer<u32>,
    partitions: PyBuffer<u32>,
    group: Option<&Bound<'py, Interned>>,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let offsets = offsets.to_vec(py)?;
    let entries = entries(py, &topic_ids, &partitions)?;
    let mut lists = Lists::new(py, topics, group)?;
    let most = entries.iter().map(|entry| entry.1).max();
    lists.maker.expect(most.unwrap_or(0), entries.len())?;
    let _paused = Paused::new(py);
    let tuples = offsets.windows(2).map(|span| {
        let (first, end) = (span[0], span[1]);
        let owned = entries.get(first as usize..end as usize).ok_or_else(|| {
            let count = entries.len();
            PyIndexError::new_err(format!("{first}..{end} is not a span of {count} entries"))
        });
        lists.tuple(owned?)
    });
    tuples.collect()
}

/// Pauses Python's cyclic garbage collector. It would run after every 700 new tuples, and could
/// free none of them: they refer only to strings, numbers and other such tuples.
struct Paused {
    ran: bool,
}

impl Paused {
    fn new(_py: Python<'_>) -> Self {
        // SAFETY: `_py` proves that the caller is attached to Python.
        let ran = unsafe { ffi::PyGC_Disable() } == 1;
        Self { ran }
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if self.ran {
            // SAFETY: the caller of `new` stays attached until its value is dropped.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

fn entries(
    py: Python<'_>,
    topic_ids: &PyBuffer<u32>,
    partitions: &PyBuffer<u32>,
) -> PyResult<Vec<(u32, u32)>> {
    let (topic_ids, partitions) = (topic_ids.to_vec(py)?, partitions.to_vec(py)?);
    if topic_ids.len() != partitions.len() {
        let (ids, numbers) = (topic_ids.len(), partitions.len());
        let problem = format!("topic_ids has {ids} entries, but partitions has {numbers}");
        return Err(PyValueError::new_err(problem));
    }
    Ok(topic_ids.into_iter().zip(partitions).collect())
}

struct Lists<'g, 'py> {
    maker: Maker<'py>,
    topics: Vec<Bound<'py, PyString>>,
    /// The group, and the objects that it keeps. None if there is no group, or if another call uses
    /// these: the garbage collector can run Python code, and so another call, between two
    /// partitions.
    kept: Option<(&'g GroupSpec<'g>, MutexGuard<'g, Kept>)>,
}

impl<'g, 'py> Lists<'g, 'py> {
    fn new(
        py: Python<'py>,
        topics: Vec<Bound<'py, PyString>>,
        group: Option<&'g Bound<'py, Interned>>,
    ) -> PyResult<Self> {
        let kept = group.and_then(|group| {
            let (spec, mut kept) = (group.get().spec(), group.get().kept.try_lock().ok()?);
            kept.resize_with(spec.topics.len(), Vec::new);
            Some((spec, kept))
        });
        Ok(Self {
            maker: Maker::new(py)?,
            topics,
            kept,
        })
    }

    fn tuple(&mut self, entries: &[(u32, u32)]) -> PyResult<Bound<'py, PyTuple>> {
        let made = entries
            .iter()
            .map(|&(id, number)| self.partition(id, number));
        let made: PyResult<Vec<_>> = made.collect();
        PyTuple::new(self.maker.class.py(), made?)
    }

    fn partition(&mut self, topic_id: u32, partition: u32) -> PyResult<Bound<'py, PyAny>> {
        let topic = topic_id as usize;
        let name = self.topics.get(topic).ok_or_else(|| {
            let count = self.topics.len();
            PyIndexError::new_err(format!("{topic_id} is not an index into {count} topics"))
        })?;
        if let Some((spec, kept)) = &mut self.kept
            && let Some(declared) = spec.topics.get(topic)
            // A claimed partition that does not exist may have any number, so it is not kept for
            // reuse.
            && partition < declared.partitions
        {
            let of_topic = &mut kept[topic];
            if of_topic.is_empty() {
                of_topic.resize_with(declared.partitions as usize, || None);
            }
            let place = &mut of_topic[partition as usize];
            if let Some(made) = place {
                return Ok(made.bind(name.py()).clone());
            }
            let made = self.maker.make(name, partition)?;
            *place = Some(made.clone().unbind());
            return Ok(made);
        }
        self.maker.make(name, partition)
    }
}
