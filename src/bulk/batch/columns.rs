// SPDX-License-Identifier: Apache-2.0
//! Reads nested Arrow columns. Offsets of lists and texts may have 32 or 64 bits, because Spark,
//! pyarrow, pandas and polars differ. A column of Arrow's null type, or an absent optional column,
//! has only nulls.

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

/// The error of a column that is missing, or whose type differs from the contract's.
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

fn wrong(path: &str, expected: &str, found: &DataType) -> SchemaError {
    SchemaError {
        path: path.into(),
        problem: format!("{found} is not {expected}"),
    }
}

/// A set of named columns: those of a batch, or the fields of a list's structs.
pub struct Structs<'a> {
    path: String,
    fields: Vec<(&'a str, &'a ArrayRef)>,
    /// None for the columns of the batch, and for structs without values.
    parent: Option<&'a StructArray>,
    absent: bool,
}

impl<'a> Structs<'a> {
    pub fn of_batch(batch: &'a RecordBatch) -> Self {
        let schema = batch.schema_ref().fields();
        let names = schema.iter().map(|field| field.name().as_str());
        Self {
            path: String::new(),
            fields: names.zip(batch.columns()).collect(),
            parent: None,
            absent: false,
        }
    }

    /// The column of this name. An absent optional column has only nulls.
    pub fn column<C: Column<'a>>(&self, name: &str, required: bool) -> Result<C, SchemaError> {
        let (path, presence) = self.find(name, required)?;
        C::of(path, presence)
    }

    pub fn find(&self, name: &str, required: bool) -> Result<(String, Presence<'a>), SchemaError> {
        let path = format!("{}{name}", self.path);
        let found = self.fields.iter().find(|(field, _)| *field == name);
        let own = found.map(|&(_, column)| column);
        if own.is_none() && required && !self.absent {
            let problem = "the column is missing".into();
            return Err(SchemaError { path, problem });
        }
        Ok((path, Presence::of(own, self.parent)))
    }
}

/// A column and its null flags: an entry is present if neither it nor its struct is null.
#[derive(Clone, Copy)]
pub struct Presence<'a> {
    /// None for an absent column, and for a column of Arrow's null type.
    own: Option<&'a ArrayRef>,
    nulls: Option<&'a NullBuffer>,
    nulls_of_parent: Option<&'a NullBuffer>,
}

impl<'a> Presence<'a> {
    fn of(column: Option<&'a ArrayRef>, parent: Option<&'a StructArray>) -> Self {
        let own = column.filter(|column| *column.data_type() != DataType::Null);
        Self {
            own,
            nulls: own.and_then(|own| own.nulls()),
            nulls_of_parent: parent.and_then(|parent| parent.nulls()),
        }
    }

    #[inline]
    pub fn at(&self, i: usize) -> bool {
        self.own.is_some()
            && self.nulls.is_none_or(|nulls| nulls.is_valid(i))
            && self.nulls_of_parent.is_none_or(|nulls| nulls.is_valid(i))
    }
}

/// A column of one kind; `of` returns an error for a column of another kind.
pub trait Column<'a>: Sized {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError>;
}

/// Binary values, for example keys or values of records.
pub struct Bytes<'a> {
    presence: Presence<'a>,
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
}

impl<'a> Bytes<'a> {
    fn of_types(
        path: &str,
        presence: Presence<'a>,
        expected: &str,
        is_expected: impl Fn(&DataType) -> bool,
    ) -> Result<Self, SchemaError> {
        let values = match presence.own.map(|column| (column, column.data_type())) {
            None => Values::Absent,
            Some((_, other)) if !is_expected(other) => return Err(wrong(path, expected, other)),
            Some((column, DataType::Binary)) => Values::Binary(column.as_binary()),
            Some((column, DataType::LargeBinary)) => Values::LargeBinary(column.as_binary()),
            Some((column, DataType::BinaryView)) => Values::BinaryView(column.as_binary_view()),
            Some((column, DataType::Utf8)) => Values::Utf8(column.as_string()),
            Some((column, DataType::LargeUtf8)) => Values::LargeUtf8(column.as_string()),
            Some((column, _)) => Values::Utf8View(column.as_string_view()),
        };
        Ok(Self { presence, values })
    }

