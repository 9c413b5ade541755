// SPDX-License-Identifier: Apache-2.0
//! Tests our versions of Java's order of names, hash tables and decoding of text.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use _core::java::hash_table::HashTable;
use _core::java::order::{compare_names, name_ranks, string_hash, to_java_hash_order};
use _core::java::text::java_text;

#[test]
fn names_compare_by_utf16_unit() {
    let names = [
        "",
        "a",
        "ab",
        "\u{d7ff}",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
        "\u{10ffff}x",
    ];
    for a in names {
        for b in names {
            let units = a.encode_utf16().cmp(b.encode_utf16());
            assert_eq!(compare_names(a, b), units, "{a:?} {b:?}");
        }
    }
}

#[test]
fn ranks_are_the_order_of_all_pairs() {
    let letters = [
        "",
        "\0",
        "a",
        "b",
        "\u{7f}",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
    ];
    let tails = letters
        .iter()
        .flat_map(|a| letters.map(|b| format!("{a}{b}")));
    let tails: BTreeSet<String> = tails.collect();
    for start in ["", "consumer-", "\u{10ffff}", "long-enough-"] {
        for middle in ["", "seven..", "eight..."] {
            let names: Vec<String> = tails
                .iter()
                .map(|t| format!("{start}{middle}{t}"))
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let smaller = |a: &&str| names.iter().filter(|b| utf16(b) < utf16(a)).count() as u32;
            assert_eq!(
                name_ranks(&names),
                names.iter().map(smaller).collect::<Vec<_>>()
            );
        }
    }
}

fn utf16(name: &str) -> Vec<u16> {
    name.encode_utf16().collect()
}

/// While each slot of the table is a chain (no tree), `to_java_hash_order` only sorts by slot.
#[test]
fn chains_and_table_agree() {
    let mut seed = 1u64;
    for size in 0..400 {
        let names: Vec<String> = (0..size)
            .map(|i| {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                format!("consumer-{}-{i}", seed >> 40)
            })
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut table = HashTable::default();
        for (i, name) in names.iter().enumerate() {
            table.put(i as u32, string_hash(name), &|_, _| Ordering::Equal);
        }
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        to_java_hash_order(&mut order, |&i| names[i as usize]);
        assert_eq!(order, table.keys());
    }
}

#[test]
fn malformed_sequences_as_javas_decoder_counts_them() {
    // (bytes, number of U+FFFD in Java's `new String(bytes, UTF_8)`, its other characters).
    // The oracle tests in `tests/test_wire.py` compare our decoder with Java's on random bytes.
    let cases: &[(&[u8], usize, &str)] = &[
        (b"plain \xc3\xa9", 0, "plain \u{e9}"),
        (b"\xff", 1, ""),
        (b"\xc0\xaf", 2, ""),
        (b"\xc3", 1, ""),
        (b"\xc3a", 1, "a"),
        (b"\xe4\xb8", 1, ""),
        (b"\xe4\xb8a", 1, "a"),
        (b"\xe0\x80\x80", 3, ""),
        (b"\xed\xa0\x80", 1, ""),
        (b"\xed\xa0", 1, ""),
        (b"\xed\xa0a", 1, "a"),
        (b"\xed\xa0\x80\xed\xb0\x80", 2, ""),
        (b"\xf0\x9f\x98", 1, ""),
        (b"\xf0\x80\x80\x80", 4, ""),
        (b"\xf4\x90\x80\x80", 4, ""),
        (b"\xf5\x80\x80\x80", 4, ""),
    ];
    for (bytes, replaced, rest) in cases {
        let text = java_text(bytes);
        assert_eq!(text.matches('\u{fffd}').count(), *replaced, "{bytes:x?}");
        assert_eq!(text.replace('\u{fffd}', ""), *rest, "{bytes:x?}");
    }
}
