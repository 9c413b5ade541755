// SPDX-License-Identifier: Apache-2.0
//! Any bytes decode to an assignment or an error. If the assignment can be encoded again, it then
//! decodes to equal data.

#![no_main]

#[path = "../named.rs"]
mod named;

use _core::wire::{Assigned, decode_assignment, encode_assignment};
use libfuzzer_sys::fuzz_target;
use named::named;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = decode_assignment(data) else {
        return;
    };
    let given = Assigned {
        version: read.version,
        partitions: named(read.partitions),
        user_data: read.user_data,
    };
    // The decoder replaces bytes that are not UTF-8. This makes a name longer, perhaps too long to
    // encode.
    let Ok(bytes) = encode_assignment(&given) else {
        return;
    };
    let again = decode_assignment(&bytes).expect("what was written can be read");
    // The encoder groups partitions by topic, so the order may differ.
    let (mut before, mut after) = (given.partitions.clone(), named(again.partitions));
    before.sort();
    after.sort();
    assert_eq!(before, after);
    assert_eq!(
        (again.version, &again.user_data),
        (given.version, &given.user_data)
    );
});
