// SPDX-License-Identifier: Apache-2.0
//! The groups of a batch, read from the contract's columns or from contract lines.

use arrow_array::RecordBatch;
use serde_json::Value;

use super::columns::{Lines, SchemaError};
use super::groups::Groups;
use crate::bulk::lines::in_parallel;
use crate::error::GroupError;
use crate::group::contract;
use crate::group::spec::GroupSpec;

/// A batch with one group in each row.
pub struct Source<'a> {
    rows: usize,
    form: Form<'a>,
}

enum Form<'a> {
    Columns(Box<Groups<'a>>),
    Lines(Vec<Result<Value, GroupError>>),
}

impl<'a> Source<'a> {
    /// Finds the contract's columns or, if `lines`, parses the contract lines in the only column.
    pub fn of(batch: &'a RecordBatch, threads: usize, lines: bool) -> Result<Self, SchemaError> {
        let rows = batch.num_rows();
        let form = if lines {
            let lines = Lines::of(batch)?;
            let parsed = in_parallel(rows, threads, |row| contract::parse(lines.get(row)));
            Form::Lines(parsed)
        } else {
            Form::Columns(Box::new(Groups::of(batch)?))
        };
        Ok(Self { rows, form })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The group's id; None if it is missing or bad.
    pub fn group_id(&self, row: usize) -> Option<&str> {
        match &self.form {
            Form::Columns(groups) => groups.group_id(row),
            Form::Lines(values) => contract::group_id(values[row].as_ref().ok()?),
        }
    }

    pub fn group(&self, row: usize, max_partitions: u64) -> Result<GroupSpec<'_>, GroupError> {
        match &self.form {
            Form::Columns(groups) => groups.group(row, max_partitions),
            Form::Lines(values) => match &values[row] {
                Ok(value) => contract::from_value(value, max_partitions),
                Err(error) => Err(error.clone()),
            },
        }
    }
}
