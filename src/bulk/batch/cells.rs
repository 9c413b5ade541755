// SPDX-License-Identifier: Apache-2.0
//! Reads groups from the contract's columns (docs/contract.md), which are found by name, in any
//! order.

use std::ops::Range;

use super::columns::{
    Booleans, Column, Integers, Lists, NotUtf8, Presence, SchemaError, Strings, Structs, Topics,
};
use crate::group::builder::Name;
use crate::group::field_types::{Field, Input, Kind};
use crate::group::model::TopicId;

/// The columns of a value and of all its parts.
pub enum Cells<'a> {
    Text(Strings<'a>),
    Topic(Topics<'a>),
    Whole(Integers<'a>),
    Flag(Booleans<'a>),
    List(Lists<'a>, Box<Cells<'a>>),
    /// By field of the table; None for a field that columns do not have.
    Object(Vec<Option<Cells<'a>>>),
}

impl<'a> Cells<'a> {
    /// Finds the columns of an object's fields.
    pub fn of(columns: &Structs<'a>, table: &[Field]) -> Result<Self, SchemaError> {
        let one = |field: &Field| match &field.kind {
            _ if !field.is_in(None) => Ok(None),
            Kind::Beside(table) => Self::of(columns, table).map(Some),
            kind => {
                let (path, presence) = columns.find(field.name, field.is_required)?;
                Self::of_kind(kind, path, presence).map(Some)
            }
        };
        table
            .iter()
            .map(one)
            .collect::<Result<_, _>>()
            .map(Self::Object)
    }

    fn of_kind(kind: &Kind, path: String, found: Presence<'a>) -> Result<Self, SchemaError> {
        Ok(match kind {
            Kind::Text => Self::Text(Strings::of(path, found)?),
            Kind::Topic => Self::Topic(Topics::of(path, found)?),
            Kind::Whole(..) => Self::Whole(Integers::of(path, found)?),
            Kind::Flag => Self::Flag(Booleans::of(path, found)?),
            Kind::List(item) => {
                let lists = Lists::of(path, found)?;
                let items = match item {
                    Kind::Object(table) | Kind::Run(table) => Self::of(&lists.structs()?, table)?,
                    item => Self::of_kind(item, lists.element(), lists.values)?,
                };
                Self::List(lists, Box::new(items))
            }
            Kind::Object(_) | Kind::Run(_) | Kind::Beside(_) => unreachable!("read with its list"),
        })
    }

    /// The value of a row or of a list's entry.
    pub fn at(&self, at: usize) -> Cell<'_, 'a> {
        Cell { columns: self, at }
    }

    #[inline]
    fn presence(&self) -> Option<&Presence<'a>> {
        Some(match self {
            Self::Text(texts) | Self::Topic(Topics::Named(texts)) => texts.presence(),
            Self::Whole(numbers) | Self::Topic(Topics::Placed(numbers)) => &numbers.presence,
            Self::Flag(flags) => &flags.presence,
            Self::List(lists, _) => &lists.presence,
            Self::Object(_) => return None,
        })
    }

    #[inline]
    fn is_null(&self, at: usize) -> bool {
        self.presence().is_some_and(|presence| !presence.at(at))
    }
}

#[cold]
fn no_place(place: i64, declared: usize) -> String {
    format!("{place} is no place in topics, of which there are {declared}")
}

#[cold]
fn null(noun: &str) -> String {
    format!("null is not a {noun}")
}

/// One value of a column.
#[derive(Clone, Copy)]
pub struct Cell<'c, 'a> {
    columns: &'c Cells<'a>,
    at: usize,
}

impl<'a> Input<'a> for Cell<'_, 'a> {
    fn fields<const N: usize>(
        &self,
        _table: &'static [Field; N],
    ) -> Result<[Option<Self>; N], String> {
        let Cells::Object(columns) = self.columns else {
            unreachable!("an object");
        };
        Ok(std::array::from_fn(|i| {
            let columns = columns[i].as_ref()?;
            (!columns.is_null(self.at)).then(|| columns.at(self.at))
        }))
    }

    fn is_null(&self) -> bool {
        self.columns.is_null(self.at)
    }

    #[inline]
    fn text(&self) -> Result<&'a str, String> {
        let (Cells::Text(texts) | Cells::Topic(Topics::Named(texts))) = self.columns else {
            unreachable!("a string");
        };
        match texts.get(self.at) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(null("string")),
            Err(NotUtf8) => Err("not UTF-8".into()),
        }
    }

    fn flag(&self) -> Result<bool, String> {
        let Cells::Flag(flags) = self.columns else {
            unreachable!("a flag");
        };
        Ok(flags.get(self.at).unwrap_or_default())
    }

    #[inline]
    fn whole(&self, kind: &Kind) -> Result<i64, String> {
        let Cells::Whole(numbers) = self.columns else {
            unreachable!("a whole number");
        };
        numbers.get(self.at).ok_or_else(|| null(kind.noun()))
    }

    #[inline]
    fn list(&self, _item: &'static Kind) -> Result<impl Iterator<Item = Self>, String> {
        let Cells::List(lists, items) = self.columns else {
            unreachable!("a list");
        };
        let range: Range<usize> = lists.get(self.at).unwrap_or_default();
        Ok(range.map(|at| items.at(at)))
    }

    #[inline]
    fn topic(&self, declared: usize) -> Result<Name<'a>, String> {
        let Cells::Topic(Topics::Placed(places)) = self.columns else {
            return self.text().map(Name::Text);
        };
        let place = places.get(self.at).ok_or_else(|| null("string"))?;
        if !(0..declared as i64).contains(&place) {
            return Err(no_place(place, declared));
        }
        Ok(Name::Place(place as TopicId))
    }
}
