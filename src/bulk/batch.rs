// SPDX-License-Identifier: Apache-2.0
//! Answers groups in bulk: takes an Arrow record batch and returns a record batch, with one row for
//! each group.
//!
//! Names are borrowed from the input's buffers and copied only into the answer.

pub mod columns;
mod figures;
mod groups;
mod output;

use arrow_array::RecordBatch;

use crate::assignors::{Assignor, assign, assignor};
use crate::bulk::lines::{Options, in_parallel};
use crate::error::{ErrorKind, GroupError};
use crate::group::contract;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::plans::{figures::Figures, rebalance_plan};
pub use columns::SchemaError;
use columns::{Lines, Lists, Structs};
use groups::{Groups, element, optional_text};

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
    let groups = Groups::of(batch)?;
    let rows = in_parallel(batch.num_rows(), options.threads, |row| {
        let group = groups.group(row, options.max_partitions);
        (
            groups.group_id(row),
            group.and_then(|group| answer(group, options)),
        )
    });
    Ok(output::write(&rows))
}

/// Answers a batch whose only column has contract lines. The answer has the columns of
/// `assign_batch`.
pub fn assign_line_batch(
    batch: &RecordBatch,
    options: Options,
) -> Result<RecordBatch, SchemaError> {
    let lines = Lines::of(batch)?;
    let values = in_parallel(batch.num_rows(), options.threads, |row| {
        contract::parse(lines.get(row))
    });
    let rows = in_parallel(values.len(), options.threads, |row| {
        let value = match &values[row] {
            Ok(value) => value,
            Err(error) => return (None, Err(error.clone())),
        };
        let group = contract::from_value(value, options.max_partitions);
        (
            contract::group_id(value),
            group.and_then(|group| answer(group, options)),
        )
    });
    Ok(output::write(&rows))
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
    let groups = Groups::of(batch)?;
    let lists: Lists = Structs::of_batch(batch).column("changes", changes.is_none())?;
    let texts = lists.elements()?;
    let own = |row: usize| {
        let texts = lists.get(row).unwrap_or(0..0).enumerate().map(|(i, at)| {
            let path = || format!("changes[{i}]");
            element(optional_text(&texts, at, path)?, "string", path)
        });
        texts.collect::<Result<Vec<&str>, GroupError>>()
    };
    let rows: Vec<PlanRow> = in_parallel(batch.num_rows(), options.threads, |row| {
        let planned = groups.group(row, options.max_partitions).and_then(|group| {
            let assignor = assignor(&group, options.assignor)?;
            match changes {
                Some(texts) => plan_as_far_as_affected(&group, assignor, texts),
                None => {
                    let changes = rebalance_plan::changes_from_texts(own(row)?.into_iter())?;
                    let figures = rebalance_plan::plan(&group, assignor, &changes)?;
                    Ok((assignor, Some(figures), None))
                }
            }
        });
        (groups.group_id(row), planned)
    });
    Ok(figures::write(&rows))
}

/// Plans one of many groups with the same list of changes. Changes that mention a topic, member or
/// rack which the group does not have are left out. Mirror of `plans/affected.py`.
fn plan_as_far_as_affected(
    group: &GroupSpec,
    assignor: Assignor,
    texts: &[String],
) -> Result<Planned, GroupError> {
    let mut changes = rebalance_plan::changes_from_texts(texts.iter().map(String::as_str))?;
    let mut left: Vec<usize> = (0..texts.len()).collect();
    let mut left_out: Vec<String> = Vec::new();
    loop {
        let (place, error) = match rebalance_plan::play(group, assignor, &changes) {
            Ok(figures) => {
                let not_affected = (!left_out.is_empty()).then(|| left_out.join("; "));
                return Ok((assignor, Some(figures), not_affected));
            }
            Err((Some(place), error)) if error.kind == ErrorKind::NotAffected => (place, error),
            Err((place, error)) => return Err(rebalance_plan::at(error, place.map(|i| left[i]))),
        };
        changes.remove(place);
        left_out.push(format!("{}: {}", texts[left.remove(place)], error.problem));
        if changes.is_empty() {
            return Ok((assignor, None, Some(left_out.join("; "))));
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
