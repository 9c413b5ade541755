// SPDX-License-Identifier: Apache-2.0
//! Converts a group from Python objects to numbers once; any number of calls can then use it.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use rustc_hash::FxHashMap;
use self_cell::self_cell;

use super::arguments::{listed, raise};
use crate::error::GroupError;
use crate::group::contract;
use crate::group::field_types::{Field, Form, Input, Kind};
use crate::group::group_fields::{self, GROUP, OFFSET};
use crate::group::spec::GroupSpec;
use crate::json::{Map, Value};

pub fn attributes(py: Python<'_>, table: &'static [Field]) -> &'static [Py<PyString>] {
    /// The names of a field table's fields, by the table's address.
    static NAMES: PyOnceLock<FxHashMap<usize, Vec<Py<PyString>>>> = PyOnceLock::new();
    let names = NAMES.get_or_init(py, || {
        let (mut names, mut tables) = (FxHashMap::default(), vec![&GROUP[..]]);
        while let Some(table) = tables.pop() {
            let of = |field: &Field| PyString::intern(py, field.name).unbind();
            names.insert(table.as_ptr().addr(), table.iter().map(of).collect());
            tables.extend(table.iter().filter_map(|field| field.kind.table()));
        }
        names
    });
    &names[&table.as_ptr().addr()]
}

/// The strings that a group borrows from Python objects, and the exception, if reading one failed.
#[derive(Default)]
struct Names(Mutex<(Vec<PyBackedStr>, Option<PyErr>)>);

impl Names {
    fn held(&self) -> MutexGuard<'_, (Vec<PyBackedStr>, Option<PyErr>)> {
        self.0.lock().expect("no thread panics while it holds them")
    }

    fn keep(&self, name: PyBackedStr) -> &str {
        let text: *const str = &*name;
        self.held().0.push(name);
        // SAFETY: the text is part of a Python string, which `self` holds until it is dropped.
        unsafe { &*text }
    }
}

/// A Python object from which a group is read.
#[derive(Clone)]
struct Object<'a, 'py> {
    value: Bound<'py, PyAny>,
    /// If Some, `value` is a tuple of TopicPartitions, and this range of it belongs to one topic.
    run: Option<Range<usize>>,
    names: &'a Names,
}

impl<'py> Object<'_, 'py> {
    fn of(&self, value: Bound<'py, PyAny>) -> Self {
        let (run, names) = (None, self.names);
        Self { value, run, names }
    }

    /// Keeps an exception of Python, so that the caller can raise it unchanged.
    fn read<T>(&self, read: PyResult<T>) -> Result<T, String> {
        read.map_err(|error| {
            let problem = error.to_string();
            self.names.held().1 = Some(error);
            problem
        })
    }

    fn attribute(&self, name: &Bound<'py, PyString>) -> Result<Option<Self>, String> {
        let value = self.read(self.value.getattr(name))?;
        Ok((!value.is_none()).then(|| self.of(value)))
    }
}

/// Returns item `part` of TopicPartition `i`: its topic (0) or its partition (1).
fn part_of<'py>(pairs: &Bound<'py, PyTuple>, i: usize, part: usize) -> PyResult<Bound<'py, PyAny>> {
    let pair = pairs.get_borrowed_item(i)?;
    pair.cast::<PyTuple>()?.get_item(part)
}

impl<'a> Input<'a> for Object<'a, '_> {
    fn fields<const N: usize>(
        &self,
        table: &'static [Field; N],
    ) -> Result<[Option<Self>; N], String> {
        let py = self.value.py();
        let mut found = [const { None }; N];
        if let Some(run) = &self.run {
            let topic = part_of(self.value.cast().expect("a tuple"), run.start, 0);
            found[0] = Some(self.of(self.read(topic)?));
            found[1] = Some(self.clone());
            return Ok(found);
        }
        // A TaskOffset's attribute `task` holds its subtopology and its partition.
        let is_offset = std::ptr::addr_eq(table, &OFFSET);
        let task = if is_offset {
            self.attribute(intern!(py, "task"))?
        } else {
            None
        };
        for (i, (field, name)) in table.iter().zip(attributes(py, table)).enumerate() {
            found[i] = match &task {
                Some(task) if i < 2 => {
                    let part = task.value.cast::<PyTuple>().map_err(PyErr::from);
                    let part = self.read(part.and_then(|pair| pair.get_item(i)))?;
                    Some(self.of(part))
                }
                _ if field.only == Some(Form::Lines) => None,
                _ => self.attribute(name.bind(py))?,
            };
        }
        Ok(found)
    }

