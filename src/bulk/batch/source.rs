// SPDX-License-Identifier: Apache-2.0
//! The groups of a batch, read from the contract's columns (docs/contract.md), from contract lines,
//! or from records of `__consumer_offsets`.

use arrow_array::RecordBatch;

use super::columns::{Lines, SchemaError};
use super::groups::{Groups, earlier};
use crate::bulk::lines::in_parallel;
use crate::bulk::records::{self, Group, Inventory, Records};
use crate::error::GroupError;
use crate::group::contract;
use crate::group::spec::GroupSpec;
use crate::json::Value;

/// The form in which a batch has its groups.
#[derive(Clone, Copy)]
pub enum Form<'i> {
    /// The contract's columns.
    Columns,
    /// Contract lines, in the only column.
    Lines,
    /// Keys and values of groups' records. A group without members, or that is no consumer group,
    /// gets no row.
    Records(&'i Inventory),
}

/// The groups of a batch, one for each row of the answer.
pub struct Source<'a> {
    rows: usize,
    groups: Found<'a>,
}

enum Found<'a> {
    Columns(Box<Groups<'a>>),
    Lines(Vec<Result<Value, GroupError>>),
    Records(Vec<records::Row<'a>>, &'a Inventory),
}

impl<'a> Source<'a> {
    /// Finds the columns, and reads lines or records.
    pub fn of(batch: &'a RecordBatch, threads: usize, form: Form<'a>) -> Result<Self, SchemaError> {
        let rows = batch.num_rows();
        let groups = match form {
            Form::Columns => Found::Columns(Box::new(Groups::of(batch)?)),
            Form::Lines => {
                let lines = Lines::of(batch)?;
                let parsed = in_parallel(rows, threads, |row| contract::parse(lines.get(row)));
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

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The group's id; None if it is missing or unreadable.
    pub fn group_id(&self, row: usize) -> Option<&str> {
        match &self.groups {
            Found::Columns(groups) => groups.group_id(row),
            Found::Lines(values) => contract::group_id(values[row].as_ref().ok()?),
            Found::Records(rows, _) => rows[row].0,
        }
    }

    pub fn group(&self, row: usize, max_partitions: u64) -> Result<GroupSpec<'_>, GroupError> {
        match &self.groups {
            Found::Columns(groups) => groups.group(row, max_partitions),
            Found::Lines(values) => match &values[row] {
                Ok(value) => contract::from_value(value, max_partitions),
                Err(error) => Err(error.clone()),
            },
            Found::Records(rows, inventory) => match &rows[row].1 {
                Ok(group) => records::spec(group, inventory, max_partitions),
                Err(error) => Err(earlier(error)),
            },
        }
    }
}
