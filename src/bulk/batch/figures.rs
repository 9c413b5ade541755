// SPDX-License-Identifier: Apache-2.0
//! Writes plans and comparisons as columns; the figures are named as in `plans/figures.py`.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};

use crate::assignors::Assignor;
use crate::bulk::nested::{Lengths, Named, batch, numbers, structs, texts};
use crate::error::GroupError;
use crate::plans::figures::{Balance, Figures};
use crate::switching::comparison::Comparison;

/// One row: the group's id (None if missing or unreadable), and the group's answer.
pub type Row<'a, T> = (Option<&'a str>, Result<T, GroupError>);

/// Assignor, figures (None if no change affects the group), and the changes that do not affect the
/// group.
pub type Planned = (Assignor, Option<Figures>, Option<String>);

/// The comparison of a group (None if no change affects it), and the changes that do not affect it.
pub struct Compared<'a> {
    pub own: Option<&'a str>,
    pub comparison: Option<Comparison>,
    pub not_affected: Option<String>,
}

/// Makes one output row from each planned group: its figures, or its error.
pub fn write(rows: &[Row<Planned>]) -> RecordBatch {
    // A row has no figures if it has an error, or if no change affects its group.
    let figures = rows.iter().map(|row| row.1.as_ref().ok()?.1.as_ref());
    let mut columns = figure_columns(&figures.collect::<Vec<_>>()).to_vec();
    let not_affected = texts(rows, |row| row.1.as_ref().ok()?.2.as_ref());
    columns.push(("not_affected", not_affected));
    answered(rows, |planned| Some(planned.0.name()), columns)
}

/// Makes one output row from each compared group: its candidates and recommendation, or its error.
pub fn write_compared(rows: &[Row<Compared>]) -> RecordBatch {
    let all = rows.iter().map(|row| row.1.as_ref().ok());
    let compared = all.clone().map(|one| one?.comparison.as_ref());
    let (all, compared): (Vec<_>, Vec<_>) = (all.collect(), compared.collect());
    let recommended = |one: &Option<&Comparison>| Some(one.as_ref()?.recommended?.name());
    let reason = |one: &Option<&Comparison>| Some(one.as_ref()?.reason.clone());
    let not_affected = |one: &Option<&Compared>| one.as_ref()?.not_affected.clone();
    let columns = vec![
        ("recommended", texts(&compared, recommended)),
        ("reason", texts(&compared, reason)),
        ("candidates", candidates(&compared)),
        ("not_affected", texts(&all, not_affected)),
    ];
    answered(rows, |one| one.own, columns)
}

/// Makes the columns of an answer: the group and its assignor, its `own` columns, and its error.
pub fn answered<'r, 'a, T>(
    rows: &'r [Row<'a, T>],
    assignor: impl Fn(&'r T) -> Option<&'r str>,
    own: Vec<Named>,
) -> RecordBatch {
    let assignor = |row: &'r Row<T>| assignor(row.1.as_ref().ok()?);
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, assignor)),
    ];
    columns.extend(own);
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

fn candidates(all: &[Option<&Comparison>]) -> ArrayRef {
    let mut ends = Lengths::default();
    for one in all {
        ends.push(one.map(|one| one.candidates.len()));
    }
    let each = all.iter().flatten().flat_map(|one| &one.candidates);
    let each: Vec<_> = each.collect();
    let figures: Vec<_> = each.iter().map(|one| one.figures.as_ref().ok()).collect();
    let mut columns = vec![("assignor", texts(&each, |one| Some(one.assignor.name())))];
    columns.extend(figure_columns(&figures));
    columns.extend(error_columns(&each, |one| one.figures.as_ref().err()));
    ends.list(structs(columns, None))
}

fn error_columns<'a, R>(
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<&'a GroupError>,
) -> [Named<'static>; 2] {
    let text = texts(rows, |row| of(row).map(ToString::to_string));
    let kind = texts(rows, |row| of(row).map(GroupError::kind_name));
    [("error", text), ("error_kind", kind)]
}

fn figure_columns(rows: &[Option<&Figures>]) -> [Named<'static>; 15] {
    let counts = |of: fn(&Figures) -> i64| numbers::<Int64Type, _>(rows, |one| one.map(of));
    let balances = |of: fn(&Figures) -> &Balance| {
        let balances: Vec<Option<&Balance>> = rows.iter().map(|one| one.map(of)).collect();
        let ints = |of: fn(&Balance) -> u32| {
            numbers::<Int32Type, _>(&balances, |one| one.map(|one| of(one) as i32))
        };
        let floats =
            |of: fn(&Balance) -> f64| numbers::<Float64Type, _>(&balances, |one| one.map(of));
        let columns = vec![
            ("min", ints(|one| one.min)),
            ("max", ints(|one| one.max)),
            ("mean", floats(|one| one.mean)),
            ("stddev", floats(|one| one.stddev)),
        ];
        structs(
            columns,
            Some(balances.iter().map(Option::is_some).collect()),
        )
    };
    let shares =
        |of: fn(&Figures) -> Option<f64>| numbers::<Float64Type, _>(rows, |one| one.and_then(of));
    let flags = |of: fn(&Figures) -> bool| -> ArrayRef {
        let values = rows.iter().map(|one| one.map(of));
        Arc::new(values.collect::<BooleanArray>())
    };
    [
        ("rounds", counts(|one| one.rounds as i64)),
        ("moves", counts(|one| one.moves as i64)),
        ("least_moves", counts(|one| one.least_moves)),
        ("unavailable", counts(|one| one.unavailable as i64)),
        (
            "unavailable_rounds",
            counts(|one| one.unavailable_rounds as i64),
        ),
        ("waiting", counts(|one| one.waiting as i64)),
        ("leaderless", counts(|one| one.leaderless as i64)),
        ("balance_before", balances(|one| &one.balance_before)),
        ("balance_after", balances(|one| &one.balance_after)),
        ("balance_possible", balances(|one| &one.balance_possible)),
        ("rack_share_before", shares(|one| one.rack_share_before)),
        ("rack_share_after", shares(|one| one.rack_share_after)),
        ("settled", flags(|one| one.settled)),
        ("depends_on_ids", flags(|one| one.depends_on_ids)),
        ("owns_nothing", flags(|one| one.owns_nothing)),
    ]
}
