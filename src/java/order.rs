// SPDX-License-Identifier: Apache-2.0
//! Mirror of `java/order.py`: the order of names, and the iteration order of Java's hash maps.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;

use super::hash_table::{DEFAULT_SLOTS, HashTable};
use super::red_black_tree::Tie;
use super::slots::{MOST_AFTER_PUT, copied_slots, slot_of, slots_after_computes, slots_after_puts};

/// Compares as Java's `String.compareTo` does: by UTF-16 unit, then by length.
///
/// UTF-8 bytes sort as UTF-16 units do, with one exception: characters beyond U+FFFF (lead
/// bytes F0 to F4) are surrogate pairs in UTF-16, which sort before U+E000..U+FFFF (lead bytes EE
/// and EF).
pub fn compare_names(a: &str, b: &str) -> Ordering {
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        Some((x, y)) => place(x).cmp(&place(y)),
        None => a.len().cmp(&b.len()),
    }
}

fn place(byte: u8) -> u8 {
    match byte {
        0xEE..=0xEF => byte + 5,
        0xF0..=0xF4 => byte - 2,
        _ => byte,
    }
}

/// Computes Java's `String.hashCode`.
pub fn string_hash(name: &str) -> u32 {
    let step = |h: u32, unit: u16| h.wrapping_mul(31).wrapping_add(u32::from(unit));
    if name.is_ascii() {
        // Four steps at once: the multiplications do not wait for each other.
        let (fours, rest) = name.as_bytes().as_chunks::<4>();
        let four = |h: u32, &bytes: &[u8; 4]| {
            let [a, b, c, d] = bytes.map(u32::from);
            let sum = a * 31u32.pow(3) + b * 31u32.pow(2) + c * 31 + d;
            h.wrapping_mul(31u32.pow(4)).wrapping_add(sum)
        };
        let h = fours.iter().fold(0, four);
        rest.iter().copied().map(u16::from).fold(h, step)
    } else {
        name.encode_utf16().fold(0, step)
    }
}

/// Computes Kafka's `TopicPartition.hashCode` from the topic's hash and the partition.
pub fn partition_hash(topic_hash: u32, partition: u32) -> u32 {
    31u32
        .wrapping_mul(31u32.wrapping_add(partition))
        .wrapping_add(topic_hash)
}

/// Returns the iteration order of a default `HashMap` to which names with these hashes are added
/// one after another, as indices of the names.
pub fn hash_order<'n>(hashes: &[u32], name: impl Fn(u32) -> &'n str) -> Vec<u32> {
    put_order(hashes, &|a, b| compare_names(name(a), name(b)))
}

/// Returns the iteration order of a default `HashMap` for keys of any kind, by their hashes. `tie`
/// orders keys with equal hashes.
fn put_order(hashes: &[u32], tie: Tie) -> Vec<u32> {
    if let Some(slots) = slots_after_puts(hashes, |&hash| hash, DEFAULT_SLOTS) {
        return by_slot(0..hashes.len() as u32, hashes, slots);
    }
    let mut table = HashTable::default();
    for (i, &hash) in (0..).zip(hashes) {
        table.put(i, hash, tie);
    }
    table.keys()
}

/// Sorts distinct keys into the iteration order of a default `HashMap` to which they are added one
/// after another; `tie` orders keys with equal hashes.
pub fn sort_as_put<K: Copy>(
    keys: &mut [K],
    hash: impl Fn(&K) -> u32,
    tie: impl Fn(&K, &K) -> Ordering,
) {
    // A few keys neither fill a table of 16 slots nor turn one of its slots into a tree.
    if keys.len() <= MOST_AFTER_PUT as usize {
        keys.sort_by_key(|key| slot_of(hash(key), DEFAULT_SLOTS));
        return;
    }
    let before = keys.to_vec();
    let hashes: Vec<u32> = before.iter().map(hash).collect();
    let order = put_order(&hashes, &|a, b| {
        tie(&before[a as usize], &before[b as usize])
    });
    for (key, i) in keys.iter_mut().zip(order) {
        *key = before[i as usize];
    }
}

