// SPDX-License-Identifier: Apache-2.0
//! Any bytes decode as user data of both sticky assignors, without a panic. If StickyAssignor's
//! data can be encoded again, they then decode to equal data.

#![no_main]

#[path = "../named.rs"]
mod named;

use _core::wire::{decode_cooperative_user_data, decode_sticky_user_data, encode_sticky_user_data};
use libfuzzer_sys::fuzz_target;
use named::named;

fuzz_target!(|data: &[u8]| {
    decode_cooperative_user_data(data);
    let (partitions, generation_id) = decode_sticky_user_data(data);
    let mut before = named(partitions);
    // The decoder replaces bytes that are not UTF-8. This makes a name longer, perhaps too long to
    // encode.
    let Ok(bytes) = encode_sticky_user_data(&before, generation_id.unwrap_or(-1)) else {
        return;
    };
    let (again, same_generation) = decode_sticky_user_data(&bytes);
    assert_eq!(same_generation, Some(generation_id.unwrap_or(-1)));
    let mut after = named(again);
    before.sort();
    after.sort();
    assert_eq!(before, after);
});