    #[inline]
    pub fn get(&self, i: usize) -> Option<&'a [u8]> {
        if !self.presence.at(i) {
            return None;
        }
        match self.values {
            Values::Absent => None,
            Values::Binary(array) => Some(array.value(i)),
            Values::LargeBinary(array) => Some(array.value(i)),
            Values::BinaryView(array) => Some(array.value(i)),
            Values::Utf8(array) => Some(array.value(i).as_bytes()),
            Values::LargeUtf8(array) => Some(array.value(i).as_bytes()),
            Values::Utf8View(array) => Some(array.value(i).as_bytes()),
        }
    }
}

fn is_binary(found: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary};
    matches!(found, Binary | LargeBinary | BinaryView)
}

fn is_text(found: &DataType) -> bool {
    use DataType::{LargeUtf8, Utf8, Utf8View};
    matches!(found, Utf8 | LargeUtf8 | Utf8View)
}

impl<'a> Column<'a> for Bytes<'a> {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError> {
        Self::of_types(&path, presence, "binary", is_binary)
    }
}

/// Text values, which are checked when they are read.
pub struct Strings<'a>(Bytes<'a>);

impl<'a> Column<'a> for Strings<'a> {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError> {
        Bytes::of_types(&path, presence, "a string", is_text).map(Self)
    }
}

impl<'a> Strings<'a> {
    /// Returns an error if the bytes are not UTF-8. Arrow's importers do not validate strings, and
    /// Spark keeps any bytes. Each string is checked here, so a bad one fails only its own row.
    #[inline]
    pub fn get(&self, i: usize) -> Result<Option<&'a str>, NotUtf8> {
        let checked = self.0.get(i).map(std::str::from_utf8).transpose();
        checked.map_err(|_| NotUtf8)
    }

    pub fn presence(&self) -> &Presence<'a> {
        &self.0.presence
    }
}

pub struct NotUtf8;

/// Contract lines (one group as JSON in each), as bytes or as text.
pub struct Lines<'a>(Bytes<'a>);

impl<'a> Lines<'a> {
    /// Finds the only column of a batch; returns an error if there are several, or none.
    pub fn of(batch: &'a RecordBatch) -> Result<Self, SchemaError> {
        let [column] = batch.columns() else {
            let problem = format!("{} columns in place of one of lines", batch.num_columns());
            let path = "batch".into();
            return Err(SchemaError { path, problem });
        };
        let name = batch.schema_ref().field(0).name();
        let presence = Presence::of(Some(column), None);
        let lines = Bytes::of_types(name, presence, "binary or a string", |found| {
            is_binary(found) || is_text(found)
        });
        lines.map(Self)
    }

    /// One line; null counts as an empty line.
    #[inline]
    pub fn get(&self, i: usize) -> &'a [u8] {
        self.0.get(i).unwrap_or_default()
    }
}

pub struct Integers<'a> {
    pub presence: Presence<'a>,
    numbers: Numbers<'a>,
}

enum Numbers<'a> {
    Absent,
    Int32(&'a [i32]),
    Int64(&'a [i64]),
}

impl<'a> Column<'a> for Integers<'a> {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError> {
        let numbers = match presence.own.map(|column| (column, column.data_type())) {
            None => Numbers::Absent,
            Some((column, DataType::Int32)) => {
                Numbers::Int32(column.as_primitive::<Int32Type>().values())
            }
            Some((column, DataType::Int64)) => {
                Numbers::Int64(column.as_primitive::<Int64Type>().values())
            }
            Some((_, other)) => return Err(wrong(&path, "an integer of 32 or 64 bits", other)),
        };
        Ok(Self { presence, numbers })
    }
}