/// Sorts entries into the iteration order of a default `HashMap` to which their names are added one
/// after another.
pub fn to_java_hash_order<'n, K: Copy>(keys: &mut [K], name: impl Fn(&K) -> &'n str) {
    let hash = |key: &K| string_hash(name(key));
    sort_as_put(keys, hash, |a, b| compare_names(name(a), name(b)));
}

/// Appends the keys of a `HashSet` of `slots` slots, in iteration order, to `list`. The set is
/// filled from `collection`, which may repeat a key, and never gets full.
pub fn extend_by_set(
    list: &mut Vec<u32>,
    slots: usize,
    collection: impl Iterator<Item = u32> + Clone,
    hash: impl Fn(u32) -> u32,
    tie: Tie,
) {
    let start = list.len();
    list.extend(collection.clone());
    if sort_by_slot(&mut list[start..], slots, |&key| hash(key)) {
        return;
    }
    list.truncate(start);
    let (mut table, mut seen) = (HashTable::with_slots(slots), FxHashSet::default());
    for key in collection {
        if seen.insert(key) {
            table.put(key, hash(key), tie);
        }
    }
    list.extend(table.keys());
}

/// Sorts keys, given in the order in which they are added, into the iteration order of a table of
/// `slots` slots, which never gets full. Returns false if the order may be wrong: a key repeats, or
/// a slot has so many keys that Java doubles the table or turns the slot into a tree.
///
/// A slot of a table without trees holds its keys in the order in which they were added. The sorted
/// list has this order, too, because the sort is stable.
pub fn sort_by_slot<K: Copy + PartialEq>(
    keys: &mut [K],
    slots: usize,
    hash: impl Fn(&K) -> u32,
) -> bool {
    let slot = |key: &K| slot_of(hash(key), slots);
    sort_stably_by_slot(keys, slots, &hash);
    let mut of_slots = keys.chunk_by(|a, b| slot(a) == slot(b));
    of_slots.all(|keys| {
        let is_new = |i: usize| !keys[..i].contains(&keys[i]);
        keys.len() <= MOST_AFTER_PUT as usize && (1..keys.len()).all(is_new)
    })
}

/// Up to this many keys, a sort by comparison is faster than a counting sort.
const MOST_COMPARED: usize = 64;

/// Sorts keys by their slot; keys of one slot keep their order.
pub fn sort_stably_by_slot<K: Copy>(keys: &mut [K], slots: usize, hash: impl Fn(&K) -> u32) {
    if keys.len() <= MOST_COMPARED {
        keys.sort_by_key(|key| slot_of(hash(key), slots));
        return;
    }
    let before = keys.to_vec();
    let hashes: Vec<u32> = before.iter().map(hash).collect();
    let order = by_slot(0..keys.len() as u32, &hashes, slots);
    for (key, i) in keys.iter_mut().zip(order) {
        *key = before[i as usize];
    }
}

/// Returns the iteration order of a default `HashMap` that groups entries by name with
/// `computeIfAbsent`. `names` are distinct, in order of first appearance. `entries` and the result
/// are indices of `names`.
pub fn java_grouping_order(names: &[&str], entries: impl Iterator<Item = u32>) -> Vec<u32> {
    let hashes: Vec<u32> = names.iter().map(|name| string_hash(name)).collect();
    let entries: Vec<u32> = entries.collect();
    grouping_order(&hashes, &entries, |i| names[i as usize])
}

