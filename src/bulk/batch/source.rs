// SPDX-License-Identifier: Apache-2.0
//! The groups of a batch, read from the contract's columns (docs/contract.md), from contract lines,
//! or from records of `__consumer_offsets`.

use arrow_array::RecordBatch;

use crate::bulk::columns::{Column, SchemaError};
use crate::bulk::lines::in_parallel;
use crate::bulk::records::group::{self, Group, Inventory, Records};
use crate::bulk::records::spec::spec;
use crate::error::GroupError;
use crate::group::contract;
use crate::group::field_types::{Field, Given, Kind};
use crate::group::group_fields::{self, GROUP};
use crate::group::spec::GroupSpec;
use crate::json::Value;

/// The form of the groups in a batch.
#[derive(Clone, Copy)]
pub enum Form<'i> {
    /// The contract's columns.
    Columns,
    /// Contract lines, in the only column.
    Lines,
    /// Keys and values of groups' records. A group without members, or of another kind than
    /// consumer, has no row.
    Records(&'i Inventory),
}

pub struct Source<'a> {
    pub rows: usize,
    groups: Found<'a>,
}

enum Found<'a> {
    Columns(Box<Columns<'a>>),
    Lines(Vec<Result<Value, GroupError>>),
    Records(Vec<group::Row<'a>>, &'a Inventory),
}

struct Columns<'a> {
    group: Column<'a>,
    error: Column<'a>,
}

static ERROR: [Field; 1] = [Field::new("error", Kind::Text)];

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, SchemaError> {
        let group = Column::of_batch(batch, &GROUP)?;
        let error = Column::of_batch(batch, &ERROR)?;
        Ok(Self { group, error })
    }

    /// Returns the group of a row. If an earlier step has set the row's `error`, returns this
    /// error.
    fn group(&self, row: usize, max_partitions: u64) -> Result<GroupSpec<'a>, GroupError> {
        let whole = Given::whole_row(self.error.at(row));
        let [error] = whole.fields(&ERROR)?;
        match error.optional_text()? {
            Some(error) => Err(earlier(error)),
            None => group_fields::read(self.group.at(row), max_partitions),
        }
    }
}

/// Finds the only column of a batch. Returns an error if there is no column, or more than one.
fn lines(batch: &RecordBatch) -> Result<Column<'_>, SchemaError> {
    let [column] = batch.columns() else {
        let problem = format!("{} columns in place of one of lines", batch.num_columns());
        let path = "batch".into();
        return Err(SchemaError { path, problem });
    };
    let name = batch.schema_ref().field(0).name();
    Column::of(name.clone(), Some(column), None, &Kind::Line)
}

/// Makes a `GroupError` from the string that an earlier step wrote.
fn earlier(error: &str) -> GroupError {
    let (path, problem) = error.split_once(": ").unwrap_or(("group", error));
    GroupError::new(path, problem)
}

impl<'a> Source<'a> {
    pub fn of(batch: &'a RecordBatch, threads: usize, form: Form<'a>) -> Result<Self, SchemaError> {
        let rows = batch.num_rows();
        let groups = match form {
            Form::Columns => Found::Columns(Box::new(Columns::of(batch)?)),
            Form::Lines => {
                let lines = lines(batch)?;
                let line = |row| lines.bytes(row).unwrap_or_default();
                let parsed = in_parallel(rows, threads, |row| contract::parse(line(row)));
                Found::Lines(parsed)
            }
            Form::Records(inventory) => {
                let records = Records::of(batch)?;
                let mut read = in_parallel(rows, threads, |row| records.row(row, inventory));
                read.retain(|(_, group)| group.as_ref().map_or(true, Group::is_answered));
                let rows = read.len();
                let groups = Found::Records(read, inventory);
                return Ok(Self { rows, groups });
            }
        };
        Ok(Self { rows, groups })
    }

    pub fn group_id(&self, row: usize) -> Option<&str> {
        match &self.groups {
            Found::Columns(columns) => {
                let group_id = columns.group.field(0).bytes(row)?;
                std::str::from_utf8(group_id).ok()
            }
            Found::Lines(values) => contract::group_id(values[row].as_ref().ok()?),
            Found::Records(rows, _) => rows[row].0,
        }
    }

    pub fn group(&self, row: usize, max_partitions: u64) -> Result<GroupSpec<'_>, GroupError> {
        match &self.groups {
            Found::Columns(columns) => columns.group(row, max_partitions),
            Found::Lines(values) => match &values[row] {
                Ok(value) => contract::from_value(value, max_partitions),
                Err(error) => Err(error.clone()),
            },
            Found::Records(rows, inventory) => match &rows[row].1 {
                Ok(group) => spec(group, inventory, max_partitions),
                Err(error) => Err(earlier(error)),
            },
        }
    }
}
