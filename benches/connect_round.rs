// SPDX-License-Identifier: Apache-2.0
//! One round of Connect's incremental leader: 100 workers, 1,000 connectors, 10,000 tasks, one
//! worker joins. Prints the best and the median of many runs, in milliseconds, as JSON.
//!
//! `tools/bench_connect.py` runs this and the Java class on the same round, and prints the ratio.

use std::time::Instant;

use _core::assignors::connect::incremental;
use _core::assignors::connect::named::{NamedMemory, NamedSpec, names};

#[derive(serde::Deserialize)]
struct Round {
    memory: NamedMemory,
    spec: NamedSpec,
    now_ms: i64,
}

fn main() {
    let text = std::io::read_to_string(std::io::stdin()).expect("a round as JSON");
    let round: Round = serde_json::from_str(&text).expect("a round as JSON");
    let (connectors, workers) = names(&round.memory, &round.spec);
    let memory = round.memory.numbered(&connectors, &workers);
    let spec = round.spec.numbered(&connectors, &workers);
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            let answer = incremental::handle(&memory, &spec, round.now_ms, &connectors, &workers);
            let took = start.elapsed().as_secs_f64() * 1e3;
            assert!(answer.is_ok());
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"best_ms\": {:.4}, \"median_ms\": {:.4}}}",
        times[0],
        times[times.len() / 2]
    );
}
