// SPDX-License-Identifier: Apache-2.0
//! The compiled module `kafka_rebalance._core`: the only place that knows PyO3.

mod arrow;
mod connect;
mod field_types;
mod group;
mod wire;

use pyo3::prelude::*;

use crate::assignors::Assignor;
use crate::error::GroupError;

/// The exceptions of `errors.py`.
fn raise(py: Python<'_>, error: &GroupError) -> PyErr {
    let class = if error.never_ends {
        "NeverEnds"
    } else if error.throws {
        "AssignorThrows"
    } else {
        "GroupError"
    };
    exception(py, class, (&error.path, &error.problem))
}

fn exception<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let raised = py
        .import("kafka_rebalance.errors")
        .and_then(|errors| errors.getattr(class)?.call1(arguments));
    match raised {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

fn by_name(py: Python<'_>, name: Option<&str>) -> PyResult<Option<Assignor>> {
    name.map(Assignor::by_name)
        .transpose()
        .map_err(|error| raise(py, &error))
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::arrow::{
        ArrowBatch, TopicInventory, assign_batch, assign_line_batch, groups_from_records,
        plan_batch,
    };
    #[pymodule_export]
    use super::connect::{connect_eager, connect_incremental};
    #[pymodule_export]
    use super::field_types::has_its_types;
    #[pymodule_export]
    use super::group::{Interned, assign, assign_lines, best_possible, intern};
    #[pymodule_export]
    use super::wire::{
        decode_assignment, decode_cooperative_user_data, decode_sticky_user_data,
        decode_subscription, encode_assignment, encode_sticky_user_data, encode_subscription,
    };
}
