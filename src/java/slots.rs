// SPDX-License-Identifier: Apache-2.0
//! The slots of Java's hash tables (of maps and sets): how many a table has, and whether a sort of
//! the keys by slot is in the order of the table.

use super::hash_table::DEFAULT_SLOTS;

/// The largest number of keys in a slot that is still a chain after `HashMap.put`.
pub const MOST_AFTER_PUT: u8 = 8;
/// The largest number of keys in a slot that is still a chain after `HashMap.computeIfAbsent`.
const MOST_AFTER_COMPUTE: u8 = 7;

/// Whether any slot has more than `most` of the keys.
fn is_crowded<K>(keys: &[K], hash: impl Fn(&K) -> u32, slots: usize, most: u8) -> bool {
    if keys.len() <= most as usize {
        return false;
    }
    let mut counts = vec![0u8; slots];
    keys.iter().any(|key| {
        let count = &mut counts[slot_of(hash(key), slots)];
        *count += 1;
        *count > most
    })
}

/// Returns the number of slots of `new HashSet(collection)`: at least 16, and enough that the table
/// never gets full.
pub fn copied_slots(size: usize) -> usize {
    ((size as f64 / 0.75) as usize + 1)
        .max(16)
        .next_power_of_two()
}

/// Returns the number of slots of a `HashMap` that begins with `slots`, after one `put` for each
/// key. None if a slot ever has so many keys that Java doubles the table early or makes the slot a
/// tree.
///
/// Keys in the order of their `put`, stably sorted by their final slot, are in the map's order.
pub fn slots_after_puts<K>(keys: &[K], hash: impl Fn(&K) -> u32, slots: usize) -> Option<usize> {
    final_slots(keys, hash, slots, keys.len(), MOST_AFTER_PUT)
}

/// Like `slots_after_puts`, but `computeIfAbsent` adds the keys. The first keys may be added by
/// `put` instead, if the map still has `slots` slots after them. The map has `checked` keys at the
/// last call of `computeIfAbsent`.
///
/// A key that `computeIfAbsent` adds comes before all earlier keys of its slot.
pub fn slots_after_computes<K>(
    keys: &[K],
    hash: impl Fn(&K) -> u32,
    slots: usize,
    checked: usize,
) -> Option<usize> {
    final_slots(keys, hash, slots, checked, MOST_AFTER_COMPUTE)
}

/// Returns the final number of slots; None if a slot ever has more than `most` keys, because Java
/// then doubles the table early or makes the slot a tree.
///
/// A table is full, and doubles, when it has more keys than three quarters of its slots. Doubling
/// keeps the order within a slot, so keys sorted by their final slot are in the table's order. The
/// table has `checked` keys when Java tests for the last time whether it is full.
fn final_slots<K>(
    keys: &[K],
    hash: impl Fn(&K) -> u32,
    mut slots: usize,
    checked: usize,
    most: u8,
) -> Option<usize> {
    loop {
        let full = 3 * slots / 4;
        // The key that makes the table full is added before the table doubles.
        let put = keys.len().min(full + 1);
        if is_crowded(&keys[..put], &hash, slots, most) {
            return None;
        }
        if checked <= full {
            return Some(slots);
        }
        slots *= 2;
    }
}

/// Returns where Java begins to iterate a `HashSet<Integer>` to which the numbers `first`, `first +
/// 1`, … were added in order, as an index into this row. The numbers before the index are iterated
/// last. None if the row reaches 2^16, because the slots of such numbers follow another rule.
///
/// A table has more slots than keys, also before it doubles, so no two numbers of a row share a
/// slot. Iteration begins at slot 0, which belongs to a multiple of the number of slots.
pub fn start_of_row(first: u32, length: usize) -> Option<usize> {
    if first as usize + length > 1 << 16 {
        return None; // `slot_of` mixes in the upper 16 bits
    }
    let mut slots = DEFAULT_SLOTS;
    while length > 3 * slots / 4 {
        slots *= 2;
    }
    let start = slots - first as usize % slots;
    Some(if start < length { start } else { 0 })
}

pub fn slot_of(hash: u32, slots: usize) -> usize {
    (hash ^ (hash >> 16)) as usize & (slots - 1)
}
