// SPDX-License-Identifier: Apache-2.0
//! kafka-rebalance: computes what Apache Kafka's assignors compute, partition for partition.
//!
//! Each algorithm has a twin in plain Python: a file of the same path in `python/kafka_rebalance`.
//! Only the module `python` uses PyO3; all others can be built and tested without Python.

pub mod assignors;
pub mod bulk;
pub mod error;
pub mod group;
pub mod interrupt;
pub mod java;
pub mod json;
pub mod plans;
#[cfg(feature = "python")]
mod python;
pub mod switching;
pub mod wire;

/// Replaces the system's allocator, which returns large buffers to the kernel after each batch, so
/// that the next batch waits for new pages. Without the feature `python`, the crate is part of a Rust
/// program, which may have an allocator: that of `benches/core_times.rs` counts the allocated bytes.
#[cfg(all(feature = "mimalloc", feature = "python"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns to the kernel what has been freed; the allocator would keep it for a second.
#[cfg(all(feature = "mimalloc", feature = "python"))]
pub(crate) fn return_freed_memory() {
    unsafe extern "C" {
        /// Part of mimalloc's documented interface, which its crate does not export.
        fn mi_collect(force: bool);
    }
    // SAFETY: any thread may call it at any time; it only handles memory that is free.
    unsafe { mi_collect(true) }
}

#[cfg(not(all(feature = "mimalloc", feature = "python")))]
pub(crate) fn return_freed_memory() {}
