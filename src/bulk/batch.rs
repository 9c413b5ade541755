// SPDX-License-Identifier: Apache-2.0
//! Groups in bulk: an Arrow record batch in, a record batch out, one row for each group.
//!
//! Names are borrowed from the input's buffers and copied only into the answer.

pub mod columns;
mod figures;
mod groups;
mod output;

use arrow_array::RecordBatch;
use serde_json::Value;

use crate::assignors::{Assignor, assign, assignor};
use crate::bulk::lines::{Options, in_parallel};
use crate::error::GroupError;
use crate::group::contract;
use crate::group::model::GroupSpec;
use crate::group::ownership::Assignment;
use crate::plans::changes::change::Change;
use crate::plans::comparison::{self, Comparison};
use crate::plans::{figures::Figures, rebalance_plan};
pub use columns::SchemaError;
use columns::{Lines, Structs};
use groups::{Groups, element, optional_text};

/// The groups of a batch: a row each in the contract's columns, or a contract line each.
enum Source<'a> {
    Columns(Groups<'a>),
    Lines(Vec<Result<Value, GroupError>>),
}

impl<'a> Source<'a> {
    /// Finds columns and fields by name, in any order, and ignores unknown ones. Returns an error
    /// if a column is missing or has another type than in the contract.
    fn columns(batch: &'a RecordBatch) -> Result<Self, SchemaError> {
        Groups::of(batch).map(Self::Columns)
    }

    /// Parses the only column of a batch.
    fn lines(batch: &'a RecordBatch, threads: usize) -> Result<Self, SchemaError> {
        let lines = Lines::of(batch)?;
        let values = in_parallel(batch.num_rows(), threads, |row| {
            contract::parse(lines.get(row))
        });
        Ok(Self::Lines(values))
    }

    /// The group's id; None if it is missing or bad.
    fn group_id(&self, row: usize) -> Option<&str> {
        match self {
            Self::Columns(groups) => groups.group_id(row),
            Self::Lines(values) => contract::group_id(values[row].as_ref().ok()?),
        }
    }

    fn group(&self, row: usize, max_partitions: u64) -> Result<GroupSpec<'_>, GroupError> {
        match self {
            Self::Columns(groups) => groups.group(row, max_partitions),
            Self::Lines(values) => match &values[row] {
                Ok(value) => contract::from_value(value, max_partitions),
                Err(error) => Err(error.clone()),
            },
        }
    }
}

/// An answer with its group, which has the names for the answer's numbers.
pub struct Answer<'a> {
    group: GroupSpec<'a>,
    assignor: Assignor,
    assignment: Assignment,
}

/// One row: the group's id (None if it is missing or bad), and the answer.
pub type Row<'a> = (Option<&'a str>, Result<Answer<'a>, GroupError>);

/// Answers every row of a batch, with an `error` for a bad group; also counts the bad groups.
pub fn assign_batch(
    batch: &RecordBatch,
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    Ok(assigned(&Source::columns(batch)?, batch, options))
}

/// Answers a batch of contract lines, its only column; the answer is as that of `assign_batch`.
pub fn assign_line_batch(
    batch: &RecordBatch,
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    let source = Source::lines(batch, options.threads)?;
    Ok(assigned(&source, batch, options))
}

fn assigned(source: &Source, batch: &RecordBatch, options: Options) -> (RecordBatch, usize) {
    let rows = in_parallel(batch.num_rows(), options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let answer = group.and_then(|group| answer(group, options));
        (source.group_id(row), answer)
    });
    let bad = rows.iter().filter(|(_, answer)| answer.is_err()).count();
    (output::write(&rows), bad)
}

/// Assignor, figures (None if no change affects the group), and the changes that have no effect.
type Planned = (Assignor, Option<Figures>, Option<String>);

/// One planned row: the group's id (None if it is missing or bad), and the plan.
type PlanRow<'a> = (Option<&'a str>, Result<Planned, GroupError>);

/// Plans every row of a batch; returns the figures and the number of bad rows. If `changes` is
/// None, each row has its own in a column `changes`, a list of texts; null is an empty list.
pub fn plan_batch(
    batch: &RecordBatch,
    changes: Option<&[String]>,
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    let source = Source::columns(batch)?;
    let Some(changes) = changes else {
        return own_changes_planned(&source, batch, options);
    };
    Ok(planned(&source, batch, changes, options))
}

/// Plans a batch of contract lines, its only column; the answer is as that of `plan_batch`.
pub fn plan_line_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    let source = Source::lines(batch, options.threads)?;
    Ok(planned(&source, batch, changes, options))
}

