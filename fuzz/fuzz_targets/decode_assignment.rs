// SPDX-License-Identifier: Apache-2.0
//! Any bytes are an assignment or an error. An assignment can be encoded and decodes to equal data.

#![no_main]

use _core::wire::{decode_assignment, encode_assignment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = decode_assignment(data) else {
        return;
    };
    let bytes = encode_assignment(&read).expect("what was read can be written");
    let again = decode_assignment(&bytes).expect("what was written can be read");
    // The encoder groups partitions by topic, so the order may differ.
    let (mut before, mut after) = (read.partitions.clone(), again.partitions.clone());
    before.sort();
    after.sort();
    assert_eq!(before, after);
    assert_eq!(
        (again.version, &again.user_data),
        (read.version, &read.user_data)
    );
    assert_eq!(encode_assignment(&again), Ok(bytes));
});
