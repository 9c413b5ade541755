// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/field_types.py` and `group/field_paths.py`: the kinds of fields of a group, and
//! the values from which they are read. An error names the field's path.

use std::fmt;

use super::builder::Name;
use crate::error::GroupError;

type Result<T, E = GroupError> = std::result::Result<T, E>;

pub enum Kind {
    Text,
    /// The name of a topic. A column may hold the topic's index in the group's list instead.
    Topic,
    /// An integer: its noun in errors, its least and its greatest value.
    Whole(&'static str, i64, i64),
    Flag,
    Number(&'static Bounds),
    /// Bytes. `Line` is a contract line, as bytes or as a string. Only columns have these kinds.
    Bytes,
    Line,
    List(&'static Kind),
    Object(&'static [Field]),
    /// An object that lists partitions of one topic. Python objects list one pair for each
    /// partition.
    Run(&'static [Field]),
    /// An object that is an attribute of a Python object. In lines and columns, its fields are
    /// fields of the outer object.
    Beside(&'static [Field]),
}

/// The bounds of a number: its noun in errors, its least and greatest value, and both as a string.
pub struct Bounds(pub &'static str, pub f64, pub f64, pub &'static str);

pub const PARTITION: Kind = Kind::Whole("partition", 0, i32::MAX as i64);

impl Kind {
    /// Returns the fields of an object, or of the objects in a list; None for other kinds.
    pub fn table(&self) -> Option<&'static [Field]> {
        match self {
            Self::List(item) => item.table(),
            Self::Object(table) | Self::Run(table) | Self::Beside(table) => Some(table),
            _ => None,
        }
    }

    pub fn noun(&self) -> &'static str {
        match self {
            Self::Whole(noun, ..) | Self::Number(Bounds(noun, ..)) => noun,
            _ => "string",
        }
    }

    #[cold]
    pub fn outside(&self, number: impl fmt::Display) -> String {
        let Self::Whole(noun, least, most) = self else {
            unreachable!("a whole number");
        };
        format!("{number} is not a {noun} from {least} to {most}")
    }

    #[inline]
    pub fn checked(&self, number: i64) -> Result<i64, String> {
        match self {
            Self::Whole(_, least, most) if number < *least || number > *most => {
                Err(self.outside(number))
            }
            _ => Ok(number),
        }
    }
}

pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
    /// The only form of groups that has the field; None means all forms.
    pub only: Option<Form>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Lines,
    Objects,
}

impl Field {
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            is_required: false,
            only: None,
        }
    }

    pub const fn required(name: &'static str, kind: Kind) -> Self {
        let mut field = Self::new(name, kind);
        field.is_required = true;
        field
    }

    pub const fn only(form: Form, name: &'static str, kind: Kind) -> Self {
        let mut field = Self::new(name, kind);
        field.only = Some(form);
        field
    }

    /// Whether an object in a line has the field under its own name.
    pub fn is_in_lines(&self) -> bool {
        self.only != Some(Form::Objects) && !matches!(self.kind, Kind::Beside(_))
    }
}

/// A value from which a group is read: of a contract line, of columns, or of Python objects. Names
/// are borrowed for `'a`. An error is the problem without the path.
pub trait Input<'a>: Clone {
    /// Returns the values of an object's fields, in the order of the field table; None if absent or
    /// null.
    fn fields<const N: usize>(
        &self,
        table: &'static [Field; N],
    ) -> Result<[Option<Self>; N], String>;

    fn is_null(&self) -> bool;

    fn text(&self) -> Result<&'a str, String>;

    fn flag(&self) -> Result<bool, String>;

    /// Returns an integer; it may be outside the bounds of `kind`, which the caller checks.
    fn whole(&self, kind: &Kind) -> Result<i64, String>;

    /// Returns a number; it may be outside the bounds of `kind`, which the caller checks.
    fn number(&self, kind: &Kind) -> Result<f64, String>;

    fn list(&self, item: &'static Kind) -> Result<impl Iterator<Item = Self>, String>;

    /// Returns a topic; `declared` is the number of topics that the group has declared so far.
    fn topic(&self, _declared: usize) -> Result<Name<'a>, String> {
        self.text().map(Name::Text)
    }

