// SPDX-License-Identifier: Apache-2.0
//! Reads nested Arrow columns of any bit width, because Spark, pyarrow, pandas and polars use
//! different ones. A column of Arrow's null type, or an absent optional column, has only nulls.

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::DataType;

/// The error of a column that is missing or has another type than in the contract.
#[derive(Debug)]
pub struct SchemaError {
    /// Path of the column, for example `members[].topics`.
    pub path: String,
    /// The problem with it, in words.
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

/// A set of named columns: those of the batch, or the fields of a list's structs.
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

    fn column(
        &self,
        name: &str,
        required: bool,
    ) -> Result<(String, Option<&'a ArrayRef>), SchemaError> {
        let path = format!("{}{name}", self.path);
        let found = self.fields.iter().find(|(field, _)| *field == name);
        let column = found.map(|&(_, column)| column);
        if column.is_none() && required && !self.absent {
            let problem = "the column is missing".into();
            return Err(SchemaError { path, problem });
        }
        let has_values = |column: &&ArrayRef| *column.data_type() != DataType::Null;
        Ok((path, column.filter(has_values)))
    }

    pub fn strings(&self, name: &str, required: bool) -> Result<Strings<'a>, SchemaError> {
        let (path, column) = self.column(name, required)?;
        Strings::of(&path, column, self.parent)
    }

    /// Returns an error also if the column is missing.
    pub fn bytes(&self, name: &str) -> Result<Bytes<'a>, SchemaError> {
        let (path, column) = self.column(name, true)?;
        Bytes::of(&path, column)
    }

    pub fn integers(&self, name: &str, required: bool) -> Result<Integers<'a>, SchemaError> {
        let (path, column) = self.column(name, required)?;
        Integers::of(&path, column, self.parent)
    }

    pub fn topics(&self, name: &str, required: bool) -> Result<Topics<'a>, SchemaError> {
        let (path, column) = self.column(name, required)?;
        Topics::of(&path, column, self.parent)
    }

    pub fn lists(&self, name: &str, required: bool) -> Result<Lists<'a>, SchemaError> {
        let (path, column) = self.column(name, required)?;
        Lists::of(path, column, self.parent)
    }
}

/// The null flags of a column: an entry is present if neither it nor its struct is null.
#[derive(Clone, Copy)]
struct Presence<'a> {
    own: Option<&'a ArrayRef>,
    parent: Option<&'a StructArray>,
}

impl Presence<'_> {
    fn at(&self, i: usize) -> bool {
        self.own.is_some_and(|own| own.is_valid(i))
            && self.parent.is_none_or(|parent| parent.is_valid(i))
    }
}

pub struct Strings<'a> {
    presence: Presence<'a>,
    text: Text<'a>,
}

enum Text<'a> {
    Absent,
    Utf8(&'a arrow_array::StringArray),
    Large(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
}

impl<'a> Strings<'a> {
    fn of(
        path: &str,
        column: Option<&'a ArrayRef>,
        parent: Option<&'a StructArray>,
    ) -> Result<Self, SchemaError> {
        let text = match column.map(|column| (column, column.data_type())) {
            None => Text::Absent,
            Some((column, DataType::Utf8)) => Text::Utf8(column.as_string()),
            Some((column, DataType::LargeUtf8)) => Text::Large(column.as_string()),
            Some((column, DataType::Utf8View)) => Text::View(column.as_string_view()),
            Some((_, other)) => return Err(wrong(path, "a string", other)),
        };
        let presence = Presence {
            own: column,
            parent,
        };
        Ok(Self { presence, text })
    }

    /// Returns an error if the bytes are not UTF-8. Arrow's importers do not validate strings, and
    /// Spark keeps any bytes. So each string is checked here, and a bad one fails only its own row.
    pub fn get(&self, i: usize) -> Result<Option<&'a str>, NotUtf8> {
        if !self.presence.at(i) {
            return Ok(None);
        }
        let unchecked = match self.text {
            Text::Absent => return Ok(None),
            Text::Utf8(array) => array.value(i),
            Text::Large(array) => array.value(i),
            Text::View(array) => array.value(i),
        };
        let checked = std::str::from_utf8(unchecked.as_bytes());
        checked.map(Some).map_err(|_| NotUtf8)
    }
}

pub struct NotUtf8;

