// SPDX-License-Identifier: Apache-2.0
//! Compares the hash table's orders with those of a real JVM (`vectors/hash_orders.jsonl`).

use std::cmp::Ordering;
use std::collections::HashMap;

use _core::java::hash_table::HashTable;
use _core::java::order::{
    compare_names, java_grouping_order, partition_hash, string_hash, to_java_hash_order,
};
use serde_json::Value;

const FROZEN: &str = include_str!("vectors/hash_orders.jsonl");

struct Case {
    id: String,
    /// (operation, index of a name): `+` put, `?` computeIfAbsent, `-` remove; a case with `=` is a
    /// `new HashSet(collection)` of its names.
    operations: Vec<(char, u32)>,
    /// Names without repeats, in order of first appearance.
    names: Vec<String>,
    order: Vec<String>,
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().expect("a list").iter();
    texts
        .map(|text| text.as_str().expect("a string").to_owned())
        .collect()
}

fn cases() -> Vec<Case> {
    let lines = FROZEN.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("a case is JSON");
        let mut ids = HashMap::new();
        let mut names = Vec::new();
        let operations = texts(&line["operations"]);
        let operations = operations.iter().map(|operation| {
            let (kind, name) = operation.split_at(1);
            let id = *ids.entry(name.to_owned()).or_insert_with(|| {
                names.push(name.to_owned());
                names.len() as u32 - 1
            });
            (kind.chars().next().expect("one character"), id)
        });
        Case {
            operations: operations.collect(),
            id: line["id"].as_str().expect("an id").to_owned(),
            order: texts(&line["order"]),
            names,
        }
    });
    lines.collect()
}

impl Case {
    fn hash(&self, name: &str) -> u32 {
        if !self.id.ends_with("partitions") {
            return string_hash(name);
        }
        let (topic, partition) = name.rsplit_once('-').expect("topic-partition");
        partition_hash(string_hash(topic), partition.parse().expect("a number"))
    }

    fn is_only(&self, kind: char) -> bool {
        !self.id.ends_with("partitions") && self.operations.iter().all(|&(k, _)| k == kind)
    }

    fn named(&self, order: &[u32]) -> Vec<&str> {
        let names = order.iter().map(|&i| self.names[i as usize].as_str());
        names.collect()
    }

    fn borrowed(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

#[test]
fn the_table_is_the_jvms() {
    let mut checked = 0;
    for case in cases().iter().filter(|case| !case.is_only('=')) {
        let tie = |a: u32, b: u32| -> Ordering {
            compare_names(&case.names[a as usize], &case.names[b as usize])
        };
        let hashes: Vec<u32> = case.names.iter().map(|name| case.hash(name)).collect();
        let mut table = HashTable::default();
        let mut inside = vec![false; hashes.len()];
        for &(kind, key) in &case.operations {
            let there = std::mem::replace(&mut inside[key as usize], kind != '-');
            match kind {
                '-' => table.remove(key),
                '?' => table.compute_if_absent(key, hashes[key as usize], &tie),
                // Our `put` accepts only new keys; Java's `put` of a present key keeps the order.
                _ if there => {}
                _ => table.put(key, hashes[key as usize], &tie),
            }
        }
        assert_eq!(case.named(&table.keys()), case.order, "{}", case.id);
        checked += 1;
    }
    assert!(checked > 300, "{checked} cases");
}

#[test]
fn put_order_is_the_jvms() {
    let mut checked = 0;
    for case in cases().iter().filter(|case| case.is_only('+')) {
        let names = case.borrowed();
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        to_java_hash_order(&mut order, |&i| names[i as usize]);
        assert_eq!(case.named(&order), case.order, "{}", case.id);
        checked += 1;
    }
    assert!(checked > 50, "{checked} cases");
}

#[test]
fn grouping_order_is_the_jvms() {
    let mut checked = 0;
    for case in cases().iter().filter(|case| case.is_only('?')) {
        let entries = case.operations.iter().map(|&(_, key)| key);
        let order = java_grouping_order(&case.borrowed(), entries);
        assert_eq!(case.named(&order), case.order, "{}", case.id);
        checked += 1;
    }
    assert!(checked > 30, "{checked} cases");
}

/// Two tables with keys in equal order can have keys in different orders after the same change.
#[test]
fn tables_of_one_order_may_differ_in_their_trees() {
    let tie = |_: u32, _: u32| Ordering::Equal;
    let table = |again: &[u32]| {
        let mut table = HashTable::with_slots(64);
        for key in [512, 384, 448, 0, 64, 192, 576, 320, 256, 128] {
            table.put(key, key, &tie);
        }
        for &key in again {
            table.remove(key);
            table.put(key, key, &tie);
        }
        table
    };
    let mut once = table(&[192, 384, 384, 192, 320]);
    let mut more = table(&[192, 384, 384, 192, 320, 192]);
    assert_eq!(once.keys(), more.keys());
    assert_ne!(once.state(), more.state());
    once.remove(384);
    more.remove(384);
    assert_ne!(once.keys(), more.keys());
}
