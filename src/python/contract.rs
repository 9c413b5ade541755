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

/// Reads one line; returns the fields named in `_READ` (`group/spec.py`). Returns None for a line
/// that only the Python module reads: one with an error, of a streams group, or with the id of a
/// deleted topic.
#[pyfunction]
pub fn read_line<'py>(
    line: &Object<'py>,
    max_partitions: &Object<'py>,
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
        Some(line) if !needs_python(line, read.spec()) => fields_of(py, line, read.spec())?,
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

fn fields_of<'py>(py: Python<'py>, line: &Map, spec: &GroupSpec) -> PyResult<Vec<Object<'py>>> {
    let topic = TOPIC.import(py, "kafka_rebalance.group.model", "Topic")?;
    let topics = objects(line, "topics").map(|line| {
        let racks = |partition| list(py, partition, |rack| scalar(py, Some(rack)));
        instance(
            topic,
            [
                (intern!(py, "name"), scalar(py, line.get("name"))?),
                (
                    intern!(py, "partitions"),
                    scalar(py, line.get("partitions"))?,
                ),
                (
                    intern!(py, "racks"),
                    optional_list(py, line.get("racks"), racks)?,
                ),
                (intern!(py, "topic_id"), scalar(py, line.get("topic_id"))?),
                (
                    intern!(py, "initialized"),
                    optional_list(py, line.get("initialized"), |one| scalar(py, Some(one)))?,
                ),
            ],
        )
    });
    let topics = PyTuple::new(py, topics.collect::<PyResult<Vec<_>>>()?)?;
    let mut members = Members::new(py, spec)?;
    let made = objects(line, "members").zip(0..);
    let made = made.map(|(line, m)| members.make(line, m));
    let members = PyTuple::new(py, made.collect::<PyResult<Vec<_>>>()?)?;
    let text = |name| scalar(py, line.get(name));
    Ok(vec![
        text("group_id")?,
        topics.into_any(),
        members.into_any(),
        text("assignor")?,
        text("generation_id")?,
        text("leader_library")?,
        text("leader")?,
        text("rebalance_protocol")?,
    ])
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

    fn make(&mut self, line: &Map, member: MemberId) -> PyResult<Object<'py>> {
        let py = self.class.py();
        let topics = self.spec.subscription(member);
        if !std::ptr::eq(topics, self.topics.0) {
            let names = topics.iter().map(|&topic| &self.names[topic as usize]);
            self.topics = (topics, PyTuple::new(py, names)?);
        }
        let owned = self.spec.owned(member).iter();
        let owned = owned.map(|tp| {
            self.maker
                .make(&self.names[tp.topic as usize], tp.partition)
        });
        let owned = PyTuple::new(py, owned.collect::<PyResult<Vec<_>>>()?)?;
        let owned_topics = self.spec.owned_topics(member).iter();
        let owned_topics = owned_topics.map(|&topic| &self.names[topic as usize]);
        let owned_topics = PyTuple::new(py, owned_topics.collect::<Vec<_>>())?;
        let field = |name| scalar(py, line.get(name));
        let generation = intern!(py, "user_data_generation_id");
        instance(
            self.class,
            [
                (intern!(py, "member_id"), field("member_id")?),
                (intern!(py, "topics"), self.topics.1.clone().into_any()),
                (
                    intern!(py, "group_instance_id"),
                    field("group_instance_id")?,
                ),
                (intern!(py, "client_id"), field("client_id")?),
                (intern!(py, "client_host"), field("client_host")?),
                (intern!(py, "owned_partitions"), owned.into_any()),
                (intern!(py, "owned_topics"), owned_topics.into_any()),
                (intern!(py, "generation_id"), field("generation_id")?),
                (intern!(py, "rack_id"), field("rack_id")?),
                (
                    intern!(py, "subscription_version"),
                    field("subscription_version")?,
                ),
                (intern!(py, "user_data"), field("user_data")?),
                (generation, field("user_data_generation_id")?),
                (intern!(py, "client_library"), field("client_library")?),
                (intern!(py, "streams"), py.None().into_bound(py)),
            ],
        )
    }
}

/// The objects in a list of the line; `group/contract.rs` has checked that they are objects.
fn objects<'v>(line: &'v Map, name: &str) -> impl Iterator<Item = &'v Map> {
    let values = line.get(name).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_object)
}

/// A text or a whole number; None if there is neither.
fn scalar<'py>(py: Python<'py>, value: Option<&Value>) -> PyResult<Object<'py>> {
    Ok(match value {
        Some(Value::String(text)) => PyString::new(py, text.as_str()).into_any(),
        Some(Value::Number(number)) => number.as_i64().into_pyobject(py)?,
        _ => py.None().into_bound(py),
    })
}

fn list<'v, 'py>(
    py: Python<'py>,
    value: &'v Value,
    item: impl Fn(&'v Value) -> PyResult<Object<'py>>,
) -> PyResult<Object<'py>> {
    let values = value.as_array().into_iter().flatten().map(item);
    Ok(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

fn optional_list<'v, 'py>(
    py: Python<'py>,
    value: Option<&'v Value>,
    item: impl Fn(&'v Value) -> PyResult<Object<'py>>,
) -> PyResult<Object<'py>> {
    match value {
        Some(value) if !value.is_null() => list(py, value, item),
        _ => Ok(py.None().into_bound(py)),
    }
}

/// Makes a frozen dataclass without its constructor, which takes several times longer.
fn instance<'py, const N: usize>(
    class: &Bound<'py, PyType>,
    fields: [(&Bound<'py, PyString>, Object<'py>); N],
) -> PyResult<Object<'py>> {
    let py = class.py();
    let made = py
        .get_type::<PyAny>()
        .call_method1(intern!(py, "__new__"), (class,))?;
    for (name, value) in fields {
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
