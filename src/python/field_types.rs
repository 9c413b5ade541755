// SPDX-License-Identifier: Apache-2.0
//! Checks quickly whether a Python group has exactly the types in the table of
//! `group/group_fields.py`. If not, the Python module searches for the wrong field.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

/// A type, as `exact` in `group/field_types.py` describes it.
enum Kind {
    /// A string; if the list is not empty, one of the strings in the list.
    Text(Vec<String>),
    Whole(i64, i64),
    Number(f64, f64),
    Flag,
    Optional(Box<Kind>),
    List(Box<Kind>),
    /// A named tuple of a string and a partition number.
    Pair(Py<PyType>),
    Object(Py<PyType>, Fields),
}

type Fields = Vec<(Py<PyString>, Kind)>;

/// The types of a group's fields.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct FieldTypes(Fields);

#[pymethods]
impl FieldTypes {
    #[new]
    fn new(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        fields_of(fields).map(Self)
    }

    /// Returns true only if every value has the exact type. If not, the values may still be
    /// allowed; then the Python check decides.
    fn fit(&self, group: &Bound<'_, PyAny>) -> bool {
        // An error here means that an attribute is missing.
        all_fit(&self.0, group).unwrap_or(false)
    }
}

fn fields_of(fields: &Bound<'_, PyAny>) -> PyResult<Fields> {
    let read = |field: PyResult<Bound<'_, PyAny>>| {
        let (name, kind): (Bound<'_, PyString>, Bound<'_, PyTuple>) = field?.extract()?;
        Ok((name.unbind(), kind_of(&kind)?))
    };
    fields.try_iter()?.map(read).collect()
}

fn kind_of(kind: &Bound<'_, PyTuple>) -> PyResult<Kind> {
    let item = |i| kind.get_item(i);
    let inner = || PyResult::Ok(Box::new(kind_of(item(1)?.cast()?)?));
    let name: String = item(0)?.extract()?;
    Ok(match name.as_str() {
        "text" => Kind::Text(kind.get_slice(1, kind.len()).extract()?),
        "whole" => Kind::Whole(item(1)?.extract()?, item(2)?.extract()?),
        "number" => Kind::Number(item(1)?.extract()?, item(2)?.extract()?),
        "flag" => Kind::Flag,
        "optional" => Kind::Optional(inner()?),
        "list" => Kind::List(inner()?),
        "pair" => Kind::Pair(item(1)?.extract()?),
        "object" => Kind::Object(item(1)?.extract()?, fields_of(&item(2)?)?),
        _ => return Err(PyValueError::new_err(name)),
    })
}

fn all_fit(fields: &Fields, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for (name, kind) in fields {
        if !kind.fits(&object.getattr(name)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Kind {
    fn fits(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(match self {
            // A str with unpaired surrogates does not fit: it cannot be encoded as UTF-8.
            Self::Text(choices) => match value.cast_exact::<PyString>().map(|text| text.to_str()) {
                Ok(Ok(text)) => choices.is_empty() || choices.iter().any(|one| one == text),
                _ => false,
            },
            Self::Whole(least, most) => is_whole(value, *least, *most),
            Self::Number(least, most) => {
                let is_number = value.is_exact_instance_of::<PyFloat>()
                    || value.is_exact_instance_of::<PyInt>();
                is_number
                    && value
                        .extract()
                        .is_ok_and(|one: f64| (*least..*most).contains(&one))
            }
            Self::Flag => value.is_exact_instance_of::<PyBool>(),
            Self::Optional(kind) => value.is_none() || kind.fits(value)?,
            Self::List(kind) => {
                if !value.is_exact_instance_of::<PyTuple>()
                    && !value.is_exact_instance_of::<PyList>()
                {
                    return Ok(false);
                }
                for one in value.try_iter()? {
                    if !kind.fits(&one?)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Pair(class) => {
                value.get_type().is(class) && {
                    let pair = value.cast::<PyTuple>()?;
                    let text = pair.get_item(0)?;
                    let text = text.cast_exact::<PyString>();
                    text.is_ok_and(|text| text.to_str().is_ok())
                        && is_whole(&pair.get_item(1)?, 0, i32::MAX.into())
                }
            }
            Self::Object(class, fields) => value.get_type().is(class) && all_fit(fields, value)?,
        })
    }
}

/// Whether the value is an int in these bounds; True and False are not, because their type is a
/// subclass of int.
fn is_whole(value: &Bound<'_, PyAny>, least: i64, most: i64) -> bool {
    let in_bounds = |number: i64| (least..=most).contains(&number);
    value.is_exact_instance_of::<PyInt>() && value.extract().is_ok_and(in_bounds)
}
