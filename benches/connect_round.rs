// SPDX-License-Identifier: Apache-2.0
//! Measures one round of Connect's incremental leader: 100 workers run 1,000 connectors and 10,000
//! tasks, and another worker joins. Prints the best and the median time of 200 runs, in
//! milliseconds, as JSON.
//!
//! `tools/bench_connect.py` runs this and the Java class on the same round, and prints the ratio.

use std::time::Instant;

use _core::assignors::connect::incremental::{self, ConnectSpec, Memory};
use _core::assignors::connect::work::{Names, Work, configured};

fn main() {
    let connectors: Vec<String> = (0..1000).map(|c| format!("connector-{c:04}")).collect();
    let ids = (0..101).map(|w| format!("connect-10.0.{}.{w}:8083-{w:032x}", w / 10));
    let ids: Vec<String> = ids.collect();
    let workers = Names::of(ids.iter().map(String::as_str));
    let names = Names::of(connectors.iter().map(String::as_str));
    let rank = |w: usize| workers.rank(&ids[w]);
    let spec = |running, generation_id| ConnectSpec {
        running,
        target: configured((0..1000).map(|connector| (connector, 10))),
        max_delay_ms: 300_000,
        generation_id,
        last_completed_generation_id: generation_id - 1,
    };
    let handle = |memory: &Memory, spec: &ConnectSpec, now_ms| {
        incremental::handle(memory, spec, now_ms, &names, &workers).expect("an answer")
    };
    let new = Memory {
        assigned: Work::default(),
        revoked: Work::default(),
        generation_id: -1,
        members: Vec::new(),
        candidates: Vec::new(),
        scheduled_rebalance_ms: 0,
        delay_ms: 0,
        revoked_in_previous: false,
        revoking_rounds: 0,
    };
    let nothing = (0..100).map(|w| (rank(w), Work::default())).collect();
    let (memory, answer) = handle(&new, &spec(nothing, 1), 1000);
    let running = answer.assigned.into_iter();
    let running = running.map(|(worker, work)| (worker, names.after_wire(&work)));
    let second = spec(running.chain([(rank(100), Work::default())]).collect(), 2);
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            handle(&memory, &second, 2000);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"best_ms\": {:.4}, \"median_ms\": {:.4}}}",
        times[0],
        times[times.len() / 2]
    );
}
