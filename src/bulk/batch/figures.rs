// SPDX-License-Identifier: Apache-2.0
//! The columns of plans and of comparisons; figures have the names of `plans/figures.py`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Field, Fields, Schema};

use super::{ComparedRow, PlanRow};
use crate::bulk::nested::{Ends, fields};
use crate::error::GroupError;
use crate::plans::figures::{Balance, Figures};

type Column = (&'static str, ArrayRef);

fn balance_fields() -> Fields {
    fields([
        ("min", DataType::Int32),
        ("max", DataType::Int32),
        ("mean", DataType::Float64),
        ("stddev", DataType::Float64),
    ])
}

/// Makes one output row of each planned row: its figures, or its error.
pub fn write(rows: &[PlanRow]) -> RecordBatch {
    let planned = |row: &PlanRow| row.1.as_ref().ok().map(|one| one.0.name());
    // No figures if the row has an error, or no change affects its group.
    let figures = rows.iter().map(|row| row.1.as_ref().ok()?.1.as_ref());
    let not_affected = |row: &PlanRow| row.1.as_ref().ok().and_then(|one| one.2.clone());
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, planned)),
    ];
    columns.extend(figure_columns(&figures.collect::<Vec<_>>()));
    columns.push(("not_affected", texts(rows, not_affected)));
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

/// Makes one output row of each compared row: its candidates and the recommendation, or its error.
pub fn write_compared(rows: &[ComparedRow]) -> RecordBatch {
    let own = |row: &ComparedRow| row.1.as_ref().ok().and_then(|one| one.own.clone());
    let all = rows
        .iter()
        .map(|row| row.1.as_ref().ok()?.comparison.as_ref());
    let all: Vec<_> = all.collect();
    let of_group = all
        .iter()
        .map(|one| one.map_or(&[][..], |one| &one.candidates[..]));
    let mut ends = Ends::new();
    let mut valid = NullBufferBuilder::new(rows.len());
    for one in &all {
        ends.push(one.map_or(0, |one| one.candidates.len()));
        valid.append(one.is_some());
    }
    let candidates: Vec<_> = of_group.flatten().collect();
    let figures: Vec<_> = candidates
        .iter()
        .map(|one| one.figures.as_ref().ok())
        .collect();
    let mut inner = vec![(
        "assignor",
        texts(&candidates, |one| Some(one.assignor.name())),
    )];
    inner.extend(figure_columns(&figures));
    inner.extend(error_columns(&candidates, |one| one.figures.as_ref().err()));
    let (inner_fields, inner_columns) = described(inner);
    let item = DataType::Struct(inner_fields.clone());
    let structs = Arc::new(StructArray::new(inner_fields, inner_columns, None));
    let candidates: ArrayRef = Arc::new(ends.list(item, structs, Some(valid)));
    let recommended = all.iter().map(|one| one.and_then(|one| one.recommended));
    let recommended: StringArray = recommended.map(|one| one.map(|one| one.name())).collect();
    let reasons = all.iter().map(|one| one.map(|one| one.reason.as_str()));
    let not_affected = |row: &ComparedRow| row.1.as_ref().ok()?.not_affected.clone();
    let mut columns: Vec<Column> = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, own)),
        ("recommended", Arc::new(recommended)),
        ("reason", Arc::new(reasons.collect::<StringArray>())),
        ("candidates", candidates),
        ("not_affected", texts(rows, not_affected)),
    ];
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

fn batch(columns: Vec<Column>) -> RecordBatch {
    let (fields, columns) = described(columns);
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, columns).expect("columns are of the schema")
}

/// The columns with their fields, which are all nullable.
fn described(columns: Vec<Column>) -> (Fields, Vec<ArrayRef>) {
    let field = |(name, column): &Column| Field::new(*name, column.data_type().clone(), true);
    let fields = columns.iter().map(field).collect();
    (
        fields,
        columns.into_iter().map(|(_, column)| column).collect(),
    )
}

fn texts<'a, R, T: AsRef<str>>(rows: &'a [R], of: impl Fn(&'a R) -> Option<T>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<StringArray>())
}

fn error_columns<'a, R>(
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<&'a GroupError>,
) -> [Column; 2] {
    let text = texts(rows, |row| of(row).map(ToString::to_string));
    let kind = texts(rows, |row| of(row).map(GroupError::kind));
    [("error", text), ("error_kind", kind)]
}

/// The columns of the figures; None is a row of nulls.
fn figure_columns(rows: &[Option<&Figures>]) -> Vec<Column> {
    let numbers = |of: fn(&Figures) -> i64| -> ArrayRef {
        Arc::new(rows.iter().map(|one| one.map(of)).collect::<Int64Array>())
    };
    let balances = |of: fn(&Figures) -> &Balance| -> ArrayRef {
        let balances: Vec<Option<&Balance>> = rows.iter().map(|one| one.map(of)).collect();
        let ints = |of: fn(&Balance) -> u32| -> ArrayRef {
            let values = balances.iter().map(|one| one.map(|one| of(one) as i32));
            Arc::new(values.collect::<Int32Array>())
        };
        let floats = |of: fn(&Balance) -> f64| -> ArrayRef {
            let values = balances.iter().map(|one| one.map(of));
            Arc::new(values.collect::<Float64Array>())
        };
        let columns = vec![
            ints(|one| one.min),
            ints(|one| one.max),
            floats(|one| one.mean),
            floats(|one| one.stddev),
        ];
        let valid = balances.iter().map(Option::is_some).collect::<Vec<bool>>();
        let valid = Some(valid.into());
        Arc::new(StructArray::new(balance_fields(), columns, valid))
    };
    let shares = |of: fn(&Figures) -> Option<f64>| -> ArrayRef {
        let values = rows.iter().map(|one| one.and_then(of));
        Arc::new(values.collect::<Float64Array>())
    };
    let flags = |of: fn(&Figures) -> bool| -> ArrayRef {
        let values = rows.iter().map(|one| one.map(of));
        Arc::new(values.collect::<BooleanArray>())
    };
    vec![
        ("rounds", numbers(|one| one.rounds as i64)),
        ("moves", numbers(|one| one.moves as i64)),
        ("least_moves", numbers(|one| one.least_moves)),
        ("unavailable", numbers(|one| one.unavailable as i64)),
        (
            "unavailable_rounds",
            numbers(|one| one.unavailable_rounds as i64),
        ),
        ("waiting", numbers(|one| one.waiting as i64)),
        ("leaderless", numbers(|one| one.leaderless as i64)),
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
