// SPDX-License-Identifier: Apache-2.0
//! Any bytes decode to a subscription or an error. If the subscription can be encoded again, it
//! then decodes to equal data.

#![no_main]

#[path = "../named.rs"]
mod named;

use _core::wire::{Subscription, decode_subscription, encode_subscription};
use libfuzzer_sys::fuzz_target;
use named::named;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = decode_subscription(data) else {
        return;
    };
    let mut sent = Subscription {
        version: read.version,
        topics: read.topics,
        user_data: read.user_data,
        owned_partitions: named(read.owned_partitions),
        generation_id: read.generation_id,
        rack_id: read.rack_id,
    };
    // The decoder replaces bytes that are not UTF-8. This can make a name too long to encode.
    let Ok(bytes) = encode_subscription(&sent) else {
        return;
    };
    let again = decode_subscription(&bytes).expect("what was written can be read");
    // The encoder sorts topics and owned partitions, and makes one entry for each topic.
    sent.topics
        .sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    sent.owned_partitions.sort_by(|a, b| {
        a.0.encode_utf16()
            .cmp(b.0.encode_utf16())
            .then(a.1.cmp(&b.1))
    });
    assert_eq!(named(again.owned_partitions), sent.owned_partitions);
    assert_eq!(
        (again.version, again.topics, again.user_data),
        (sent.version, sent.topics, sent.user_data)
    );
    assert_eq!(
        (again.generation_id, again.rack_id),
        (sent.generation_id, sent.rack_id)
    );
});
