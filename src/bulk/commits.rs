// SPDX-License-Identifier: Apache-2.0
//! Reads committed offsets from records of `__consumer_offsets`: one row for each key and value.
//!
//! ```text
//! group_id | topic | partition | offset | leader_epoch | metadata | commit_timestamp
//! | expire_timestamp | topic_id | error
//! ```
//!
//! Bytes are borrowed. The row of an unreadable record has its `error` set; other rows are not
//! affected.

use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};

use crate::bulk::columns::SchemaError;
use crate::bulk::nested::{batch, numbers, texts};
use crate::bulk::records::group::Records;
use crate::wire::group_records::{Key, OffsetCommitValue, decode_key, decode_offset};

const TIMES_MS: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// A committed offset; `committed` and `expires` are in microseconds since 1970.
struct Commit<'a> {
    value: OffsetCommitValue<'a>,
    committed: i64,
    expires: Option<i64>,
}

type Place<'a> = (&'a str, &'a str, i32);
type Row<'a> = (Option<Place<'a>>, Result<Commit<'a>, String>);

/// Makes one row from each record of a batch. Reads the columns `key` and `value`. Returns an error
/// if one of them is missing or not binary.
pub fn commits(records: &RecordBatch) -> Result<RecordBatch, SchemaError> {
    let columns = Records::of(records)?;
    let rows = (0..records.num_rows()).map(|row| {
        let [key, value] = columns.get(row);
        commit(key, value)
    });
    Ok(write(&rows.collect::<Vec<Row>>()))
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

/// Checks that both times are in the years 1 to 9999, because Spark and Python cannot represent
/// others. Spark counts microseconds, Kafka milliseconds.
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

fn commit_of<'r, 'a>(row: &'r Row<'a>) -> Option<&'r Commit<'a>> {
    row.1.as_ref().ok()
}

fn value_of<'r, 'a>(row: &'r Row<'a>) -> Option<&'r OffsetCommitValue<'a>> {
    commit_of(row).map(|commit| &commit.value)
}

fn write(rows: &[Row]) -> RecordBatch {
    let times = |of: fn(&Row) -> Option<i64>| -> ArrayRef {
        let times: TimestampMicrosecondArray = rows.iter().map(of).collect();
        Arc::new(times.with_timezone("UTC"))
    };
    let int32 = |of: fn(&Row) -> Option<i32>| numbers::<Int32Type, _>(rows, of);
    let offset = numbers::<Int64Type, _>(rows, |row| Some(value_of(row)?.offset));
    let epoch = |row: &Row| Some(value_of(row)?.leader_epoch).filter(|&epoch| epoch >= 0);
    let topic_id = |row| value_of(row)?.topic_id.as_ref().map(base64);
    batch(vec![
        ("group_id", texts(rows, |row| Some(row.0?.0))),
        ("topic", texts(rows, |row| Some(row.0?.1))),
        ("partition", int32(|row| Some(row.0?.2))),
        ("offset", offset),
        ("leader_epoch", int32(epoch)),
        ("metadata", texts(rows, |row| Some(value_of(row)?.metadata))),
        (
            "commit_timestamp",
            times(|row| Some(commit_of(row)?.committed)),
        ),
        ("expire_timestamp", times(|row| commit_of(row)?.expires)),
        ("topic_id", texts(rows, topic_id)),
        ("error", texts(rows, |row| row.1.as_ref().err())),
    ])
}

/// Writes an id as Kafka's tools do: base64 with - and _, without padding.
fn base64(id: &[u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u128::from_be_bytes(*id);
    // 22 digits of 6 bits are 132 bits: the last digit holds 2 bits of the id, and 4 zero bits.
    let digit = |place: u32| match place {
        21 => (bits << 4) as usize & 63,
        _ => (bits >> (122 - 6 * place)) as usize & 63,
    };
    (0..22)
        .map(|place| char::from(DIGITS[digit(place)]))
        .collect()
}
