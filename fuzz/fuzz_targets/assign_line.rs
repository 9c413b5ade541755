// SPDX-License-Identifier: Apache-2.0
//! The answer to every line is a result line or an error line, never a panic. It is JSON and has
//! the group's id.

#![no_main]

use _core::assignors::Assignor;
use _core::group::contract;
use _core::bulk::lines::{Options, assign_lines};
use libfuzzer_sys::fuzz_target;

const MAX_PARTITIONS: u64 = 200;

fuzz_target!(|line: &[u8]| {
    // The line's own assignor runs first, then each of `names`, because most generated lines name
    // no assignor.
    let names = ["range", "roundrobin", "sticky", "cooperative-sticky"];
    let forced = names.map(|name| Assignor::by_name(name).ok());
    for assignor in std::iter::once(None).chain(forced) {
        let options = Options {
            assignor,
            max_partitions: MAX_PARTITIONS,
            threads: 1,
        };
        let answers = assign_lines(&[line], 1, options);
        let answer = contract::parse(&answers[0].line).expect("every answer is JSON");
        assert_eq!(answers[0].is_error, answer.get("error").is_some());
        if let Ok(asked) = contract::parse(line) {
            assert_eq!(contract::group_id(&answer), contract::group_id(&asked));
        }
    }
});
