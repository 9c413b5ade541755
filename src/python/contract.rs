// SPDX-License-Identifier: Apache-2.0
//! Reads a contract line for `GroupSpec.from_json`: `group/contract.rs` checks the line, and this
//! module makes the objects of `group/model.py`. If the line is wrong, `group/contract.py` reads it
//! again and raises the error.

use super::group::Interned;
use super::partitions::Maker;
use crate::group::model::{MemberId, TopicId};
use crate::group::spec::GroupSpec;
use crate::json::{Map, Value};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};

static TOPIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static MEMBER: PyOnceLock<Py<PyType>> = PyOnceLock::new();

type Object<'py> = Bound<'py, PyAny>;
type Names<'py> = Bound<'py, PyTuple>;

/// Reads one line; returns the values of the group's fields named in `names`, which has the names of
/// the attributes of a group, a topic and a member, and then the interned group. Returns None for a
/// line that only the Python module reads: one with an error, of a streams group, or with the id of
/// a deleted topic.
#[pyfunction]
pub fn read_line<'py>(
    line: &Object<'py>,
    max_partitions: &Object<'py>,
    names: (Names<'py>, Names<'py>, Names<'py>),
) -> PyResult<Option<Vec<Object<'py>>>> {
    let py = line.py();
    let bytes = match line.cast_exact::<PyString>() {
        Ok(text) => text.to_str().ok().map(str::as_bytes),
        Err(_) => line
            .cast_exact::<PyBytes>()
            .ok()
            .map(|line| line.as_bytes()),
    };
    let (Some(bytes), Ok(max_partitions)) = (bytes, max_partitions.extract::<u64>()) else {
        return Ok(None);
    };
    let Some(read) = py.detach(|| Interned::of_line(bytes, max_partitions)) else {
        return Ok(None);
    };
    let fields = match read.line() {
        Some(line) if !needs_python(line, read.spec()) => fields_of(line, read.spec(), &names)?,
        _ => return Ok(None),
    };
    let interned = Bound::new(py, read)?.into_any();
    Ok(Some(fields.into_iter().chain([interned]).collect()))
}

fn needs_python(line: &Map, spec: &GroupSpec) -> bool {
    let given = |fields: &Map, name| fields.get(name).is_some_and(|value| !value.is_null());
    let mut members = objects(line, "members");
    given(line, "subtopologies")
        || given(line, "num_standby_replicas")
        || members.any(|member| given(member, "process_id"))
        || spec.topics[spec.declared..]
            .iter()
            .any(|topic| topic.topic_id.is_some())
}

