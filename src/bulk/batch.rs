// SPDX-License-Identifier: Apache-2.0
//! Assigns, plans and compares groups in bulk: takes an Arrow record batch of groups, and returns
//! another batch with one row for each group.
//!
//! Names in columns are borrowed from the buffers and copied only into the answer.

mod figures;
mod output;
mod source;

use arrow_array::RecordBatch;

use crate::assignors::{Assignor, assign, assignor};
use crate::bulk::columns::{Column, SchemaError};
use crate::bulk::lines::{Options, in_parallel};
use crate::error::{ErrorKind, GroupError};
use crate::group::field_types::{Field, Given, Kind};
use crate::group::spec::GroupSpec;
use crate::plans::changes::change::Change;
use crate::plans::rebalance_plan;
use crate::switching::comparison;
use figures::{Compared, Planned, Row};
use output::Answer;
pub use source::Form;
use source::Source;

fn rows<'s, T: Send>(
    source: &'s Source,
    options: Options,
    answer: impl Fn(usize, GroupSpec<'s>) -> Result<T, GroupError> + Sync,
) -> Vec<Row<'s, T>> {
    in_parallel(source.rows, options.threads, |row| {
        let group = source.group(row, options.max_partitions);
        let answer = group.and_then(|group| answer(row, group));
        (source.group_id(row), answer)
    })
}

/// Assigns every group of a batch; the row of a bad group has its `error` set.
///
/// Columns and fields are found by name, in any order; unknown ones are ignored. A required column
/// that is missing is an error. So is a column of a type that docs/contract.md does not allow.
///
/// With `as_owners`, an answer is one list of owners for each group.
pub fn assign_batch(
    batch: &RecordBatch,
    options: Options,
    form: Form,
    as_owners: bool,
) -> Result<RecordBatch, SchemaError> {
    let source = Source::of(batch, options.threads, form)?;
    let rows = rows(&source, options, |_, group| {
        let (mut assignor, assignment) = assign(&group, options.assignor)?;
        if as_owners {
            assignor = assignor.for_owners()?;
        }
        Ok(Answer {
            group,
            assignor,
            assignment,
        })
    });
    Ok(match as_owners {
        true => output::write_owners(&rows),
        false => output::write(&rows),
    })
}

/// Plans every row of a batch. Returns the figures of the plans. If `changes` is None, each row's
/// own list of changes comes from the batch's column `changes`; null means an empty list.
pub fn plan_batch(
    batch: &RecordBatch,
    changes: Option<&[String]>,
    options: Options,
    form: Form,
) -> Result<RecordBatch, SchemaError> {
    let source = Source::of(batch, options.threads, form)?;
    let planned = match changes {
        Some(changes) => rows(&source, options, |_, group| {
            let assignor = assignor(&group, options.assignor)?;
            let play = |changes: &[Change]| rebalance_plan::play(&group, assignor, changes);
            let is_idle = |changes: &[Change]| rebalance_plan::is_idle(&group, assignor, changes);
            let (figures, not_affected) = as_far_as_affected(changes, play, is_idle)?;
            Ok((assignor, figures, not_affected))
        }),
        None => own_changes_planned(&source, batch, options)?,
    };
    Ok(figures::write(&planned))
}

static CHANGES: [Field; 1] = [Field::required("changes", Kind::List(&Kind::Text))];

fn own_changes_planned<'s>(
    source: &'s Source,
    batch: &RecordBatch,
    options: Options,
) -> Result<Vec<Row<'s, Planned>>, SchemaError> {
    let columns = Column::of_batch(batch, &CHANGES)?;
    let own = |row: usize| {
        let row = Given::whole_row(columns.at(row));
        let [changes] = row.fields(&CHANGES)?;
        let texts = changes.optional_list()?.into_iter().flatten();
        texts
            .map(|one| one.text())
            .collect::<Result<Vec<&str>, GroupError>>()
    };
    Ok(rows(source, options, |row, group| {
        let assignor = assignor(&group, options.assignor)?;
        let changes = rebalance_plan::changes_from_texts(own(row)?.into_iter())?;
        let figures = rebalance_plan::plan(&group, assignor, &changes)?;
        Ok((assignor, Some(figures), None))
    }))
}

pub fn compare_batch(
    batch: &RecordBatch,
    changes: &[String],
    options: Options,
    form: Form,
) -> Result<RecordBatch, SchemaError> {
    let source = Source::of(batch, options.threads, form)?;
    let rows = rows(&source, options, |_, group| {
        let play = |changes: &[Change]| comparison::compare(&group, changes);
        let own = assignor(&group, None).unwrap_or(Assignor::Range);
        let is_idle = |changes: &[Change]| rebalance_plan::is_idle(&group, own, changes);
        let (comparison, not_affected) = as_far_as_affected(changes, play, is_idle)?;
        Ok(Compared {
            own: group.assignor,
            comparison,
            not_affected,
        })
    });
    Ok(figures::write_compared(&rows))
}

const IDLE: &str = "no rebalance follows, because no member sees a change";

/// Mirror of `plans/affected.py`. Runs `play` with the changes that affect one group; a change that
/// fails with `NotAffected` is left out. The answer is None if no change is left, or if no
/// rebalance follows those that are left (`is_idle`).
fn as_far_as_affected<T>(
    texts: &[String],
    play: impl Fn(&[Change]) -> Result<T, (Option<usize>, GroupError)>,
    is_idle: impl Fn(&[Change]) -> bool,
) -> Result<(Option<T>, Option<String>), GroupError> {
    let mut changes = rebalance_plan::changes_from_texts(texts.iter().map(String::as_str))?;
    let mut left: Vec<usize> = (0..texts.len()).collect();
    let mut left_out: Vec<String> = Vec::new();
    loop {
        let (place, error) = match play(&changes) {
            Ok(_) if is_idle(&changes) => {
                left_out.extend(left.iter().map(|&i| format!("{}: {IDLE}", texts[i])));
                return Ok((None, Some(left_out.join("; "))));
            }
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
