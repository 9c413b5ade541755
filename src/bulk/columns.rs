// SPDX-License-Identifier: Apache-2.0
//! Reads nested Arrow columns, which are found by name, in any order. Offsets of lists and strings
//! may have 32 or 64 bits, because Spark, pyarrow, pandas and polars differ. A column of Arrow's
//! null type, and an absent optional column, count as columns of nulls.

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields};

use crate::group::builder::Name;
use crate::group::field_types::{Field, Input, Kind};
use crate::group::model::TopicId;

/// The error for a column that is missing, or whose type differs from the contract.
#[derive(Debug)]
pub struct SchemaError {
    /// Path of the column, for example `members[].topics`.
    pub path: String,
    pub problem: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// A column and its parts. An entry counts as null, too, if the struct that contains it is null.
pub struct Column<'a> {
    nulls: Option<&'a NullBuffer>,
    nulls_of_struct: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Absent,
    Binary(&'a arrow_array::BinaryArray),
    LargeBinary(&'a arrow_array::LargeBinaryArray),
    BinaryView(&'a arrow_array::BinaryViewArray),
    Utf8(&'a arrow_array::StringArray),
    LargeUtf8(&'a arrow_array::LargeStringArray),
    Utf8View(&'a arrow_array::StringViewArray),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Boolean(&'a arrow_array::BooleanArray),
    List(&'a [i32], Box<Column<'a>>),
    LargeList(&'a [i64], Box<Column<'a>>),
    /// By field of the field table: its column; None for a field that never has a column.
    Object(Vec<Option<Column<'a>>>),
}

impl<'a> Column<'a> {
    /// Finds, in an Arrow batch, the column of each field in `table`.
    pub fn of_batch(batch: &'a RecordBatch, table: &[Field]) -> Result<Self, SchemaError> {
        let columns = (batch.schema_ref().fields(), batch.columns());
        Self::of_fields("", columns, None, table)
    }

    fn of_fields(
        path: &str,
        columns: (&'a Fields, &'a [ArrayRef]),
        nulls: Option<&'a NullBuffer>,
        table: &[Field],
    ) -> Result<Self, SchemaError> {
        let one = |field: &Field| {
            if field.only.is_some() {
                return Ok(None);
            }
            if let Kind::Beside(table) = field.kind {
                return Self::of_fields(path, columns, nulls, table).map(Some);
            }
            let path = format!("{path}{}", field.name);
            let found = columns.0.find(field.name).map(|(i, _)| &columns.1[i]);
            if found.is_none() && field.is_required {
                let problem = "the column is missing".into();
                return Err(SchemaError { path, problem });
            }
            Self::of(path, found, nulls, &field.kind).map(Some)
        };
        let fields = table.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self {
            nulls: None,
            nulls_of_struct: None,
            values: Values::Object(fields),
        })
    }

    /// Reads an array as a column of this kind. Returns an error if the array has another type.
    pub fn of(
        path: String,
        found: Option<&'a ArrayRef>,
        nulls_of_struct: Option<&'a NullBuffer>,
        kind: &Kind,
    ) -> Result<Self, SchemaError> {
        let column = |nulls, values| Self {
            nulls,
            nulls_of_struct,
            values,
        };
        let Some(array) = found.filter(|array| *array.data_type() != DataType::Null) else {
            return Ok(column(None, Values::Absent));
        };
        let items = |values, item| {
            let items = Self::of(format!("{path}[]"), Some(values), None, item);
            items.map(Box::new)
        };
        use Kind::{Bytes, Flag, Line, List, Number, Object, Run, Text, Topic, Whole};
        let values = match (kind, array.data_type()) {
            (Bytes | Line, DataType::Binary) => Values::Binary(array.as_binary()),
            (Bytes | Line, DataType::LargeBinary) => Values::LargeBinary(array.as_binary()),
            (Bytes | Line, DataType::BinaryView) => Values::BinaryView(array.as_binary_view()),
            (Text | Topic | Line, DataType::Utf8) => Values::Utf8(array.as_string()),
            (Text | Topic | Line, DataType::LargeUtf8) => Values::LargeUtf8(array.as_string()),
            (Text | Topic | Line, DataType::Utf8View) => Values::Utf8View(array.as_string_view()),
            (Whole(..) | Topic | Number(_), DataType::Int32) => {
                Values::Int32(array.as_primitive::<Int32Type>().values())
            }
            (Whole(..) | Topic | Number(_), DataType::Int64) => {
                Values::Int64(array.as_primitive::<Int64Type>().values())
            }
            (Number(_), DataType::Float32) => {
                Values::Float32(array.as_primitive::<Float32Type>().values())
            }
            (Number(_), DataType::Float64) => {
                Values::Float64(array.as_primitive::<Float64Type>().values())
            }
            (Flag, DataType::Boolean) => Values::Boolean(array.as_boolean()),
            (List(item), DataType::List(_)) => {
                let list = array.as_list::<i32>();
                Values::List(list.value_offsets(), items(list.values(), item)?)
            }
            (List(item), DataType::LargeList(_)) => {
                let list = array.as_list::<i64>();
                Values::LargeList(list.value_offsets(), items(list.values(), item)?)
            }
            (Object(table) | Run(table), DataType::Struct(_)) => {
                let structs = array.as_struct();
                let columns = (structs.fields(), structs.columns());
                return Self::of_fields(&format!("{path}."), columns, structs.nulls(), table);
            }
            (_, found) => {
                let problem = format!("{found} is not {}", expected(kind));
                return Err(SchemaError { path, problem });
            }
        };
        Ok(column(array.nulls(), values))
    }

    /// Returns the column of field `i` of the field table; panics for a field that never has a
    /// column.
    pub fn field(&self, i: usize) -> &Self {
        match &self.values {
            Values::Object(fields) => fields[i].as_ref().expect("a field of columns"),
            _ => unreachable!("an object"),
        }
    }

    pub fn at(&self, at: usize) -> Cell<'_, 'a> {
        Cell { column: self, at }
    }

    #[inline]
    fn is_null(&self, i: usize) -> bool {
        matches!(self.values, Values::Absent)
            || self.nulls.is_some_and(|nulls| nulls.is_null(i))
            || self.nulls_of_struct.is_some_and(|nulls| nulls.is_null(i))
    }

    /// Returns the bytes of a binary value or of a string, which may not be UTF-8; None if it is
    /// null.
    #[inline]
    pub fn bytes(&self, i: usize) -> Option<&'a [u8]> {
        if self.is_null(i) {
            return None;
        }
        match self.values {
            Values::Binary(array) => Some(array.value(i)),
            Values::LargeBinary(array) => Some(array.value(i)),
            Values::BinaryView(array) => Some(array.value(i)),
            Values::Utf8(array) => Some(array.value(i).as_bytes()),
            Values::LargeUtf8(array) => Some(array.value(i).as_bytes()),
            Values::Utf8View(array) => Some(array.value(i).as_bytes()),
            _ => None,
        }
    }

    #[inline]
    pub fn whole(&self, i: usize) -> Option<i64> {
        match self.values {
            _ if self.is_null(i) => None,
            Values::Int32(values) => Some(values[i].into()),
            Values::Int64(values) => Some(values[i]),
            _ => None,
        }
    }

    #[inline]
    pub fn list(&self, i: usize) -> Option<(Range<usize>, &Self)> {
        match &self.values {
            _ if self.is_null(i) => None,
            Values::List(ends, items) => Some((ends[i] as usize..ends[i + 1] as usize, items)),
            Values::LargeList(ends, items) => Some((ends[i] as usize..ends[i + 1] as usize, items)),
            _ => None,
        }
    }
}

fn expected(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Topic => "a string",
        Kind::Bytes => "binary",
        Kind::Line => "binary or a string",
        Kind::Whole(..) => "an integer of 32 or 64 bits",
        Kind::Flag => "a boolean",
        Kind::Number(_) => "a number",
        Kind::List(_) => "a list",
        Kind::Object(_) | Kind::Run(_) | Kind::Beside(_) => "a struct",
    }
}

#[derive(Clone, Copy)]
pub struct Cell<'c, 'a> {
    column: &'c Column<'a>,
    at: usize,
}

#[cold]
fn null(noun: &str) -> String {
    format!("null is not a {noun}")
}

#[cold]
fn no_place(place: i64, declared: usize) -> String {
    format!("{place} is not a place in topics, of which there are {declared}")
}

impl<'a> Input<'a> for Cell<'_, 'a> {
    #[inline]
    fn fields<const N: usize>(
        &self,
        _table: &'static [Field; N],
    ) -> Result<[Option<Self>; N], String> {
        let Values::Object(columns) = &self.column.values else {
            return Ok([None; N]);
        };
        Ok(std::array::from_fn(|i| {
            let column = columns[i].as_ref()?;
            (!column.is_null(self.at)).then(|| column.at(self.at))
        }))
    }

    fn is_null(&self) -> bool {
        self.column.is_null(self.at)
    }

    /// Arrow's importers do not validate strings, and Spark stores any bytes. Each string is
    /// checked here, so a bad one fails only its own row.
    #[inline]
    fn text(&self) -> Result<&'a str, String> {
        let bytes = self.column.bytes(self.at).ok_or_else(|| null("string"))?;
        std::str::from_utf8(bytes).map_err(|_| "not UTF-8".into())
    }

    fn flag(&self) -> Result<bool, String> {
        match self.column.values {
            Values::Boolean(flags) => Ok(flags.value(self.at)),
            _ => Err(null("boolean")),
        }
    }

    #[inline]
    fn whole(&self, kind: &Kind) -> Result<i64, String> {
        let number = self.column.whole(self.at);
        number.ok_or_else(|| null(kind.noun()))
    }

    fn number(&self, kind: &Kind) -> Result<f64, String> {
        match self.column.values {
            _ if self.is_null() => Err(null(kind.noun())),
            Values::Float32(values) => Ok(values[self.at].into()),
            Values::Float64(values) => Ok(values[self.at]),
            _ => self.whole(kind).map(|one| {
                if one > 1 << 53 {
                    f64::INFINITY
                } else {
                    one as f64
                }
            }),
        }
    }

    #[inline]
    fn list(&self, _item: &'static Kind) -> Result<impl Iterator<Item = Self>, String> {
        let (range, items) = self.column.list(self.at).ok_or_else(|| null("list"))?;
        Ok(range.map(|at| items.at(at)))
    }

    /// Returns a topic by its name, or by its index in the group's list, which is cheaper to pass.
    #[inline]
    fn topic(&self, declared: usize) -> Result<Name<'a>, String> {
        if !matches!(self.column.values, Values::Int32(_) | Values::Int64(_)) {
            return self.text().map(Name::Text);
        }
        let place = self.column.whole(self.at);
        let place = place.ok_or_else(|| null("string"))?;
        if !(0..declared as i64).contains(&place) {
            return Err(no_place(place, declared));
        }
        Ok(Name::Place(place as TopicId))
    }
}
