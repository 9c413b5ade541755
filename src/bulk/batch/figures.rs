// SPDX-License-Identifier: Apache-2.0
//! Writes plans and comparisons as columns; figures have the names of `plans/figures.py`.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};

use super::{Compared, Planned, Row};
use crate::bulk::nested::{Lengths, Named, batch, numbers, structs, texts};
use crate::error::GroupError;
use crate::plans::figures::{Balance, Figures};
use crate::switching::comparison::Comparison;

/// Makes one output row from each planned row: its figures, or its error.
pub fn write(rows: &[Row<Planned>]) -> RecordBatch {
    let planned = |row: &Row<Planned>| row.1.as_ref().ok().map(|one| one.0.name());
    // A row has no figures if it has an error, or if no change affects its group.
    let figures = rows.iter().map(|row| row.1.as_ref().ok()?.1.as_ref());
    let not_affected = |row: &Row<Planned>| row.1.as_ref().ok().and_then(|one| one.2.clone());
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, planned)),
    ];
    columns.extend(figure_columns(&figures.collect::<Vec<_>>()));
    columns.push(("not_affected", texts(rows, not_affected)));
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

/// Makes one output row from each compared row: its candidates and recommendation, or its error.
pub fn write_compared(rows: &[Row<Compared>]) -> RecordBatch {
    let all: Vec<_> = rows
        .iter()
        .map(|row| compared(row)?.comparison.as_ref())
        .collect();
    let recommended = |one: &Option<&Comparison>| Some(one.as_ref()?.recommended?.name());
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, |row| compared(row)?.own)),
        ("recommended", texts(&all, recommended)),
        (
            "reason",
            texts(&all, |one| Some(one.as_ref()?.reason.as_str())),
        ),
        ("candidates", candidates(&all)),
        (
            "not_affected",
            texts(rows, |row| compared(row)?.not_affected.as_deref()),
        ),
    ];
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

fn compared<'a, 'b>(row: &'b Row<'a, Compared<'a>>) -> Option<&'b Compared<'a>> {
    row.1.as_ref().ok()
}

/// The column with the candidates of each comparison: the figures of each assignor, or its error.
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

pub fn error_columns<'a, R>(
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<&'a GroupError>,
) -> [Named<'static>; 2] {
    let text = texts(rows, |row| of(row).map(ToString::to_string));
    let kind = texts(rows, |row| of(row).map(GroupError::kind_name));
    [("error", text), ("error_kind", kind)]
}

/// The columns of the figures; None makes a row of nulls.
fn figure_columns(rows: &[Option<&Figures>]) -> [Named<'static>; 15] {
    let counts = |of: fn(&Figures) -> i64| -> ArrayRef {
        Arc::new(numbers::<Int64Type, _>(rows, |one| one.map(of)))
    };
    let balances = |of: fn(&Figures) -> &Balance| -> ArrayRef {
        let balances: Vec<Option<&Balance>> = rows.iter().map(|one| one.map(of)).collect();
        let ints = |of: fn(&Balance) -> u32| -> ArrayRef {
            let of = |one: &Option<&Balance>| one.map(|one| of(one) as i32);
            Arc::new(numbers::<Int32Type, _>(&balances, of))
        };
        let floats = |of: fn(&Balance) -> f64| -> ArrayRef {
            Arc::new(numbers::<Float64Type, _>(&balances, |one| one.map(of)))
        };
        let columns = vec![
            ("min", ints(|one| one.min)),
            ("max", ints(|one| one.max)),
            ("mean", floats(|one| one.mean)),
            ("stddev", floats(|one| one.stddev)),
        ];
        let valid = balances.iter().map(Option::is_some).collect();
        structs(columns, Some(valid))
    };
    let shares = |of: fn(&Figures) -> Option<f64>| -> ArrayRef {
        Arc::new(numbers::<Float64Type, _>(rows, |one| one.and_then(of)))
    };
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