/// Keys or values of records.
pub enum Bytes<'a> {
    Absent,
    Binary(&'a arrow_array::BinaryArray),
    Large(&'a arrow_array::LargeBinaryArray),
    View(&'a arrow_array::BinaryViewArray),
}

impl<'a> Bytes<'a> {
    fn of(path: &str, column: Option<&'a ArrayRef>) -> Result<Self, SchemaError> {
        match column.map(|column| (column, column.data_type())) {
            None => Ok(Self::Absent),
            Some((column, DataType::Binary)) => Ok(Self::Binary(column.as_binary())),
            Some((column, DataType::LargeBinary)) => Ok(Self::Large(column.as_binary())),
            Some((column, DataType::BinaryView)) => Ok(Self::View(column.as_binary_view())),
            Some((_, other)) => Err(wrong(path, "binary", other)),
        }
    }

    pub fn get(&self, i: usize) -> Option<&'a [u8]> {
        match self {
            Self::Absent => None,
            Self::Binary(array) => array.is_valid(i).then(|| array.value(i)),
            Self::Large(array) => array.is_valid(i).then(|| array.value(i)),
            Self::View(array) => array.is_valid(i).then(|| array.value(i)),
        }
    }
}

/// Contract lines, as bytes or as text.
pub enum Lines<'a> {
    Binary(&'a arrow_array::BinaryArray),
    LargeBinary(&'a arrow_array::LargeBinaryArray),
    Utf8(&'a arrow_array::StringArray),
    LargeUtf8(&'a arrow_array::LargeStringArray),
}

impl<'a> Lines<'a> {
    /// The only column of a batch.
    pub fn of(batch: &'a RecordBatch) -> Result<Self, SchemaError> {
        let [column] = batch.columns() else {
            let problem = format!("{} columns in place of one of lines", batch.num_columns());
            let path = "batch".into();
            return Err(SchemaError { path, problem });
        };
        match column.data_type() {
            DataType::Binary => Ok(Self::Binary(column.as_binary())),
            DataType::LargeBinary => Ok(Self::LargeBinary(column.as_binary())),
            DataType::Utf8 => Ok(Self::Utf8(column.as_string())),
            DataType::LargeUtf8 => Ok(Self::LargeUtf8(column.as_string())),
            other => Err(wrong(
                batch.schema_ref().field(0).name(),
                "binary or a string",
                other,
            )),
        }
    }

    /// One line; null is an empty line.
    pub fn get(&self, i: usize) -> &'a [u8] {
        match self {
            Self::Binary(array) => array.value(i),
            Self::LargeBinary(array) => array.value(i),
            Self::Utf8(array) => array.value(i).as_bytes(),
            Self::LargeUtf8(array) => array.value(i).as_bytes(),
        }
    }
}

pub struct Integers<'a> {
    presence: Presence<'a>,
    numbers: Numbers<'a>,
}

enum Numbers<'a> {
    Absent,
    Int32(&'a [i32]),
    Int64(&'a [i64]),
}

impl<'a> Integers<'a> {
    fn of(
        path: &str,
        column: Option<&'a ArrayRef>,
        parent: Option<&'a StructArray>,
    ) -> Result<Self, SchemaError> {
        let numbers = match column.map(|column| (column, column.data_type())) {
            None => Numbers::Absent,
            Some((column, DataType::Int32)) => {
                Numbers::Int32(column.as_primitive::<Int32Type>().values())
            }
            Some((column, DataType::Int64)) => {
                Numbers::Int64(column.as_primitive::<Int64Type>().values())
            }
            Some((_, other)) => return Err(wrong(path, "an integer of 32 or 64 bits", other)),
        };
        let presence = Presence {
            own: column,
            parent,
        };
        Ok(Self { presence, numbers })
    }

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

/// Topics by name, or by their place in the group's own list, which is cheaper to pass.
pub enum Topics<'a> {
    Named(Strings<'a>),
    Placed(Integers<'a>),
}

impl<'a> Topics<'a> {
    fn of(
        path: &str,
        column: Option<&'a ArrayRef>,
        parent: Option<&'a StructArray>,
    ) -> Result<Self, SchemaError> {
        match column.map(|column| column.data_type()) {
            Some(DataType::Int32 | DataType::Int64) => {
                Ok(Self::Placed(Integers::of(path, column, parent)?))
            }
            _ => Ok(Self::Named(Strings::of(path, column, parent)?)),
        }
    }
}

pub struct Lists<'a> {
    path: String,
    presence: Presence<'a>,
    offsets: Offsets<'a>,
    values: Option<&'a ArrayRef>,
}

enum Offsets<'a> {
    Absent,
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl<'a> Lists<'a> {
    fn of(
        path: String,
        column: Option<&'a ArrayRef>,
        parent: Option<&'a StructArray>,
    ) -> Result<Self, SchemaError> {
        let (offsets, values) = match column.map(|column| (column, column.data_type())) {
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
        let presence = Presence {
            own: column,
            parent,
        };
        Ok(Self {
            path,
            presence,
            offsets,
            values: values.filter(|values| *values.data_type() != DataType::Null),
        })
    }

    /// The range of list i's entries within the values; None for null.
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

    fn element(&self) -> String {
        format!("{}[]", self.path)
    }

    pub fn structs(&self) -> Result<Structs<'a>, SchemaError> {
        let path = format!("{}.", self.element());
        let Some(values) = self.values else {
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

    pub fn lists(&self) -> Result<Lists<'a>, SchemaError> {
        Lists::of(self.element(), self.values, None)
    }

    pub fn strings(&self) -> Result<Strings<'a>, SchemaError> {
        Strings::of(&self.element(), self.values, None)
    }

    pub fn topics(&self) -> Result<Topics<'a>, SchemaError> {
        Topics::of(&self.element(), self.values, None)
    }

    pub fn integers(&self) -> Result<Integers<'a>, SchemaError> {
        Integers::of(&self.element(), self.values, None)
    }
}
