// SPDX-License-Identifier: Apache-2.0
//! Measures the core's time for each contract line of its input, for `benches/run.py`.
//!
//! Each line is parsed once, into names in memory: what a leader has. From there its assignor runs
//! again and again until `--seconds` have passed, but at least three times: first from the names
//! each time (`ms`), then with the numbers, hashes and orders of the names kept (`again_ms`). The
//! output for a line is `{"ms": [...], "again_ms": [...], "peak_bytes": …, "result_bytes": …}`: the
//! times of the runs, the peak memory of one run, and the result's size as Arrow columns.

use std::alloc::{GlobalAlloc, Layout};
use std::convert::Infallible;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use _core::assignors::assign;
use _core::error::GroupError;
use _core::group::builder::{GroupBuilder, Name};
use _core::group::model::AsSent;
use _core::group::spec::GroupSpec;
#[cfg(feature = "mimalloc")]
use mimalloc::MiMalloc as Allocator;
use serde::Deserialize;
#[cfg(not(feature = "mimalloc"))]
use std::alloc::System as Allocator;

/// Counts the allocated bytes, and the most bytes that were allocated at one time.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the wheel's allocator (or the system's) does all the work; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { Allocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { Allocator.dealloc(pointer, layout) }
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
    let named: Named = serde_json::from_slice(line).expect("a contract line");
    let times = timed(seconds, || {
        assign(&black_box(&named).group(), None).map(drop)
    });
    let group = named.group();
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result_bytes = columns_bytes(&group);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    let again = timed(seconds, || assign(black_box(&group), None).map(drop));
    serde_json::json!({
        "ms": times,
        "again_ms": again,
        "peak_bytes": peak,
        "result_bytes": result_bytes,
    })
    .to_string()
}

/// The times in ms of at least 3 calls, which take about the given time.
fn timed(seconds: f64, call: impl Fn() -> Result<(), GroupError>) -> Vec<f64> {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || (start.elapsed().as_secs_f64() < seconds && times.len() < 10_000) {
        let once = Instant::now();
        call().expect("an answer");
        times.push(once.elapsed().as_secs_f64() * 1e3);
    }
    times
}

/// A group as its leader has it: names as texts, each list with texts of its own.
#[derive(Deserialize)]
struct Named {
    group_id: String,
    assignor: String,
    topics: Vec<NamedTopic>,
    members: Vec<NamedMember>,
}

#[derive(Deserialize)]
struct NamedTopic {
    name: String,
    partitions: u32,
    racks: Option<Vec<Vec<String>>>,
    weights: Option<Vec<f64>>,
    topic_id: Option<String>,
}

#[derive(Deserialize)]
struct NamedMember {
    member_id: String,
    topics: Vec<String>,
    #[serde(default)]
    owned_partitions: Vec<NamedOwned>,
    generation_id: Option<i32>,
    rack_id: Option<String>,
    capacity: Option<f64>,
}

#[derive(Deserialize)]
struct NamedOwned {
    topic: String,
    partitions: Vec<u32>,
}

impl Named {
    fn group(&self) -> GroupSpec<'_> {
        let mut builder = GroupBuilder::new(&self.group_id, Some(&self.assignor));
        for topic in &self.topics {
            builder.topic(&topic.name, topic.partitions);
            builder.broker_fields(topic.topic_id.as_deref(), None);
            builder.last_topic().weights.clone_from(&topic.weights);
            if let Some(racks) = &topic.racks {
                builder.topic_racks();
                for replicas in racks {
                    let racks = replicas
                        .iter()
                        .map(|rack| Ok::<_, Infallible>(rack.as_str()));
                    builder.replica_racks(racks).expect("names");
                }
            }
        }
        for member in &self.members {
            builder.member(&member.member_id, None, None);
            let rack_id = member.rack_id.as_deref();
            builder.last_member().capacity = member.capacity.unwrap_or(1.0);
            builder.sent(member.generation_id, rack_id, AsSent::default());
            let topics = member.topics.iter().map(|name| Name::Text(name));
            builder
                .subscribe_to(topics.map(Ok::<_, Infallible>))
                .expect("names");
            for owned in &member.owned_partitions {
                let topic = builder.owned_id(Name::Text(&owned.topic));
                for &partition in &owned.partitions {
                    builder.own(topic, partition);
                }
            }
        }
        builder.finish(u64::MAX).expect("a group")
    }
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
