//! kafka-rebalance: what Apache Kafka's assignors compute, partition for partition.
//!
//! The readable twins of the algorithms are in `python/kafka_rebalance`, under the same names.
//! Only `python` knows PyO3; the rest builds and tests without Python.

pub mod assignors;
pub mod batch;
pub mod changes;
pub mod contract;
pub mod error;
pub mod group;
pub mod hash_table;
pub mod interrupt;
pub mod java_text;
pub mod lines;
mod lists;
pub mod order;
pub mod ownership;
pub mod plans;
pub mod possible;
#[cfg(feature = "python")]
mod python;
pub mod wire;