fn planned(
    source: &Source,
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> (RecordBatch, usize) {
    plan_rows(batch, options, |row| {
        let group = source.group(row, options.max_partitions);
        let planned = group.and_then(|group| {
            let assignor = assignor(&group, options.assignor)?;
            let play = |changes: &[Change]| rebalance_plan::play(&group, assignor, changes);
            let (figures, not_affected) = as_far_as_affected(changes, play)?;
            Ok((assignor, figures, not_affected))
        });
        (source.group_id(row), planned)
    })
}

fn own_changes_planned(
    source: &Source,
    batch: &RecordBatch,
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    let lists = Structs::of_batch(batch).lists("changes", true)?;
    let texts = lists.strings()?;
    let own = |row: usize| {
        let texts = lists.get(row).unwrap_or(0..0).enumerate().map(|(i, at)| {
            let path = || format!("changes[{i}]");
            element(optional_text(&texts, at, path)?, "string", path)
        });
        texts.collect::<Result<Vec<&str>, GroupError>>()
    };
    Ok(plan_rows(batch, options, |row| {
        let group = source.group(row, options.max_partitions);
        let planned = group.and_then(|group| {
            let assignor = assignor(&group, options.assignor)?;
            let changes = rebalance_plan::changes_from_texts(own(row)?.into_iter())?;
            let figures = rebalance_plan::plan(&group, assignor, &changes)?;
            Ok((assignor, Some(figures), None))
        });
        (source.group_id(row), planned)
    }))
}

fn plan_rows<'a>(
    batch: &RecordBatch,
    options: Options,
    row: impl Fn(usize) -> PlanRow<'a> + Sync,
) -> (RecordBatch, usize) {
    let rows: Vec<PlanRow> = in_parallel(batch.num_rows(), options.threads, row);
    let bad = rows.iter().filter(|(_, planned)| planned.is_err()).count();
    (figures::write(&rows), bad)
}

/// The comparison of a group (None if no change affects it), and the changes that have no effect.
pub struct Compared {
    own: Option<String>,
    comparison: Option<Comparison>,
    not_affected: Option<String>,
}

/// One compared row: the group's id (None if it is missing or bad), and the comparison.
pub type ComparedRow<'a> = (Option<&'a str>, Result<Compared, GroupError>);

/// Compares all assignors for every row of a batch; also counts the bad rows.
pub fn compare_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    Ok(compared(&Source::columns(batch)?, batch, changes, options))
}

/// Compares a batch of contract lines, its only column; the answer is as that of `compare_batch`.
pub fn compare_line_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> Result<(RecordBatch, usize), SchemaError> {
    let source = Source::lines(batch, options.threads)?;
    Ok(compared(&source, batch, changes, options))
}

fn compared(
    source: &Source,
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> (RecordBatch, usize) {
    let rows: Vec<ComparedRow> = in_parallel(batch.num_rows(), options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let compared = group.and_then(|group| {
            let play = |changes: &[Change]| comparison::compare(&group, changes);
            let (comparison, not_affected) = as_far_as_affected(changes, play)?;
            Ok(Compared {
                own: group.assignor.map(str::to_owned),
                comparison,
                not_affected,
            })
        });
        (source.group_id(row), compared)
    });
    let bad = rows.iter().filter(|(_, one)| one.is_err()).count();
    (figures::write_compared(&rows), bad)
}

/// Runs `play` on those of many groups' changes that concern one group. A change that mentions a
/// topic, member or rack which the group does not have is left out. Mirror of `plans/affected.py`.
fn as_far_as_affected<T>(
    texts: &[String],
    play: impl Fn(&[Change]) -> Result<T, (Option<usize>, GroupError)>,
) -> Result<(Option<T>, Option<String>), GroupError> {
    let mut changes = rebalance_plan::changes_from_texts(texts.iter().map(String::as_str))?;
    let mut left: Vec<usize> = (0..texts.len()).collect();
    let mut left_out: Vec<String> = Vec::new();
    loop {
        let (place, error) = match play(&changes) {
            Ok(played) => {
                let not_affected = (!left_out.is_empty()).then(|| left_out.join("; "));
                return Ok((Some(played), not_affected));
            }
            Err((Some(place), error)) if error.unaffected => (place, error),
            Err((place, error)) => return Err(rebalance_plan::at(error, place.map(|i| left[i]))),
        };
        changes.remove(place);
        left_out.push(format!("{}: {}", texts[left.remove(place)], error.problem));
        if changes.is_empty() {
            return Ok((None, Some(left_out.join("; "))));
        }
    }
}

fn answer(group: GroupSpec<'_>, options: Options) -> Result<Answer<'_>, GroupError> {
    let (assignor, assignment) = assign(&group, options.assignor)?;
    Ok(Answer {
        group,
        assignor,
        assignment,
    })
}