pub fn grouping_order<'n>(
    hashes: &[u32],
    entries: &[u32],
    name: impl Fn(u32) -> &'n str,
) -> Vec<u32> {
    let Some((last, before)) = entries.split_last() else {
        return Vec::new();
    };
    // A full table doubles before an insertion, so the last entry's key, if new, does not count.
    let seen = hashes.len() - usize::from(!before.contains(last));
    if let Some(slots) = slots_after_computes(hashes, |&hash| hash, DEFAULT_SLOTS, seen) {
        return by_slot((0..hashes.len() as u32).rev(), hashes, slots);
    }
    let mut table = HashTable::default();
    for &i in entries {
        let tie = |a: u32, b: u32| compare_names(name(a), name(b));
        table.compute_if_absent(i, hashes[i as usize], &tie);
    }
    table.keys()
}

/// Returns the iteration order of `new HashSet(collection)` for distinct keys, as indices of the
/// keys. `hashes` contains the keys' hashes; `tie` orders keys with equal hashes.
pub fn copied_hash_order(hashes: &[u32], tie: Tie) -> Vec<u32> {
    let (slots, keys) = (copied_slots(hashes.len()), 0..hashes.len() as u32);
    let mut order = Vec::with_capacity(hashes.len());
    extend_by_set(&mut order, slots, keys, |key| hashes[key as usize], tie);
    order
}

/// Returns `keys` sorted by slot; keys of one slot keep their order.
fn by_slot(keys: impl Iterator<Item = u32>, hashes: &[u32], slots: usize) -> Vec<u32> {
    // A counting sort: by slot, `next` holds the place of the slot's next key.
    let mut next = vec![0u32; slots + 1];
    for &hash in hashes {
        next[slot_of(hash, slots) + 1] += 1;
    }
    for slot in 1..slots {
        next[slot + 1] += next[slot];
    }
    let mut order = vec![0; hashes.len()];
    for key in keys {
        let place = &mut next[slot_of(hashes[key as usize], slots)];
        order[*place as usize] = key;
        *place += 1;
    }
    order
}

/// `ranks[i]` is the index of `names[i]` in the order of `String.compareTo`.
///
/// Most pairs of names are compared by one number: the 8 bytes after the start that all names have
/// in common (with zeros after the end of a name). Names with equal numbers are compared as
/// strings.
pub fn name_ranks(names: &[&str]) -> Vec<u32> {
    let common = common_start(names);
    let keys = names.iter().map(|name| key_of(&name.as_bytes()[common..]));
    let mut order: Vec<(u64, u32)> = keys.zip(0..).collect();
    order.sort_by_key(|&(key, _)| key);
    for equal in order.chunk_by_mut(|(x, _), (y, _)| x == y) {
        if equal.len() > 1 {
            equal.sort_by(|&(_, a), &(_, b)| compare_names(names[a as usize], names[b as usize]));
        }
    }
    let mut ranks = vec![0; names.len()];
    for (rank, &(_, i)) in order.iter().enumerate() {
        ranks[i as usize] = rank as u32;
    }
    ranks
}

/// Returns the first 8 bytes, filled up with zeros, as a number in the order of `compare_names`.
fn key_of(bytes: &[u8]) -> u64 {
    let first = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut first = [0; 8];
        first[..bytes.len()].copy_from_slice(bytes);
        first
    });
    let key = u64::from_be_bytes(first);
    if key & 0x8080_8080_8080_8080 == 0 {
        return key; // `place` leaves ASCII as it is
    }
    u64::from_be_bytes(first.map(place))
}

fn common_start(names: &[&str]) -> usize {
    let Some((first, others)) = names.split_first() else {
        return 0;
    };
    others.iter().fold(first.len(), |common, name| {
        if name.as_bytes().starts_with(&first.as_bytes()[..common]) {
            return common;
        }
        let pairs = first.bytes().zip(name.bytes()).take(common);
        pairs.take_while(|(x, y)| x == y).count()
    })
}

/// Returns the inverse of ranks: `order[rank]` is the index of the entry with this rank.
pub fn by_rank(ranks: &[u32]) -> Vec<u32> {
    let mut order = vec![0; ranks.len()];
    for (i, &rank) in ranks.iter().enumerate() {
        order[rank as usize] = i as u32;
    }
    order
}
