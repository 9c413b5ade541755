// SPDX-License-Identifier: Apache-2.0
//! The compiled module `kafka_rebalance._core`: the only module that uses PyO3.

mod arguments;
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

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    /// Removes PyO3's list of all names, so that the stub need not repeat it.
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
    use super::contract::{read_fields, read_line};
    #[pymodule_export]
    use super::field_types::FieldTypes;
    #[pymodule_export]
    use super::group::{Interned, intern};
    #[pymodule_export]
    use super::history::{CommitTimes, PartitionLog, PartitionLogs, commits_of};
    #[pymodule_export]
    use super::partitions::{owned_partitions, topic_partitions};
    #[pymodule_export]
    use super::plan::{
        Delta, Ends, Newcomer, Plan, PlanRound, PlanStep, Unavailable, plan, play_alone, sample,
        uuid5,
    };
    #[pymodule_export]
    use super::possible::{Level, Possible, balance_curve, best_possible};
    #[pymodule_export]
    use super::streams::assign_application;
    #[pymodule_export]
    use super::wire::{
        decode_assignment, decode_cooperative_user_data, decode_group, decode_sticky_user_data,
        decode_subscription, encode_assignment, encode_sticky_user_data, encode_subscription, xxh3,
    };
}
