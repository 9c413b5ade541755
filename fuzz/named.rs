// SPDX-License-Identifier: Apache-2.0
//! Partitions that were decoded, in the form that the encoders take.

use std::sync::Arc;

use _core::wire::{Entries, NamedPartition};

pub fn named(entries: Entries) -> Vec<NamedPartition> {
    let of_entry = |entry: _core::wire::Entry| {
        let topic: Arc<str> = entry.topic().into();
        let partitions: Vec<i32> = entry.partitions().collect();
        partitions.into_iter().map(move |p| (topic.clone(), p))
    };
    entries.iter().flat_map(of_entry).collect()
}
