// SPDX-License-Identifier: Apache-2.0
//! Answers groups in bulk: takes an Arrow record batch and returns a record batch, with one row for
//! each group.
//!
//! Names are borrowed from the input's buffers and copied only into the answer.

pub mod columns;
mod figures;
mod groups;
mod output;
mod source;

use arrow_array::RecordBatch;

use crate::assignors::{Assignor, assign, assignor};
use crate::bulk::lines::{Options, in_parallel};
use crate::error::{ErrorKind, GroupError};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::plans::changes::change::Change;
use crate::plans::comparison::{self, Comparison};
use crate::plans::{figures::Figures, rebalance_plan};
pub use columns::SchemaError;
use columns::{Lists, Structs};
use groups::{element, optional_text};
use source::Source;

/// An answer with its group, which has the names for the answer's numbers.
pub struct Answer<'a> {
    group: GroupSpec<'a>,
    assignor: Assignor,
    assignment: Assignment,
}

/// One row: the group's id (None if it is missing or bad), and the answer.
pub type Row<'a> = (Option<&'a str>, Result<Answer<'a>, GroupError>);

/// Answers every row of a batch; the row of a bad group has its `error` set.
///
/// Columns and fields are found by name, in any order; unknown ones are ignored. Returns an error
/// if a column is missing or has another type than in the contract.
pub fn assign_batch(batch: &RecordBatch, options: Options) -> Result<RecordBatch, SchemaError> {
    Ok(assigned(&Source::columns(batch)?, options))
}

/// Answers a batch whose only column has contract lines. The answer has the columns of
/// `assign_batch`.
pub fn assign_line_batch(
    batch: &RecordBatch,
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    Ok(assigned(&Source::lines(batch, options.threads)?, options))
}

fn assigned(source: &Source, options: Options) -> RecordBatch {
    let rows = in_parallel(source.rows(), options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let answer = group.and_then(|group| answer(group, options));
        (source.group_id(row), answer)
    });
    output::write(&rows)
}

fn answer(group: GroupSpec<'_>, options: Options) -> Result<Answer<'_>, GroupError> {
    let (assignor, assignment) = assign(&group, options.assignor)?;
    Ok(Answer {
        group,
        assignor,
        assignment,
    })
}

/// Assignor, figures (None if no change affects the group), and the changes that have no effect.
type Planned = (Assignor, Option<Figures>, Option<String>);

/// One planned row: the group's id (None if it is missing or bad), and the plan.
type PlanRow<'a> = (Option<&'a str>, Result<Planned, GroupError>);

/// Plans every row of a batch; returns the figures of the plans. If `changes` is None, a column
/// `changes` has a list of texts for each row; null is an empty list.
pub fn plan_batch(
    batch: &RecordBatch,
    changes: Option<&[String]>,
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    let source = Source::columns(batch)?;
    match changes {
        Some(changes) => Ok(planned(&source, changes, options)),
        None => own_changes_planned(&source, batch, options),
    }
}

/// Plans a batch whose only column has contract lines. The answer has the columns of `plan_batch`.
pub fn plan_line_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    let source = Source::lines(batch, options.threads)?;
    Ok(planned(&source, changes, options))
}

fn planned(source: &Source, changes: &[String], options: Options) -> RecordBatch {
    let rows: Vec<PlanRow> = in_parallel(source.rows(), options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let planned = group.and_then(|group| {
            let assignor = assignor(&group, options.assignor)?;
            let play = |changes: &[Change]| rebalance_plan::play(&group, assignor, changes);
            let (figures, not_affected) = as_far_as_affected(changes, play)?;
            Ok((assignor, figures, not_affected))
        });
        (source.group_id(row), planned)
    });
    figures::write(&rows)
}

fn own_changes_planned(
    source: &Source,
    batch: &RecordBatch,
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    let lists: Lists = Structs::of_batch(batch).column("changes", true)?;
    let texts = lists.elements()?;
    let own = |row: usize| {
        let texts = lists.get(row).unwrap_or(0..0).enumerate().map(|(i, at)| {
            let path = || format!("changes[{i}]");
            element(optional_text(&texts, at, path)?, "string", path)
        });
        texts.collect::<Result<Vec<&str>, GroupError>>()
    };
    let rows: Vec<PlanRow> = in_parallel(source.rows(), options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let planned = group.and_then(|group| {
            let assignor = assignor(&group, options.assignor)?;
            let changes = rebalance_plan::changes_from_texts(own(row)?.into_iter())?;
            let figures = rebalance_plan::plan(&group, assignor, &changes)?;
            Ok((assignor, Some(figures), None))
        });
        (source.group_id(row), planned)
    });
    Ok(figures::write(&rows))
}

/// The comparison of a group (None if no change affects it), and the changes that have no effect.
struct Compared<'a> {
    /// The group's own assignor.
    own: Option<&'a str>,
    comparison: Option<Comparison>,
    not_affected: Option<String>,
}

/// One compared row: the group's id (None if it is missing or bad), and the comparison.
type ComparedRow<'a> = (Option<&'a str>, Result<Compared<'a>, GroupError>);

/// Compares all assignors for every row of a batch.
pub fn compare_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    Ok(compared(&Source::columns(batch)?, changes, options))
}

/// Compares a batch whose only column has contract lines. The answer has the columns of
/// `compare_batch`.
pub fn compare_line_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    let source = Source::lines(batch, options.threads)?;
    Ok(compared(&source, changes, options))
}

fn compared(source: &Source, changes: &[String], options: Options) -> RecordBatch {
    let rows: Vec<ComparedRow> = in_parallel(source.rows(), options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let compared = group.and_then(|group| {
            let play = |changes: &[Change]| comparison::compare(&group, changes);
            let (comparison, not_affected) = as_far_as_affected(changes, play)?;
            Ok(Compared {
                own: group.assignor,
                comparison,
                not_affected,
            })
        });
        (source.group_id(row), compared)
    });
    figures::write_compared(&rows)
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
            Err((Some(place), error)) if error.kind == ErrorKind::NotAffected => (place, error),
            Err((place, error)) => return Err(rebalance_plan::at(error, place.map(|i| left[i]))),
        };
        changes.remove(place);
        left_out.push(format!("{}: {}", texts[left.remove(place)], error.problem));
        if changes.is_empty() {
            return Ok((None, Some(left_out.join("; "))));
        }
    }
}
