// SPDX-License-Identifier: Apache-2.0
//! Reads a contract line for `GroupSpec.from_json`, or a parsed one for `from_dict`:
//! `group/contract.rs` checks the line, and this module makes the objects of `group/model.py`. If
//! the line is wrong, `group/contract.py` reads it again and raises the error.

use super::group::{Interned, attributes};
use super::partitions::Maker;
use crate::group::contract::parse;
use crate::group::field_types::{Field, Kind};
use crate::group::group_fields::{GROUP, MEMBER, TOPIC};
use crate::group::model::{MemberId, TopicId};
use crate::group::spec::GroupSpec;
use crate::json::{Map, Number, Texts, Value};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

static TOPIC_CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static MEMBER_CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The deepest nesting of a line, as in serde_json.
const MOST_NESTED: u32 = 128;

type Object<'py> = Bound<'py, PyAny>;

/// Reads one line. Returns the values of the group's fields, and the group itself; None for a line
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
    let parsed = bytes.and_then(|bytes| py.detach(|| parse(bytes).ok()));
    group_of(py, parsed, max_partitions)
}

/// Reads a parsed line as `read_line` reads a line.
#[pyfunction]
pub fn read_fields<'py>(
    fields: &Object<'py>,
    max_partitions: &Object<'py>,
) -> PyResult<Option<Vec<Object<'py>>>> {
    let parsed = parsed(fields, &mut Texts::default(), MOST_NESTED);
    group_of(fields.py(), parsed, max_partitions)
}

fn group_of<'py>(
    py: Python<'py>,
    line: Option<Value>,
    max_partitions: &Object<'py>,
) -> PyResult<Option<Vec<Object<'py>>>> {
    let (Some(line), Ok(max_partitions)) = (line, max_partitions.extract::<u64>()) else {
        return Ok(None);
    };
    let Some(read) = py.detach(|| Interned::of_line(line, max_partitions)) else {
        return Ok(None);
    };
    let fields = match read.line() {
        Some(line) if !needs_python(line, read.spec()) => fields_of(py, line, read.spec())?,
        _ => return Ok(None),
    };
    let interned = Bound::new(py, read)?.into_any();
    Ok(Some(fields.into_iter().chain([interned]).collect()))
}

/// Converts a Python object to the value that its JSON would give; None if it holds types that JSON
/// lacks, or a number that the Python module reads in another way: one beyond signed 64 bits, or
/// one that is not finite. None also if it is nested too deeply.
fn parsed(object: &Object, texts: &mut Texts, nested: u32) -> Option<Value> {
    let nested = nested.checked_sub(1)?;
    if let Ok(text) = object.cast_exact::<PyString>() {
        Some(Value::String(texts.shared(text.to_str().ok()?)))
    } else if let Ok(number) = object.cast_exact::<PyInt>() {
        Some(Value::Number(number.extract::<i64>().ok()?.into()))
    } else if let Ok(list) = object.cast_exact::<PyList>() {
        let values = list.iter().map(|one| parsed(&one, texts, nested));
        values.collect::<Option<_>>().map(Value::Array)
    } else if let Ok(list) = object.cast_exact::<PyTuple>() {
        let values = list.iter().map(|one| parsed(&one, texts, nested));
        values.collect::<Option<_>>().map(Value::Array)
    } else if let Ok(fields) = object.cast_exact::<PyDict>() {
        let fields = fields.iter().map(|(name, value)| {
            let name = texts.shared(name.cast_exact::<PyString>().ok()?.to_str().ok()?);
            Some((name, parsed(&value, texts, nested)?))
        });
        fields.collect::<Option<_>>().map(Value::Object)
    } else if let Ok(flag) = object.cast_exact::<PyBool>() {
        Some(Value::Bool(flag.is_true()))
    } else if let Ok(number) = object.cast_exact::<PyFloat>() {
        Number::from_f64(number.value()).map(Value::Number)
    } else {
        object.is_none().then_some(Value::Null)
    }
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

/// Returns the values of the fields in `GROUP`, in its order.
fn fields_of<'py>(py: Python<'py>, line: &Map, spec: &GroupSpec) -> PyResult<Vec<Object<'py>>> {
    let class = TOPIC_CLASS.import(py, "kafka_rebalance.group.model", "Topic")?;
    let mut members = Members::new(py, spec)?;
    values(py, &GROUP, line, |name| {
        let made: PyResult<Vec<_>> = match name {
            "topics" => objects(line, name)
                .map(|line| instance(class, &TOPIC, line, |_| Ok(None)))
                .collect(),
            "members" => objects(line, name)
                .zip(0..)
                .map(|(line, m)| members.make(line, m))
                .collect(),
            _ => return Ok(None),
        };
        Ok(Some(PyTuple::new(py, made?)?.into_any()))
    })
}

