// SPDX-License-Identifier: Apache-2.0
//! Mirror of `java/hash_map.py`: `java.util.HashMap` with its values, and `HashSet<Integer>`. Keys
//! are numbers. The caller passes the hash of each key, and a function that orders keys with equal
//! hashes (`Tie`).

use rustc_hash::FxHashMap;

use super::hash_table::HashTable;
use super::red_black_tree::Tie;
use super::slots::copied_slots;

/// Computes Kafka's `Uuid.hashCode`.
pub fn uuid_hash((most, least): (i64, i64)) -> u32 {
    let bits = (most ^ least) as u64;
    (bits >> 32) as u32 ^ bits as u32
}

/// Returns the number of slots of `new HashMap(capacity)`.
pub fn slots_for(capacity: usize) -> usize {
    capacity.max(1).next_power_of_two()
}

/// Returns the capacity that Kafka's classes choose for `size` keys: `(int) (size / 0.75f + 1)`.
pub fn room_for(size: usize) -> usize {
    (size as f64 / 0.75 + 1.0) as usize
}

/// A `java.util.HashMap`: a table for the order of its keys, and the value of each key.
pub struct HashMap<V> {
    order: HashTable,
    values: FxHashMap<u32, V>,
}

impl<V> Default for HashMap<V> {
    fn default() -> Self {
        Self::with_slots(super::hash_table::DEFAULT_SLOTS)
    }
}

impl<V> HashMap<V> {
    pub fn with_slots(slots: usize) -> Self {
        Self {
            order: HashTable::with_slots(slots),
            values: FxHashMap::default(),
        }
    }

    pub fn put(&mut self, key: u32, hash: u32, tie: Tie, value: V) {
        if self.values.insert(key, value).is_none() {
            self.order.put(key, hash, tie);
        }
    }

    /// Returns the value of a key; a new key gets the value that `make` returns.
    pub fn compute_if_absent(
        &mut self,
        key: u32,
        hash: u32,
        tie: Tie,
        make: impl FnOnce() -> V,
    ) -> &mut V {
        self.order.compute_if_absent(key, hash, tie);
        self.values.entry(key).or_insert_with(make)
    }

    pub fn remove(&mut self, key: u32) {
        if self.values.remove(&key).is_some() {
            self.order.remove(key);
        }
    }

    pub fn get(&self, key: u32) -> Option<&V> {
        self.values.get(&key)
    }

    pub fn get_mut(&mut self, key: u32) -> Option<&mut V> {
        self.values.get_mut(&key)
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn keys(&self) -> Vec<u32> {
        self.order.keys()
    }

    pub fn items(&self) -> impl Iterator<Item = (u32, &V)> {
        self.keys().into_iter().map(|key| (key, &self.values[&key]))
    }
}

/// A `HashSet<Integer>`.
pub type Integers = HashMap<()>;

impl Integers {
    /// Makes the set that Java's `new HashSet(collection)` makes.
    pub fn copied(numbers: &[u32]) -> Self {
        let mut new = Self::with_slots(copied_slots(numbers.len()));
        for &number in numbers {
            new.add(number);
        }
        new
    }

    pub fn add(&mut self, number: u32) {
        self.put(number, number, &|a, b| a.cmp(&b), ());
    }
}