fn fields_of<'py>(
    line: &Map,
    spec: &GroupSpec,
    (group, topic, member): &(Names<'py>, Names<'py>, Names<'py>),
) -> PyResult<Vec<Object<'py>>> {
    let py = group.py();
    let class = TOPIC.import(py, "kafka_rebalance.group.model", "Topic")?;
    let mut members = Members::new(py, spec)?;
    let value = |name: &str| match name {
        "topics" => {
            let topics = objects(line, name)
                .map(|line| instance(class, topic, |name| topic_field(py, name, line.get(name))));
            Ok(PyTuple::new(py, topics.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        "members" => {
            let made = objects(line, name).zip(0..);
            let made = made.map(|(line, m)| members.make(line, m, member));
            Ok(PyTuple::new(py, made.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        _ => plain(py, line.get(name)),
    };
    values(group, value)
        .map(|value| value.map(|(_, value)| value))
        .collect()
}

/// A field of a topic. In `racks`, null is read as a partition without racks.
fn topic_field<'py>(py: Python<'py>, name: &str, value: Option<&Value>) -> PyResult<Object<'py>> {
    match (name, value) {
        ("racks", Some(Value::Array(partitions))) => {
            let racks = partitions.iter().map(|racks| match racks {
                Value::Null => Ok(PyTuple::empty(py).into_any()),
                racks => plain(py, Some(racks)),
            });
            Ok(PyTuple::new(py, racks.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        (_, value) => plain(py, value),
    }
}

/// Makes the members of a group, and their lists from the numbers of `spec`.
struct Members<'s, 'a, 'py> {
    spec: &'s GroupSpec<'a>,
    class: &'py Bound<'py, PyType>,
    maker: Maker<'py>,
    names: Vec<Bound<'py, PyString>>,
    /// The last member's list of topics. Members that share a list in `spec` share its tuple.
    topics: (&'s [TopicId], Bound<'py, PyTuple>),
}

impl<'s, 'a, 'py> Members<'s, 'a, 'py> {
    fn new(py: Python<'py>, spec: &'s GroupSpec<'a>) -> PyResult<Self> {
        let most = spec.owned.iter().map(|tp| tp.partition).max().unwrap_or(0);
        let mut maker = Maker::new(py)?;
        maker.expect(most, spec.owned.len())?;
        let names = spec
            .topics
            .iter()
            .map(|topic| PyString::new(py, topic.name));
        Ok(Self {
            spec,
            class: MEMBER.import(py, "kafka_rebalance.group.model", "Member")?,
            maker,
            names: names.collect(),
            topics: (&[], PyTuple::empty(py)),
        })
    }

    fn make(&mut self, line: &Map, member: MemberId, names: &Names<'py>) -> PyResult<Object<'py>> {
        let py = self.class.py();
        let topics = self.spec.subscription(member);
        if !std::ptr::eq(topics, self.topics.0) {
            let names = topics.iter().map(|&topic| &self.names[topic as usize]);
            self.topics = (topics, PyTuple::new(py, names)?);
        }
        instance(self.class, names, |name| match name {
            "topics" => Ok(self.topics.1.clone().into_any()),
            "owned_partitions" => {
                let owned = self.spec.owned(member).iter().map(|tp| {
                    let topic = &self.names[tp.topic as usize];
                    self.maker.make(topic, tp.partition)
                });
                Ok(PyTuple::new(py, owned.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            "owned_topics" => {
                let topics = self.spec.owned_topics(member).iter();
                let names = topics.map(|&topic| &self.names[topic as usize]);
                Ok(PyTuple::new(py, names.collect::<Vec<_>>())?.into_any())
            }
            "streams" => Ok(py.None().into_bound(py)),
            _ => plain(py, line.get(name)),
        })
    }
}

/// The objects in a list of the line; `group/contract.rs` has checked that they are objects.
fn objects<'v>(line: &'v Map, name: &str) -> impl Iterator<Item = &'v Map> {
    let values = line.get(name).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_object)
}

/// A text, a whole number or a tuple of such; else None.
fn plain<'py>(py: Python<'py>, value: Option<&Value>) -> PyResult<Object<'py>> {
    Ok(match value {
        Some(Value::String(text)) => PyString::new(py, text.as_str()).into_any(),
        Some(Value::Number(number)) => number.as_i64().into_pyobject(py)?,
        Some(Value::Bool(flag)) => flag.into_pyobject(py)?.to_owned().into_any(),
        Some(Value::Array(values)) => {
            let values = values.iter().map(|value| plain(py, Some(value)));
            PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        _ => py.None().into_bound(py),
    })
}

/// The names, each with the value that `value` returns for it.
fn values<'n, 'py>(
    names: &'n Names<'py>,
    mut value: impl FnMut(&str) -> PyResult<Object<'py>>,
) -> impl Iterator<Item = PyResult<(Bound<'py, PyString>, Object<'py>)>> {
    names.iter_borrowed().map(move |name| {
        let name = name.cast::<PyString>()?.to_owned();
        let value = value(name.to_str()?)?;
        Ok((name, value))
    })
}

/// Makes a frozen dataclass without its constructor, which takes several times longer.
fn instance<'py>(
    class: &Bound<'py, PyType>,
    names: &Names<'py>,
    value: impl FnMut(&str) -> PyResult<Object<'py>>,
) -> PyResult<Object<'py>> {
    let py = class.py();
    let made = py
        .get_type::<PyAny>()
        .call_method1(intern!(py, "__new__"), (class,))?;
    for field in values(names, value) {
        let (name, value) = field?;
        // SAFETY: all three are objects. This is `object.__setattr__`, which the constructor of a
        // frozen dataclass calls, too.
        let set =
            unsafe { ffi::PyObject_GenericSetAttr(made.as_ptr(), name.as_ptr(), value.as_ptr()) };
        if set != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(made)
}