    /// Whether two lists are certainly equal; false if unknown.
    fn equals(&self, _other: &Self) -> bool {
        false
    }
}

pub enum Path<'p> {
    Line,
    Field(&'p Path<'p>, &'static str),
    Entry(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => write!(f, "line"),
            Self::Field(Self::Line, name) => write!(f, "{name}"),
            Self::Field(object, name) => write!(f, "{object}.{name}"),
            Self::Entry(list, i) => write!(f, "{list}[{i}]"),
        }
    }
}

/// A value and its place in a group. Each reading function returns an error if the value is not of
/// its kind; also if the value is absent, unless the function's name begins with `optional`.
pub struct Given<'p, I> {
    pub kind: &'static Kind,
    pub value: Option<I>,
    pub path: Path<'p>,
}

impl<'a, 'p, I: Input<'a>> Given<'p, I> {
    pub fn whole_row(value: I) -> Self {
        Self {
            kind: &Kind::Object(&[]),
            value: Some(value),
            path: Path::Line,
        }
    }

    #[cold]
    pub fn wrong(&self, problem: impl Into<String>) -> GroupError {
        GroupError::new(self.path.to_string(), problem)
    }

    #[inline(always)]
    fn read<'s, T>(&'s self, read: impl FnOnce(&'s I) -> Result<T, String>) -> Result<T> {
        let value = self.value.as_ref().ok_or_else(|| self.wrong("missing"))?;
        read(value).map_err(|problem| self.wrong(problem))
    }

    #[inline]
    pub fn fields<const N: usize>(&self, table: &'static [Field; N]) -> Result<[Given<'_, I>; N]> {
        let values = self.read(|value| value.fields(table))?;
        let object = match (self.kind, &self.path) {
            (Kind::Beside(_), Path::Field(object, _)) => object,
            (_, path) => path,
        };
        let mut table = table.iter();
        Ok(values.map(|value| {
            let Field { name, kind, .. } = table.next().expect("one for each value");
            let path = Path::Field(object, name);
            Given { kind, value, path }
        }))
    }

    #[inline]
    pub fn text(&self) -> Result<&'a str> {
        self.read(I::text)
    }

    pub fn optional_text(&self) -> Result<Option<&'a str>> {
        self.value.as_ref().map(|_| self.text()).transpose()
    }

    pub fn is_null(&self) -> bool {
        self.value.as_ref().is_some_and(I::is_null)
    }

    #[inline(always)]
    pub fn topic(&self, declared: usize) -> Result<Name<'a>> {
        self.read(|value| value.topic(declared))
    }

    #[inline(always)]
    pub fn whole(&self) -> Result<i64> {
        self.read(|value| self.kind.checked(value.whole(self.kind)?))
    }

    pub fn optional_whole(&self) -> Result<Option<i64>> {
        self.value.as_ref().map(|_| self.whole()).transpose()
    }

    pub fn flag(&self) -> Result<bool> {
        self.read(I::flag)
    }

    pub fn number(&self) -> Result<f64> {
        let Kind::Number(Bounds(noun, least, most, text)) = self.kind else {
            unreachable!("a number");
        };
        self.read(|value| match value.number(self.kind)? {
            number if (*least..=*most).contains(&number) => Ok(number),
            _ => Err(format!("not a {noun} {text}")),
        })
    }

    pub fn optional_number(&self) -> Result<Option<f64>> {
        self.value.as_ref().map(|_| self.number()).transpose()
    }

    #[inline]
    pub fn list(&self) -> Result<impl Iterator<Item = Given<'_, I>>> {
        let Kind::List(kind) = self.kind else {
            unreachable!("a list");
        };
        let values = self.read(|value| value.list(kind))?;
        Ok(values.enumerate().map(|(i, value)| Given {
            kind,
            value: Some(value),
            path: Path::Entry(&self.path, i),
        }))
    }

    pub fn optional_list(&self) -> Result<Option<impl Iterator<Item = Given<'_, I>>>> {
        self.value.as_ref().map(|_| self.list()).transpose()
    }
}
