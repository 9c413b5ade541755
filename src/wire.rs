// SPDX-License-Identifier: Apache-2.0
//! The consumer protocol: subscriptions and assignments (versions 0 to 3), and the sticky
//! assignors' user data. They are written and read as by Kafka's Java classes, which also read
//! names that are not UTF-8.
//!
//! ```text
//! subscription   version int16, topics [string], user data bytes?,
//!                from version 1 on: owned [(topic string, [int32])],
//!                from version 2 on: generation int32,
//!                from version 3 on: rack string?
//! assignment     version int16, partitions [(topic string, [int32])], user data bytes?
//! ```
//!
//! A string is a length of two bytes, then UTF-8. Bytes and lists begin with a length of four
//! bytes. A negative length means null, which only fields with `?` may be.

pub mod group_records;
pub mod sent_members;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{Buf, BufMut};
use rustc_hash::FxHashMap;

use crate::java::order::{compare_names, java_grouping_order};
use crate::java::text::java_text;

pub type Result<T> = std::result::Result<T, String>;
/// Topic name and partition number of a partition to write.
pub type NamedPartition = (Arc<str>, i32);
/// A decoded subscription; its strings and numbers are borrowed from the bytes.
pub type ReadSubscription<'a> = Subscription<'a, Entries<'a>>;
/// A decoded assignment; its strings and numbers are borrowed from the bytes.
pub type ReadAssignment<'a> = Assigned<'a, Entries<'a>>;

const HIGHEST_VERSION: i16 = 3;

/// A subscription that a member sends in JoinGroup.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subscription<'a, Partitions> {
    pub version: i16,
    pub topics: Vec<Cow<'a, str>>,
    pub user_data: Option<Cow<'a, [u8]>>,
    pub owned_partitions: Partitions,
    /// None if the field is negative or absent.
    pub generation_id: Option<i32>,
    /// None if it is null or absent. Empty means no rack for Kafka's classes, not for librdkafka.
    pub rack_id: Option<Cow<'a, str>>,
}

/// An assignment that a member receives in SyncGroup.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Assigned<'a, Partitions> {
    pub version: i16,
    pub partitions: Partitions,
    pub user_data: Option<Cow<'a, [u8]>>,
}

/// Partitions by topic, as bytes that have been checked; `iter` decodes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entries<'a>(&'a [u8]);

impl<'a> Entries<'a> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(self) -> impl Iterator<Item = Entry<'a>> + Clone {
        let mut left = self.0;
        std::iter::from_fn(move || next_entry(&mut left))
    }
}

/// Decodes the next entry and removes it from `left`; None if `left` does not begin with one.
fn next_entry<'a>(left: &mut &'a [u8]) -> Option<Entry<'a>> {
    let length = usize::try_from(left.try_get_i16().ok()?).ok()?;
    let (topic, rest) = left.split_at_checked(length)?;
    *left = rest;
    let count = read_count(left)?;
    let (partitions, rest) = left.split_at_checked(count * INT32)?;
    *left = rest;
    Some(Entry {
        topic,
        partitions: partitions.as_chunks().0,
    })
}

/// Partitions of one topic, as the bytes list them.
pub struct Entry<'a> {
    topic: &'a [u8],
    partitions: &'a [[u8; INT32]],
}

impl<'a> Entry<'a> {
    pub fn topic(&self) -> Cow<'a, str> {
        java_text(self.topic)
    }

    pub fn partitions(&self) -> impl ExactSizeIterator<Item = i32> + use<'a> {
        self.partitions
            .iter()
            .map(|&bytes| i32::from_be_bytes(bytes))
    }
}

pub fn decode_subscription(data: &[u8]) -> Result<ReadSubscription<'_>> {
    let (version, body) = split_version(data, "subscription")?;
    read_subscription(version, body).map_err(|problem| format!("subscription: {problem}"))
}

fn read_subscription(version: i16, body: &[u8]) -> Result<ReadSubscription<'_>> {
    let mut reader = Reader { body, at: 0 };
    let mut read = ReadSubscription {
        version,
        ..ReadSubscription::default()
    };
    let announced = reader.count(STRING)?;
    read.topics.reserve(announced.min(MOST_RESERVED));
    for _ in 0..announced {
        read.topics.push(java_text(reader.string()?));
    }
    read.user_data = reader.data()?;
    if version >= 1 {
        read.owned_partitions = reader.partitions()?;
    }
    if version >= 2 {
        read.generation_id = Some(reader.int32()?).filter(|&generation| generation >= 0);
    }
    if version >= 3 {
        read.rack_id = reader.nullable_string()?.map(java_text);
    }
    Ok(read)
}