/// Makes the members of a group; their lists are made from the numbers in `spec`.
struct Members<'s, 'a, 'py> {
    spec: &'s GroupSpec<'a>,
    class: &'py Bound<'py, PyType>,
    maker: Maker<'py>,
    names: Vec<Bound<'py, PyString>>,
    /// The topics of the member made last: members that share a list in `spec` share one tuple.
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
            class: MEMBER_CLASS.import(py, "kafka_rebalance.group.model", "Member")?,
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
        let lists = [
            ("topics", self.topics.1.clone()),
            ("owned_partitions", owned),
            ("owned_topics", owned_topics),
        ];
        instance(self.class, &MEMBER, line, |name| {
            let list = lists.iter().find(|(list, _)| *list == name);
            Ok(list.map(|(_, list)| list.clone().into_any()))
        })
    }
}

/// Returns the objects in a list of the line; `group/contract.rs` has checked that they are
/// objects.
fn objects<'v>(line: &'v Map, name: &str) -> impl Iterator<Item = &'v Map> {
    let values = line.get(name).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_object)
}

/// Returns the values of the fields in `table`: the value that `own` returns for a field's name or,
/// if that is None, the value in the line.
fn values<'py>(
    py: Python<'py>,
    table: &[Field],
    line: &Map,
    mut own: impl FnMut(&str) -> PyResult<Option<Object<'py>>>,
) -> PyResult<Vec<Object<'py>>> {
    let mut value = |field: &Field| match own(field.name)? {
        Some(value) => Ok(value),
        None => python(py, line.get(field.name), &field.kind),
    };
    table.iter().map(&mut value).collect()
}

/// Converts a line's value to Python: None if absent; in a list of lists, null becomes an empty
/// tuple.
fn python<'py>(py: Python<'py>, value: Option<&Value>, kind: &Kind) -> PyResult<Object<'py>> {
    Ok(match (kind, value) {
        (Kind::List(item), Some(Value::Array(values))) => {
            let one = |value| match (item, value) {
                (Kind::List(_), &Value::Null) => Ok(PyTuple::empty(py).into_any()),
                _ => python(py, Some(value), item),
            };
            let made: PyResult<Vec<_>> = values.iter().map(one).collect();
            PyTuple::new(py, made?)?.into_any()
        }
        (Kind::Text, Some(Value::String(text))) => PyString::new(py, text.as_str()).into_any(),
        (Kind::Number(_), Some(Value::Number(number))) if number.is_f64() => {
            number.as_f64().into_pyobject(py)?
        }
        (Kind::Whole(..) | Kind::Number(_), Some(Value::Number(number))) => {
            number.as_i64().into_pyobject(py)?
        }
        _ => py.None().into_bound(py),
    })
}

/// Makes a frozen dataclass without its constructor, which would take several times longer.
fn instance<'py>(
    class: &Bound<'py, PyType>,
    table: &'static [Field],
    line: &Map,
    own: impl FnMut(&str) -> PyResult<Option<Object<'py>>>,
) -> PyResult<Object<'py>> {
    let py = class.py();
    let made = py
        .get_type::<PyAny>()
        .call_method1(intern!(py, "__new__"), (class,))?;
    for (name, value) in attributes(py, table)
        .iter()
        .zip(values(py, table, line, own)?)
    {
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
