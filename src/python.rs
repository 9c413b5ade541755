// SPDX-License-Identifier: Apache-2.0
//! The compiled module `kafka_rebalance._core`: the only module that uses PyO3.

mod assign;
mod bulk;
mod connect;
mod contract;
mod field_types;
mod group;
mod history;
mod interrupt;
mod partitions;
mod plan;
mod possible;
mod streams;
mod wire;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

use crate::assignors::Assignor;
use crate::bulk::lines::Options;
use crate::error::{ErrorKind, GroupError};

/// Makes the exception of `errors.py` for an error.
fn raise(py: Python<'_>, error: &GroupError) -> PyErr {
    let class = match error.kind {
        ErrorKind::BadField => "GroupError",
        ErrorKind::NotAffected => "NotAffected",
        ErrorKind::NoMembersLeft => "NoMembersLeft",
        ErrorKind::Throws => "AssignorThrows",
        ErrorKind::NeverEnds => "NeverEnds",
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

/// Reads a list entry by entry. PyO3's own `Vec` first reserves as much memory as `__len__` says,
/// and an object may say anything.
fn listed<'py, T: FromPyObjectOwned<'py>>(given: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("a str is not a list"));
    }
    let mut entries = Vec::new();
    for entry in given.cast::<PySequence>()?.try_iter()? {
        entries.push(entry?.extract().map_err(Into::into)?);
    }
    Ok(entries)
}

fn listed_or_none<'py, T: FromPyObjectOwned<'py>>(
    given: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<T>>> {
    (!given.is_none()).then(|| listed(given)).transpose()
}

fn by_name(py: Python<'_>, name: &str) -> PyResult<Assignor> {
    Assignor::by_name(name).map_err(|error| raise(py, &error))
}

fn options(
    py: Python<'_>,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
) -> PyResult<Options> {
    Ok(Options {
        assignor: assignor.map(|name| by_name(py, name)).transpose()?,
        max_partitions,
        threads,
    })
}

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    /// Removes PyO3's list of all names, so that the stub need not repeat that list.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.delattr("__all__")
    }

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::assign::{Anomaly, Columns, Partitions, assign};
    #[pymodule_export]
    use super::bulk::{
        ArrowBatch, ResultLine, TopicInventory, assign_batch, assign_lines, assign_long_line,
        commits_from_records, compare_batch, groups_from_records, owners_batch, plan_batch,
    };
    #[pymodule_export]
    use super::connect::{connect_eager, connect_incremental};
    #[pymodule_export]
    use super::contract::read_line;
    #[pymodule_export]
    use super::field_types::FieldTypes;
    #[pymodule_export]
    use super::group::{Interned, intern};
    #[pymodule_export]
    use super::history::{CommitTimes, PartitionLog};
    #[pymodule_export]
    use super::partitions::{owned_partitions, topic_partitions};
    #[pymodule_export]
    use super::plan::{
        Delta, Ends, Newcomer, Plan, PlanRound, PlanStep, Unavailable, plan, sample,
    };
    #[pymodule_export]
    use super::possible::{Level, Possible, balance_curve, best_possible};
    #[pymodule_export]
    use super::streams::assign_application;
    #[pymodule_export]
    use super::wire::{
        DecodedAssignment, DecodedSubscription, DecodedUserData, decode_assignment,
        decode_cooperative_user_data, decode_group, decode_sticky_user_data, decode_subscription,
        encode_assignment, encode_sticky_user_data, encode_subscription, xxh3,
    };
}