    fn is_null(&self) -> bool {
        self.value.is_none()
    }

    fn text(&self) -> Result<&'a str, String> {
        self.read(self.value.extract())
            .map(|name| self.names.keep(name))
    }

    fn flag(&self) -> Result<bool, String> {
        self.read(self.value.extract())
    }

    fn whole(&self, _kind: &Kind) -> Result<i64, String> {
        self.read(self.value.extract())
    }

    fn number(&self, _kind: &Kind) -> Result<f64, String> {
        self.read(self.value.extract())
    }

    fn list(&self, item: &'static Kind) -> Result<impl Iterator<Item = Self>, String> {
        let values = match self.value.cast::<PyTuple>() {
            Ok(values) => values.clone(),
            Err(_) => {
                let values = listed::<Bound<'_, PyAny>>(&self.value);
                self.read(values.and_then(|values| PyTuple::new(self.value.py(), values)))?
            }
        };
        let Range { mut start, end } = self.run.clone().unwrap_or(0..values.len());
        let (is_run, has_runs) = (self.run.is_some(), matches!(item, Kind::Run(_)));
        Ok(std::iter::from_fn(move || {
            let first = start;
            start += 1;
            if first >= end {
                None
            } else if is_run {
                Some(self.of(part_of(&values, first, 1).ok()?))
            } else if has_runs {
                let topic = part_of(&values, first, 0);
                let is_same = |other: PyResult<_>| matches!((&topic, other), (Ok(one), Ok(other)) if one.is(&other));
                while start < end && is_same(part_of(&values, start, 0)) {
                    start += 1;
                }
                let (value, run) = (values.clone().into_any(), Some(first..start));
                Some(Self {
                    value,
                    run,
                    ..*self
                })
            } else {
                Some(self.of(values.get_item(first).ok()?))
            }
        }))
    }

    /// Comparing two lists takes less time than reading one, above all if their names are the same
    /// objects.
    fn equals(&self, other: &Self) -> bool {
        self.value.eq(&other.value).unwrap_or_default()
    }
}

/// The value from which a group borrows its names.
enum Source {
    Objects(Names),
    Line(Value),
}

self_cell! {
    struct Cell {
        owner: Source,
        #[covariant]
        dependent: GroupSpec,
    }
}

/// By topic and partition: the TopicPartition object, if an answer for the group contained it.
/// Later answers for the group reuse the object, in a tenth of the time that a new object takes.
pub type Kept = Vec<Vec<Option<Py<PyAny>>>>;

/// A group in which numbers replace names.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct Interned {
    cell: Cell,
    member_ids: PyOnceLock<Py<PyTuple>>,
    pub kept: Mutex<Kept>,
}

impl Interned {
    fn of(
        source: Source,
        read: impl FnOnce(&Source) -> Result<GroupSpec<'_>, GroupError>,
    ) -> Result<Self, GroupError> {
        Ok(Self {
            cell: Cell::try_new(source, read)?,
            member_ids: PyOnceLock::new(),
            kept: Mutex::default(),
        })
    }

    /// Reads a parsed contract line. Returns None if it is wrong.
    pub fn of_line(line: Value, max_partitions: u64) -> Option<Self> {
        Self::of(Source::Line(line), |line| match line {
            Source::Line(line) => contract::from_value(line, max_partitions),
            Source::Objects(_) => unreachable!("a line"),
        })
        .ok()
    }

    pub fn spec(&self) -> &GroupSpec<'_> {
        self.cell.borrow_dependent()
    }

    pub fn line(&self) -> Option<&Map> {
        match self.cell.borrow_owner() {
            Source::Line(line) => line.as_object(),
            Source::Objects(_) => None,
        }
    }
}

#[pymethods]
impl Interned {
    #[getter]
    fn member_ids(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let make = || PyResult::Ok(PyTuple::new(py, self.spec().member_ids())?.unbind());
        Ok(self.member_ids.get_or_try_init(py, make)?.clone_ref(py))
    }
}

/// Converts a group's names to numbers. Python need not keep the group's objects alive.
#[pyfunction]
pub fn intern(group: &Bound<'_, PyAny>) -> PyResult<Interned> {
    let mut raised = None;
    let names = Source::Objects(Names::default());
    let interned = Interned::of(names, |names| {
        let Source::Objects(names) = names else {
            unreachable!("names");
        };
        let (value, run) = (group.clone(), None);
        let group = Object { value, run, names };
        let read = group_fields::read(group, u64::MAX);
        raised = names.held().1.take();
        read
    });
    interned.map_err(|error| raised.unwrap_or_else(|| raise(group.py(), &error)))
}
