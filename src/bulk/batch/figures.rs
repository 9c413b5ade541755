// SPDX-License-Identifier: Apache-2.0
//! Writes the figures of plans as columns, with the names of `plans/figures.py`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};

use super::PlanRow;
use crate::bulk::nested::{batch, structs};
use crate::plans::figures::{Balance, Figures};

/// Makes one output row of each planned row: its figures, or its error.
pub fn write(rows: &[PlanRow]) -> RecordBatch {
    let texts = |of: &dyn Fn(&PlanRow) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&Figures) -> i64| -> ArrayRef {
        Arc::new(planned(rows).map(|one| one.map(of)).collect::<Int64Array>())
    };
    let balances = |of: &dyn Fn(&Figures) -> &Balance| -> ArrayRef {
        let balances: Vec<Option<&Balance>> = planned(rows).map(|one| one.map(of)).collect();
        let ints = |of: &dyn Fn(&Balance) -> u32| -> ArrayRef {
            let values = balances.iter().map(|one| one.map(|one| of(one) as i32));
            Arc::new(values.collect::<Int32Array>())
        };
        let floats = |of: &dyn Fn(&Balance) -> f64| -> ArrayRef {
            let values = balances.iter().map(|one| one.map(of));
            Arc::new(values.collect::<Float64Array>())
        };
        let columns = [
            ("min", ints(&|one| one.min)),
            ("max", ints(&|one| one.max)),
            ("mean", floats(&|one| one.mean)),
            ("stddev", floats(&|one| one.stddev)),
        ];
        let valid = balances.iter().map(Option::is_some).collect();
        structs(columns, Some(valid))
    };
    let shares = |of: &dyn Fn(&Figures) -> Option<f64>| -> ArrayRef {
        Arc::new(
            planned(rows)
                .map(|one| one.and_then(of))
                .collect::<Float64Array>(),
        )
    };
    let flags = |of: &dyn Fn(&Figures) -> bool| -> ArrayRef {
        Arc::new(
            planned(rows)
                .map(|one| one.map(of))
                .collect::<BooleanArray>(),
        )
    };
    batch([
        ("group_id", texts(&|row| row.0.map(Into::into))),
        (
            "assignor",
            texts(&|row| row.1.as_ref().ok().map(|one| one.0.name().into())),
        ),
        ("rounds", numbers(&|one| one.rounds as i64)),
        ("moves", numbers(&|one| one.moves as i64)),
        ("least_moves", numbers(&|one| one.least_moves)),
        ("unavailable", numbers(&|one| one.unavailable as i64)),
        (
            "unavailable_rounds",
            numbers(&|one| one.unavailable_rounds as i64),
        ),
        ("waiting", numbers(&|one| one.waiting as i64)),
        ("leaderless", numbers(&|one| one.leaderless as i64)),
        ("balance_before", balances(&|one| &one.balance_before)),
        ("balance_after", balances(&|one| &one.balance_after)),
        ("balance_possible", balances(&|one| &one.balance_possible)),
        ("rack_share_before", shares(&|one| one.rack_share_before)),
        ("rack_share_after", shares(&|one| one.rack_share_after)),
        ("settled", flags(&|one| one.settled)),
        ("depends_on_ids", flags(&|one| one.depends_on_ids)),
        ("owns_nothing", flags(&|one| one.owns_nothing)),
        (
            "not_affected",
            texts(&|row| row.1.as_ref().ok().and_then(|one| one.2.clone())),
        ),
        (
            "error",
            texts(&|row| row.1.as_ref().err().map(ToString::to_string)),
        ),
    ])
}

/// The figures of each row; None if the row has an error, or no change affects its group.
fn planned<'a>(rows: &'a [PlanRow]) -> impl Iterator<Item = Option<&'a Figures>> {
    rows.iter().map(|row| row.1.as_ref().ok()?.1.as_ref())
}
