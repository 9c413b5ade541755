// SPDX-License-Identifier: Apache-2.0
//! kafka-rebalance: what Apache Kafka's assignors compute, partition for partition.
//!
//! The readable twins of the algorithms are in `python/kafka_rebalance`, under the same names.
//! Only `python` knows PyO3; the rest builds and tests without Python.

pub mod assignors;
pub mod bulk;
pub mod error;
pub mod group;
pub mod interrupt;
pub mod java;
pub mod plans;
#[cfg(feature = "python")]
mod python;
pub mod wire;
