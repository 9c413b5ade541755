// SPDX-License-Identifier: Apache-2.0
//! Compares shortcuts of the core with what they stand for.

use std::cmp::Ordering;

use _core::assignors::classic::general::smallest::Smallest;
use _core::assignors::classic::movements::Moved;
use _core::group::builder::same_name;
use _core::java::hash_table::HashTable;
use _core::java::order::partition_hash;

#[test]
fn names_that_differ_in_one_byte_are_not_equal() {
    for length in 0..40 {
        let name = "x".repeat(length);
        assert!(same_name(&name, &name.clone()));
        assert!(!same_name(&name, &format!("{name}x")));
        for at in 0..length {
            let mut other = name.clone().into_bytes();
            other[at] = b'y';
            let other = String::from_utf8(other).expect("ASCII");
            assert!(!same_name(&name, &other), "{name} {other}");
        }
    }
}

#[test]
fn the_first_of_the_smallest_wins() {
    let mut seed = 1u32;
    for members in 0..40usize {
        let mut sizes: Vec<Option<u32>> = (0..members)
            .map(|m| (m % 5 != 3).then_some(m as u32 % 3))
            .collect();
        let mut smallest = Smallest::default();
        smallest.fill(sizes.iter().copied());
        for _ in 0..200 {
            let places = sizes.iter().enumerate();
            let expected = places.filter_map(|(place, size)| Some(((*size)?, place)));
            assert_eq!(smallest.first(), expected.min());
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let place = (seed >> 8) as usize % members.max(1);
            if let Some(Some(size)) = sizes.get_mut(place) {
                *size = seed >> 29;
                smallest.set(place, *size);
            }
        }
    }
}

#[test]
fn few_are_in_the_order_of_a_table() {
    let mut seed = 1u32;
    for _ in 0..2000 {
        let (mut moved, mut table) = (Moved::default(), HashTable::default());
        let mut all: Vec<u32> = Vec::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let partition = seed >> 26;
            if let Some(at) = all.iter().position(|&other| other == partition) {
                all.remove(at);
                moved.remove(partition);
                table.remove(partition);
            } else {
                all.push(partition);
                moved.put(partition, 7);
                table.put(partition, partition_hash(7, partition), &|_, _| {
                    Ordering::Equal
                });
            }
            assert_eq!(moved.first(7), table.first());
            assert_eq!(moved.state(7), table.state());
            assert_eq!(moved.is_empty(), table.is_empty());
        }
    }
}