impl Integers<'_> {
    #[inline]
    pub fn get(&self, i: usize) -> Option<i64> {
        if !self.presence.at(i) {
            return None;
        }
        match self.numbers {
            Numbers::Absent => None,
            Numbers::Int32(values) => Some(values[i].into()),
            Numbers::Int64(values) => Some(values[i]),
        }
    }
}

pub struct Booleans<'a> {
    pub presence: Presence<'a>,
    values: Option<&'a arrow_array::BooleanArray>,
}

impl<'a> Column<'a> for Booleans<'a> {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError> {
        let values = match presence.own.map(|column| (column, column.data_type())) {
            None => None,
            Some((column, DataType::Boolean)) => Some(column.as_boolean()),
            Some((_, other)) => return Err(wrong(&path, "a boolean", other)),
        };
        Ok(Self { presence, values })
    }
}

impl Booleans<'_> {
    #[inline]
    pub fn get(&self, i: usize) -> Option<bool> {
        let values = self.values.filter(|_| self.presence.at(i));
        values.map(|values| values.value(i))
    }
}

/// Topics by name, or by index in the group's own list. An index is cheaper to pass.
pub enum Topics<'a> {
    Named(Strings<'a>),
    Placed(Integers<'a>),
}

impl<'a> Column<'a> for Topics<'a> {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError> {
        match presence.own.map(|column| column.data_type()) {
            Some(DataType::Int32 | DataType::Int64) => {
                Integers::of(path, presence).map(Self::Placed)
            }
            _ => Strings::of(path, presence).map(Self::Named),
        }
    }
}

pub struct Lists<'a> {
    path: String,
    pub presence: Presence<'a>,
    offsets: Offsets<'a>,
    /// The entries of all lists.
    pub values: Presence<'a>,
}

enum Offsets<'a> {
    Absent,
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl<'a> Column<'a> for Lists<'a> {
    fn of(path: String, presence: Presence<'a>) -> Result<Self, SchemaError> {
        let (offsets, values) = match presence.own.map(|column| (column, column.data_type())) {
            None => (Offsets::Absent, None),
            Some((column, DataType::List(_))) => {
                let list = column.as_list::<i32>();
                (Offsets::Narrow(list.value_offsets()), Some(list.values()))
            }
            Some((column, DataType::LargeList(_))) => {
                let list = column.as_list::<i64>();
                (Offsets::Wide(list.value_offsets()), Some(list.values()))
            }
            Some((_, other)) => return Err(wrong(&path, "a list", other)),
        };
        Ok(Self {
            path,
            values: Presence::of(values, None),
            presence,
            offsets,
        })
    }
}

impl<'a> Lists<'a> {
    /// The range of list i's entries within all values; None for null.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Range<usize>> {
        if !self.presence.at(i) {
            return None;
        }
        match self.offsets {
            Offsets::Absent => None,
            Offsets::Narrow(offsets) => Some(offsets[i] as usize..offsets[i + 1] as usize),
            Offsets::Wide(offsets) => Some(offsets[i] as usize..offsets[i + 1] as usize),
        }
    }

    pub fn element(&self) -> String {
        format!("{}[]", self.path)
    }

    pub fn structs(&self) -> Result<Structs<'a>, SchemaError> {
        let path = format!("{}.", self.element());
        let Some(values) = self.values.own else {
            return Ok(Structs {
                path,
                fields: Vec::new(),
                parent: None,
                absent: true,
            });
        };
        let Some(parent) = values.as_struct_opt() else {
            return Err(wrong(&self.element(), "a struct", values.data_type()));
        };
        let names = parent.fields().iter().map(|field| field.name().as_str());
        Ok(Structs {
            path,
            fields: names.zip(parent.columns()).collect(),
            parent: Some(parent),
            absent: false,
        })
    }

    /// The column with the entries of all lists.
    pub fn elements<C: Column<'a>>(&self) -> Result<C, SchemaError> {
        C::of(self.element(), self.values)
    }
}
