// SPDX-License-Identifier: Apache-2.0
//! Any bytes are a subscription or an error; a subscription can be encoded and decoded again.

#![no_main]

use _core::wire::{decode_subscription, encode_subscription};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut read) = decode_subscription(data) else {
        return;
    };
    // The encoder merges and sorts repeated topics.
    let bytes = encode_subscription(&read).expect("what was read can be written");
    read.topics
        .sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    read.owned_partitions.sort_by(|a, b| {
        a.0.encode_utf16()
            .cmp(b.0.encode_utf16())
            .then(a.1.cmp(&b.1))
    });
    assert_eq!(decode_subscription(&bytes).as_ref(), Ok(&read));
});