/// Encodes a subscription. Topics and owned partitions are sorted as in
/// `ConsumerProtocol.serializeSubscription`. Fields that the version does not have are left out.
pub fn encode_subscription(subscription: &Subscription<Vec<NamedPartition>>) -> Result<Vec<u8>> {
    let mut writer = Writer::of("subscription", subscription.version)?;
    let mut topics = subscription.topics.clone();
    topics.sort_by(|a, b| compare_names(a, b));
    writer.out.put_i32(topics.len() as i32);
    for topic in &topics {
        writer.string(topic)?;
    }
    writer.data(subscription.user_data.as_deref());
    if writer.version >= 1 {
        let mut owned = subscription.owned_partitions.clone();
        owned.sort_by(|a, b| compare_names(&a.0, &b.0).then(a.1.cmp(&b.1)));
        writer.partitions(&by_topic(&owned))?;
    }
    if writer.version >= 2 {
        let generation_id = subscription.generation_id.filter(|&id| id >= 0);
        writer.out.put_i32(generation_id.unwrap_or(-1));
    }
    if writer.version >= 3 {
        match &subscription.rack_id {
            Some(rack) => writer.string(rack)?,
            None => writer.out.put_i16(-1),
        }
    }
    Ok(writer.out)
}

pub fn decode_assignment(data: &[u8]) -> Result<ReadAssignment<'_>> {
    let (version, body) = split_version(data, "assignment")?;
    let mut reader = Reader { body, at: 0 };
    let mut read = || {
        Ok(Assigned {
            version,
            partitions: reader.partitions()?,
            user_data: reader.data()?,
        })
    };
    read().map_err(|problem: String| format!("assignment: {problem}"))
}

/// Encodes an assignment. Partitions are grouped by topic; topics are in order of first appearance.
pub fn encode_assignment(assigned: &Assigned<Vec<NamedPartition>>) -> Result<Vec<u8>> {
    let mut writer = Writer::of("assignment", assigned.version)?;
    writer.partitions(&by_topic(&assigned.partitions))?;
    writer.data(assigned.user_data.as_deref());
    Ok(writer.out)
}

/// Decodes StickyAssignor's user data as Kafka does: the partitions, and the generation if one
/// follows (version 1). Returns `(empty, Some(-1))` for unreadable data, `(empty, None)` for empty
/// data.
pub fn decode_sticky_user_data(data: &[u8]) -> (Entries<'_>, Option<i32>) {
    if data.is_empty() {
        return (Entries::default(), None);
    }
    let mut left = data;
    match read_sticky_partitions(&mut left) {
        Some(partitions) => (partitions, left.try_get_i32().ok()),
        None => (Entries::default(), Some(-1)),
    }
}

fn read_sticky_partitions<'a>(data: &mut &'a [u8]) -> Option<Entries<'a>> {
    let count = read_count(data)?;
    let start = *data;
    for _ in 0..count {
        next_entry(data)?;
    }
    Some(Entries(&start[..start.len() - data.len()]))
}

/// Reads a length; None if it is negative or greater than the number of bytes left.
fn read_count(data: &mut &[u8]) -> Option<usize> {
    let count = usize::try_from(data.try_get_i32().ok()?).ok()?;
    (count <= data.len()).then_some(count)
}

/// Encodes StickyAssignor's user data in version 1. Topics are in the order of the HashMap by which
/// Kafka groups partitions.
pub fn encode_sticky_user_data(
    partitions: &[NamedPartition],
    generation_id: i32,
) -> Result<Vec<u8>> {
    let mut entries = by_topic(partitions);
    let names: Vec<&str> = entries.iter().map(|&(topic, _)| topic).collect();
    let places: FxHashMap<&str, u32> = names.iter().copied().zip(0..).collect();
    let topics = partitions.iter().map(|(topic, _)| places[&**topic]);
    let order = java_grouping_order(&names, topics).into_iter();
    let grouped: Vec<_> = order
        .map(|i| std::mem::take(&mut entries[i as usize]))
        .collect();
    let mut writer = Writer {
        what: "sticky user data",
        version: 1,
        out: Vec::new(),
    };
    writer.partitions(&grouped)?;
    writer.out.put_i32(generation_id);
    Ok(writer.out)
}

/// Reads the generation in CooperativeStickyAssignor's user data; -1 if unreadable, as in Kafka.
pub fn decode_cooperative_user_data(mut data: &[u8]) -> i32 {
    data.try_get_i32().unwrap_or(-1)
}

