// SPDX-License-Identifier: Apache-2.0
//! Checks quickly, for `group/field_types.py`, whether a Python group has exactly the types that
//! `group/model.py` declares. If not, the Python module searches for a wrong field.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple, PyType};

/// The classes of `model`.
struct Classes<'c, 'py> {
    topic: &'c Bound<'py, PyType>,
    member: &'c Bound<'py, PyType>,
    pair: &'c Bound<'py, PyType>,
}

/// Returns true only if every value has the exact declared type and the fields of streams groups
/// are None. If not, the values may still be allowed, so the Python check decides.
#[pyfunction]
pub fn has_its_types<'py>(
    group: &Bound<'py, PyAny>,
    topic: &Bound<'py, PyType>,
    member: &Bound<'py, PyType>,
    pair: &Bound<'py, PyType>,
) -> bool {
    let classes = Classes {
        topic,
        member,
        pair,
    };
    // An error means that an attribute is missing.
    classes.group(group).unwrap_or(false)
}

impl Classes<'_, '_> {
    fn group(&self, group: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = group.py();
        Ok(is_text(&group.getattr(intern!(py, "group_id"))?)
            && is_none_or(&group.getattr(intern!(py, "assignor"))?, is_text)
            && is_none_or(&group.getattr(intern!(py, "leader_library"))?, is_text)
            && is_none_or(&group.getattr(intern!(py, "leader"))?, is_text)
            && is_none_or(&group.getattr(intern!(py, "rebalance_protocol"))?, is_text)
            && is_none_or(&group.getattr(intern!(py, "generation_id"))?, is_integer)
            && group.getattr(intern!(py, "subtopologies"))?.is_none()
            && group
                .getattr(intern!(py, "num_standby_replicas"))?
                .is_none()
            && all(&group.getattr(intern!(py, "topics"))?, |t| self.topic(t))?
            && all(&group.getattr(intern!(py, "members"))?, |m| self.member(m))?)
    }

    fn topic(&self, topic: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = topic.py();
        if !topic.get_type().is(self.topic) {
            return Ok(false);
        }
        let racks = topic.getattr(intern!(py, "racks"))?;
        let initialized = topic.getattr(intern!(py, "initialized"))?;
        let is_rack = |rack: &Bound<'_, PyAny>| Ok(is_none_or(rack, is_text));
        Ok(is_text(&topic.getattr(intern!(py, "name"))?)
            && is_integer(&topic.getattr(intern!(py, "partitions"))?)
            && (racks.is_none() || all(&racks, |replicas| all(replicas, is_rack))?)
            && is_none_or(&topic.getattr(intern!(py, "topic_id"))?, is_text)
            && (initialized.is_none() || all(&initialized, |p| Ok(is_integer(p)))?))
    }

    fn member(&self, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = member.py();
        if !member.get_type().is(self.member) {
            return Ok(false);
        }
        let field = |name| member.getattr(name);
        Ok(is_text(&field(intern!(py, "member_id"))?)
            && all(&field(intern!(py, "topics"))?, |topic| Ok(is_text(topic)))?
            && is_none_or(&field(intern!(py, "group_instance_id"))?, is_text)
            && is_none_or(&field(intern!(py, "client_id"))?, is_text)
            && is_none_or(&field(intern!(py, "client_host"))?, is_text)
            && is_none_or(&field(intern!(py, "rack_id"))?, is_text)
            && is_none_or(&field(intern!(py, "generation_id"))?, is_integer)
            && is_none_or(&field(intern!(py, "subscription_version"))?, is_integer)
            && is_none_or(&field(intern!(py, "user_data"))?, is_text)
            && is_none_or(&field(intern!(py, "user_data_generation_id"))?, is_integer)
            && is_none_or(&field(intern!(py, "client_library"))?, is_text)
            && field(intern!(py, "streams"))?.is_none()
            && all(&field(intern!(py, "owned_partitions"))?, |tp| self.pair(tp))?)
    }

    fn pair(&self, pair: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !pair.get_type().is(self.pair) {
            return Ok(false);
        }
        let pair = pair.cast::<PyTuple>()?;
        let partition = pair.get_item(1)?;
        let in_range = |number: i64| (0..=i64::from(i32::MAX)).contains(&number);
        Ok(is_text(&pair.get_item(0)?)
            && is_integer(&partition)
            && partition.extract().is_ok_and(in_range))
    }
}

/// Whether the value is a str without unpaired surrogates, which UTF-8 cannot encode.
fn is_text(value: &Bound<'_, PyAny>) -> bool {
    let text = value.cast_exact::<PyString>();
    text.is_ok_and(|text| text.to_str().is_ok())
}

/// Whether the value is an int; True and False are not, because their type is a subclass of int.
fn is_integer(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>()
}

fn is_none_or(value: &Bound<'_, PyAny>, check: fn(&Bound<'_, PyAny>) -> bool) -> bool {
    value.is_none() || check(value)
}

/// Whether the value is a tuple or a list whose entries all pass the check.
fn all<'py>(
    values: &Bound<'py, PyAny>,
    check: impl Fn(&Bound<'py, PyAny>) -> PyResult<bool>,
) -> PyResult<bool> {
    if !values.is_exact_instance_of::<PyTuple>() && !values.is_exact_instance_of::<PyList>() {
        return Ok(false);
    }
    for value in values.try_iter()? {
        if !check(&value?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
