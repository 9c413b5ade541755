// SPDX-License-Identifier: Apache-2.0
//! Committed offsets from the records of `__consumer_offsets`: key and value in, a row out.
//!
//! ```text
//! group_id | topic | partition | offset | leader_epoch | metadata | commit_timestamp
//! | expire_timestamp | topic_id | error
//! ```
//!
//! Bytes are borrowed. A record that cannot be read has its `error` set; all others are answered.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{
    Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};

use crate::bulk::batch::SchemaError;
use crate::bulk::batch::columns::{Bytes, Structs};
use crate::bulk::nested;
use crate::wire::group_records::{Key, OffsetCommitValue, decode_key, decode_offset};

const UTC: &str = "UTC";

const TIMES_MS: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// What a group has committed for a partition; times are in microseconds.
struct Commit<'a> {
    value: OffsetCommitValue<'a>,
    committed: i64,
    expires: Option<i64>,
}

type Place<'a> = (&'a str, &'a str, i32);
type Row<'a> = (Option<Place<'a>>, Result<Commit<'a>, String>);

/// Answers each record of a batch. Reads the columns `key` and `value`, and returns an error if one
/// of them is missing or not binary.
pub fn commits(batch: &RecordBatch) -> Result<RecordBatch, SchemaError> {
    let records = Structs::of_batch(batch);
    let (keys, values): (Bytes, Bytes) =
        (records.column("key", true)?, records.column("value", true)?);
    let mut columns = Columns::new();
    for row in 0..batch.num_rows() {
        columns.push(commit(keys.get(row), values.get(row)));
    }
    Ok(columns.finish())
}

fn commit<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Row<'a> {
    let place = match decode_key(key.unwrap_or_default()) {
        Ok(Key::OffsetCommit {
            group_id,
            topic,
            partition,
        }) => (group_id, topic, partition),
        Ok(_) => return (None, Err("key: not that of an offset commit".into())),
        Err(problem) => return (None, Err(problem)),
    };
    let Some(value) = value else {
        return (Some(place), Err("value: a tombstone".into()));
    };
    (Some(place), decode_offset(value).and_then(with_times))
}

/// Checks that the times are in the years 1 to 9999: Spark and Python can show no others. Spark
/// counts microseconds, Kafka milliseconds.
fn with_times(value: OffsetCommitValue) -> Result<Commit, String> {
    let micros = |name: &str, ms: i64| match TIMES_MS.contains(&ms) {
        true => Ok(ms * 1000),
        false => Err(format!(
            "value.{name}: {ms} ms is not in the years 1 to 9999"
        )),
    };
    let committed = micros("commitTimestamp", value.commit_timestamp_ms)?;
    let expires = match value.expire_timestamp_ms {
        -1 => None,
        ms => Some(micros("expireTimestamp", ms)?),
    };
    Ok(Commit {
        value,
        committed,
        expires,
    })
}

struct Columns {
    group_id: StringBuilder,
    topic: StringBuilder,
    partition: Int32Builder,
    offset: Int64Builder,
    leader_epoch: Int32Builder,
    metadata: StringBuilder,
    commit_timestamp: TimestampMicrosecondBuilder,
    expire_timestamp: TimestampMicrosecondBuilder,
    topic_id: StringBuilder,
    error: StringBuilder,
}

impl Columns {
    fn new() -> Self {
        Self {
            group_id: StringBuilder::new(),
            topic: StringBuilder::new(),
            partition: Int32Builder::new(),
            offset: Int64Builder::new(),
            leader_epoch: Int32Builder::new(),
            metadata: StringBuilder::new(),
            commit_timestamp: TimestampMicrosecondBuilder::new().with_timezone(UTC),
            expire_timestamp: TimestampMicrosecondBuilder::new().with_timezone(UTC),
            topic_id: StringBuilder::new(),
            error: StringBuilder::new(),
        }
    }

    fn push(&mut self, (place, read): Row) {
        self.group_id.append_option(place.map(|place| place.0));
        self.topic.append_option(place.map(|place| place.1));
        self.partition.append_option(place.map(|place| place.2));
        self.error.append_option(read.as_ref().err());
        let commit = read.as_ref().ok();
        let value = commit.map(|commit| &commit.value);
        self.offset.append_option(value.map(|value| value.offset));
        let epoch = value.map(|value| value.leader_epoch);
        self.leader_epoch
            .append_option(epoch.filter(|&epoch| epoch >= 0));
        self.metadata
            .append_option(value.map(|value| value.metadata));
        self.commit_timestamp
            .append_option(commit.map(|commit| commit.committed));
        self.expire_timestamp
            .append_option(commit.and_then(|commit| commit.expires));
        let id = value.and_then(|value| value.topic_id.as_ref());
        self.topic_id.append_option(id.map(base64));
    }

    fn finish(mut self) -> RecordBatch {
        nested::batch(vec![
            ("group_id", Arc::new(self.group_id.finish())),
            ("topic", Arc::new(self.topic.finish())),
            ("partition", Arc::new(self.partition.finish())),
            ("offset", Arc::new(self.offset.finish())),
            ("leader_epoch", Arc::new(self.leader_epoch.finish())),
            ("metadata", Arc::new(self.metadata.finish())),
            ("commit_timestamp", Arc::new(self.commit_timestamp.finish())),
            ("expire_timestamp", Arc::new(self.expire_timestamp.finish())),
            ("topic_id", Arc::new(self.topic_id.finish())),
            ("error", Arc::new(self.error.finish())),
        ])
    }
}

/// Writes an id as Kafka's tools do: base64 with - and _, without padding.
fn base64(id: &[u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u128::from_be_bytes(*id);
    // 22 digits of 6 bits are 132 bits: the last digit has 2 bits of the id, and 4 zeros.
    let digit = |place: u32| match place {
        21 => (bits << 4) as usize & 63,
        _ => (bits >> (122 - 6 * place)) as usize & 63,
    };
    (0..22)
        .map(|place| char::from(DIGITS[digit(place)]))
        .collect()
}