fn split_version<'a>(mut data: &'a [u8], what: &str) -> Result<(i16, &'a [u8])> {
    let version = data
        .try_get_i16()
        .map_err(|_| format!("{what}: {} bytes are too few for a version", data.len()))?;
    Ok((known_version(version, what)?, data))
}

/// Returns the version whose fields are read or written: `version`, but at most the newest known
/// one. (Later versions only append fields.)
fn known_version(version: i16, what: &str) -> Result<i16> {
    if version < 0 {
        return Err(format!("{what}: {version} is not a version"));
    }
    Ok(version.min(HIGHEST_VERSION))
}

fn by_topic(partitions: &[NamedPartition]) -> Vec<(&str, Vec<i32>)> {
    let mut places = FxHashMap::default();
    let mut entries: Vec<(&str, Vec<i32>)> = Vec::new();
    for (topic, partition) in partitions {
        let at = *places.entry(&**topic).or_insert_with(|| {
            entries.push((topic, Vec::new()));
            entries.len() - 1
        });
        entries[at].1.push(*partition);
    }
    entries
}

/// The smallest number of bytes of one entry of a list, by the entry's type.
const STRING: usize = 2;
const INT32: usize = 4;
const TOPIC_PARTITIONS: usize = STRING + INT32;

/// Memory is reserved for at most this many entries, because the count in the bytes may be wrong.
const MOST_RESERVED: usize = 16;

/// A position in the bytes of a subscription or an assignment. Bytes after the last field are
/// ignored, as in Kafka's classes.
struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let taken = self.body[self.at..].get(..length);
        let taken = taken.ok_or_else(|| self.problem("it announces more than is there"))?;
        self.at += length;
        Ok(taken)
    }

    #[cold]
    fn problem(&self, what: &str) -> String {
        format!("at byte {} of {} {what}", self.at, self.body.len())
    }

    fn int16(&mut self) -> Result<i16> {
        Ok(self.take(2)?.get_i16())
    }

    fn int32(&mut self) -> Result<i32> {
        Ok(self.take(4)?.get_i32())
    }

    /// Reads the number of entries of a list, each of which has at least `least` bytes.
    fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.int32()?;
        let count = usize::try_from(count).map_err(|_| self.problem("a list is null"))?;
        if count > (self.body.len() - self.at) / least {
            return Err(self.problem("it announces more than is there"));
        }
        Ok(count)
    }

    fn nullable_string(&mut self) -> Result<Option<&'a [u8]>> {
        let Ok(length) = usize::try_from(self.int16()?) else {
            return Ok(None);
        };
        self.take(length).map(Some)
    }

    fn string(&mut self) -> Result<&'a [u8]> {
        let name = self.nullable_string()?;
        name.ok_or_else(|| self.problem("a name is null"))
    }

    fn data(&mut self) -> Result<Option<Cow<'a, [u8]>>> {
        let Ok(length) = usize::try_from(self.int32()?) else {
            return Ok(None);
        };
        Ok(Some(self.take(length)?.into()))
    }

    fn partitions(&mut self) -> Result<Entries<'a>> {
        let announced = self.count(TOPIC_PARTITIONS)?;
        let start = self.at;
        for _ in 0..announced {
            self.string()?;
            let count = self.count(INT32)?;
            self.take(count * INT32)?;
        }
        Ok(Entries(&self.body[start..self.at]))
    }
}

struct Writer {
    what: &'static str,
    version: i16,
    out: Vec<u8>,
}

impl Writer {
    fn of(what: &'static str, version: i16) -> Result<Self> {
        let version = known_version(version, what)?;
        let out = version.to_be_bytes().to_vec();
        Ok(Self { what, version, out })
    }

    fn string(&mut self, text: &str) -> Result<()> {
        let length = i16::try_from(text.len())
            .map_err(|_| format!("{}: a name of {} bytes", self.what, text.len()))?;
        self.out.put_i16(length);
        self.out.put_slice(text.as_bytes());
        Ok(())
    }

    fn data(&mut self, data: Option<&[u8]>) {
        self.out.put_i32(data.map_or(-1, |data| data.len() as i32));
        self.out.put_slice(data.unwrap_or_default());
    }

    fn partitions(&mut self, entries: &[(&str, Vec<i32>)]) -> Result<()> {
        self.out.put_i32(entries.len() as i32);
        for (topic, partitions) in entries {
            self.string(topic)?;
            self.out.put_i32(partitions.len() as i32);
            for &partition in partitions {
                self.out.put_i32(partition);
            }
        }
        Ok(())
    }
}
