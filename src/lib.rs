// SPDX-License-Identifier: Apache-2.0
//! kafka-rebalance: computes the answers of Apache Kafka's assignors, partition by partition.
//!
//! Each algorithm has a twin in plain Python: a file at the path of the Rust file in
//! `python/kafka_rebalance`. Only the module `python` uses PyO3; all others can be built and tested
//! without Python. Modules are listed here and in `assignors.rs`; one with braces is a folder that
//! has no file of its own.

pub mod assignors;
pub mod bulk {
    pub mod batch;
    pub mod columns;
    pub mod commits;
    pub mod imported;
    pub mod lines;
    mod nested;
    pub mod records {
        pub mod columns;
        pub mod group;
        pub mod spec;
    }
}
pub mod error;
pub mod group {
    pub mod builder;
    pub mod contract;
    pub mod field_types;
    pub mod group_fields;
    pub(crate) mod lists;
    pub mod model;
    pub mod ownership;
    pub mod spec;
    pub mod streams;
}
pub mod interrupt;
pub mod java {
    pub mod hash_map;
    pub mod hash_table;
    pub mod order;
    pub mod priority_queue;
    mod red_black_tree;
    pub mod slots;
    pub mod text;
}
pub mod json;
pub mod plans {
    pub mod changes {
        mod assignor;
        pub mod bounces;
        pub mod change;
        pub mod draft;
        pub mod edits;
        pub mod made_up;
        pub mod members;
        mod text;
        mod topics;
    }
    pub mod clients;
    pub mod figures;
    pub mod possible {
        pub mod optimum;
    }
    pub mod rebalance_plan;
    pub mod rounds;
    pub mod samples;
}
#[cfg(feature = "python")]
mod python;
pub mod switching {
    pub mod comparison;
}
pub mod wire;

/// Replaces the system's allocator, which returns large buffers to the kernel after each batch, so
/// that the next batch waits for new pages. A Rust program that uses the crate without the feature
/// `python` has its own allocator; the allocator of `benches/core_times.rs` counts the allocated
/// bytes.
#[cfg(all(feature = "mimalloc", feature = "python"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory to the kernel at once, instead of a second later.
#[cfg(all(feature = "mimalloc", feature = "python"))]
pub(crate) fn return_freed_memory() {
    unsafe extern "C" {
        /// Part of mimalloc's documented interface, which its crate does not export.
        fn mi_collect(force: bool);
    }
    // SAFETY: any thread may call it at any time; it only handles freed memory.
    unsafe { mi_collect(true) }
}

#[cfg(not(all(feature = "mimalloc", feature = "python")))]
pub(crate) fn return_freed_memory() {}
