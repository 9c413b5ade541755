// SPDX-License-Identifier: Apache-2.0
//! Measures the core's time for each contract line of its input, for `benches/run.py`.
//!
//! Each line is parsed and its names are numbered once. Then its assignor runs again and again
//! until `--seconds` have passed, but at least three times. The output for a line is
//! `{"ms": [...], "interning_ms": …, "peak_bytes": …, "result_bytes": …}`: the times of the runs,
//! the time of the numbering, the peak memory of one run, and the result's size as Arrow columns.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use _core::assignors::assign;
use _core::group::contract;
use _core::group::spec::GroupSpec;

/// Counts the allocated bytes, and the most bytes that were allocated at one time.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system allocator does all the work; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--seconds");
    let seconds: f64 = arguments
        .nth(1)
        .map_or(0.5, |text| text.parse().expect("--seconds takes a number"));
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.expect("standard input can be read");
        writeln!(output, "{}", answer(&line, seconds)).expect("standard output can be written");
        output.flush().expect("standard output can be written");
    }
}

fn answer(line: &[u8], seconds: f64) -> String {
    let value = contract::parse(line).expect("a contract line");
    let start = Instant::now();
    let group = contract::from_value(&value, u64::MAX).expect("a group");
    group.topics_by_name();
    group.topic_hashes();
    group.owners_in_order();
    group.members_by_name();
    group.static_first();
    let interning = start.elapsed();
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result_bytes = columns_bytes(&group);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || (start.elapsed().as_secs_f64() < seconds && times.len() < 10_000) {
        let once = Instant::now();
        black_box(assign(black_box(&group), None).expect("an answer"));
        times.push(once.elapsed().as_secs_f64() * 1e3);
    }
    serde_json::json!({
        "ms": times,
        "interning_ms": interning.as_secs_f64() * 1e3,
        "peak_bytes": peak,
        "result_bytes": result_bytes,
    })
    .to_string()
}

/// Returns the size in bytes of one answer as Arrow columns: int32 partitions and offsets, UTF-8
/// names.
fn columns_bytes(group: &GroupSpec) -> usize {
    let (_, answer) = assign(group, None).expect("an answer");
    let mut bytes = 0;
    for (m, member) in group.members.iter().enumerate() {
        bytes += 8 + member.member_id.len();
        let mut seen: Vec<u32> = answer.of(m as u32).iter().map(|tp| tp.topic).collect();
        bytes += 4 * seen.len();
        seen.sort_unstable();
        seen.dedup();
        let names = seen.iter().map(|&t| group.topics[t as usize].name.len());
        bytes += names.map(|name| name + 8).sum::<usize>();
    }
    bytes
}
