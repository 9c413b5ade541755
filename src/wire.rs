//! How a member's state travels: ConsumerProtocol subscriptions and assignments (versions 0 to 3),
//! and the user data of the sticky assignors. Byte for byte as Kafka's Java classes write them.
//!
//! The messages are read and written by the `kafka-protocol` crate. It reserves room for as many
//! entries as a length field announces, so `check_lengths` first walks the bytes and refuses what
//! announces more than they hold.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::consumer_protocol_assignment as assignment_message;
use kafka_protocol::messages::consumer_protocol_subscription as subscription_message;
use kafka_protocol::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use rustc_hash::FxHashMap;

use crate::order::{compare_names, java_grouping_order};

pub type Result<T> = std::result::Result<T, String>;
/// Topic name and partition. The name is shared: a long one before many partitions costs once.
pub type NamedPartition = (Arc<str>, i32);

const HIGHEST_VERSION: i16 = 3;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    pub version: i16,
    pub topics: Vec<String>,
    pub user_data: Option<Vec<u8>>,
    pub owned_partitions: Vec<NamedPartition>,
    /// None where the field is negative.
    pub generation_id: Option<i32>,
    /// None where the field is null or empty.
    pub rack_id: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    pub version: i16,
    pub partitions: Vec<NamedPartition>,
    pub user_data: Option<Vec<u8>>,
}

pub fn decode_subscription(data: &[u8]) -> Result<Subscription> {
    let (version, body) = split_version(data, "subscription")?;
    let mut body = body.to_vec();
    check_lengths(&mut body, &SUBSCRIPTION[..2 + version as usize])
        .map_err(|problem| format!("subscription: {problem}"))?;
    let message = ConsumerProtocolSubscription::decode(&mut Bytes::from(body), version)
        .map_err(|error| format!("subscription: {error}"))?;
    let owned = message.owned_partitions.iter();
    Ok(Subscription {
        version,
        topics: message
            .topics
            .iter()
            .map(|topic| topic.to_string())
            .collect(),
        user_data: message.user_data.map(|data| data.to_vec()),
        owned_partitions: owned
            .flat_map(|entry| named(&entry.topic, &entry.partitions))
            .collect(),
        generation_id: Some(message.generation_id).filter(|&generation| generation >= 0),
        rack_id: message
            .rack_id
            .map(|rack| rack.to_string())
            .filter(|rack| !rack.is_empty()),
    })
}

/// Topics and owned partitions are sorted, as `ConsumerProtocol.serializeSubscription` does.
pub fn encode_subscription(subscription: &Subscription) -> Result<Vec<u8>> {
    let version = subscription.version.min(HIGHEST_VERSION);
    let mut topics = subscription.topics.clone();
    topics.sort_by(|a, b| compare_names(a, b));
    let mut owned = subscription.owned_partitions.clone();
    owned.sort_by(|a, b| compare_names(&a.0, &b.0).then(a.1.cmp(&b.1)));
    let mut message = ConsumerProtocolSubscription::default()
        .with_topics(topics.into_iter().map(StrBytes::from_string).collect())
        .with_user_data(subscription.user_data.clone().map(Bytes::from));
    // The crate refuses fields that a version does not have; Kafka leaves them out.
    if version >= 1 {
        let runs = owned.chunk_by(|a, b| a.0 == b.0).map(|run| {
            subscription_message::TopicPartition::default()
                .with_topic(topic_name(&run[0].0))
                .with_partitions(run.iter().map(|&(_, partition)| partition).collect())
        });
        message = message.with_owned_partitions(runs.collect());
    }
    if version >= 2 {
        let generation_id = subscription.generation_id.filter(|&id| id >= 0);
        message = message.with_generation_id(generation_id.unwrap_or(-1));
    }
    if version >= 3 {
        message = message.with_rack_id(subscription.rack_id.clone().map(StrBytes::from_string));
    }
    encode(&message, version, "subscription")
}

pub fn decode_assignment(data: &[u8]) -> Result<Assigned> {
    let (version, body) = split_version(data, "assignment")?;
    let mut body = body.to_vec();
    check_lengths(&mut body, ASSIGNMENT).map_err(|problem| format!("assignment: {problem}"))?;
    let message = ConsumerProtocolAssignment::decode(&mut Bytes::from(body), version)
        .map_err(|error| format!("assignment: {error}"))?;
    let assigned = message.assigned_partitions.iter();
    Ok(Assigned {
        version,
        partitions: assigned
            .flat_map(|entry| named(&entry.topic, &entry.partitions))
            .collect(),
        user_data: message.user_data.map(|data| data.to_vec()),
    })
}

/// Partitions are grouped by topic, topics in order of first appearance.
pub fn encode_assignment(assigned: &Assigned) -> Result<Vec<u8>> {
    let entries = by_topic(&assigned.partitions)
        .into_iter()
        .map(|(topic, partitions)| {
            assignment_message::TopicPartition::default()
                .with_topic(topic_name(topic))
                .with_partitions(partitions)
        });
    let message = ConsumerProtocolAssignment::default()
        .with_assigned_partitions(entries.collect())
        .with_user_data(assigned.user_data.clone().map(Bytes::from));
    encode(
        &message,
        assigned.version.min(HIGHEST_VERSION),
        "assignment",
    )
}

/// StickyAssignor's user data: version 1 if a generation follows the partitions, else version 0,
/// else no history (`(empty, Some(-1))`), as Kafka reads it. Nothing at all is no generation.
pub fn decode_sticky_user_data(data: &[u8]) -> (Vec<NamedPartition>, Option<i32>) {
    if data.is_empty() {
        return (Vec::new(), None);
    }
    let mut left = data;
    match read_sticky_partitions(&mut left) {
        Some(partitions) => (partitions, left.try_get_i32().ok()),
        None => (Vec::new(), Some(-1)),
    }
}

fn read_sticky_partitions(data: &mut &[u8]) -> Option<Vec<NamedPartition>> {
    let mut partitions = Vec::new();
    for _ in 0..read_count(data)? {
        let length = usize::try_from(data.try_get_i16().ok()?).ok()?;
        let (topic, rest) = data.split_at_checked(length)?;
        *data = rest;
        let topic: Arc<str> = String::from_utf8_lossy(topic).into();
        for _ in 0..read_count(data)? {
            partitions.push((topic.clone(), data.try_get_i32().ok()?));
        }
    }
    Some(partitions)
}

/// A length is refused if it is negative or more than the bytes left.
fn read_count(data: &mut &[u8]) -> Option<usize> {
    let count = usize::try_from(data.try_get_i32().ok()?).ok()?;
    (count <= data.len()).then_some(count)
}

/// Version 1; topics in the order of the hash map through which Kafka groups them.
pub fn encode_sticky_user_data(
    partitions: &[NamedPartition],
    generation_id: i32,
) -> Result<Vec<u8>> {
    let entries = by_topic(partitions);
    let names: Vec<&str> = entries.iter().map(|&(topic, _)| topic).collect();
    let places: FxHashMap<&str, u32> = names.iter().copied().zip(0..).collect();
    let topics = partitions.iter().map(|(topic, _)| places[&**topic]);
    let mut out = Vec::new();
    out.put_i32(entries.len() as i32);
    for i in java_grouping_order(&names, topics) {
        let (topic, partitions) = &entries[i as usize];
        let length = i16::try_from(topic.len())
            .map_err(|_| format!("sticky user data: a topic name of {} bytes", topic.len()))?;
        out.put_i16(length);
        out.put_slice(topic.as_bytes());
        out.put_i32(partitions.len() as i32);
        for &partition in partitions {
            out.put_i32(partition);
        }
    }
    out.put_i32(generation_id);
    Ok(out)
}

/// The generation in CooperativeStickyAssignor's user data; unreadable is -1, as Kafka reads it.
pub fn decode_cooperative_user_data(mut data: &[u8]) -> i32 {
    data.try_get_i32().unwrap_or(-1)
}

fn split_version<'a>(mut data: &'a [u8], what: &str) -> Result<(i16, &'a [u8])> {
    let version = data
        .try_get_i16()
        .map_err(|_| format!("{what}: {} bytes are too few for a version", data.len()))?;
    if version < 0 {
        return Err(format!("{what}: {version} is not a version"));
    }
    // A newer version begins like the newest known one.
    Ok((version.min(HIGHEST_VERSION), data))
}

fn encode(message: &impl Encodable, version: i16, what: &str) -> Result<Vec<u8>> {
    let mut out = BytesMut::new();
    out.put_i16(version);
    message
        .encode(&mut out, version)
        .map_err(|error| format!("{what}: {error}"))?;
    Ok(out.to_vec())
}

fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.into()))
}

fn named(topic: &TopicName, partitions: &[i32]) -> Vec<NamedPartition> {
    let topic: Arc<str> = topic.as_str().into();
    partitions.iter().map(|&p| (topic.clone(), p)).collect()
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

// What the messages are made of, as far as lengths go

enum Shape {
    Int32,
    /// Length in two bytes, -1 for null.
    String,
    /// Length in four bytes, -1 for null.
    Bytes,
    /// Count in four bytes.
    Array(&'static [Shape]),
}

const TOPIC_PARTITIONS: &[Shape] = &[Shape::String, Shape::Array(&[Shape::Int32])];
/// Versions 0 to 3 have the first two, three, four, five of them.
const SUBSCRIPTION: &[Shape] = &[
    Shape::Array(&[Shape::String]),
    Shape::Bytes,
    Shape::Array(TOPIC_PARTITIONS),
    Shape::Int32,
    Shape::String,
];
const ASSIGNMENT: &[Shape] = &[Shape::Array(TOPIC_PARTITIONS), Shape::Bytes];

impl Shape {
    fn least_bytes(&self) -> usize {
        if matches!(self, Self::String) { 2 } else { 4 }
    }
}

/// Also writes every negative length as -1: all are null to Kafka, only -1 is to the crate.
fn check_lengths(body: &mut [u8], shapes: &[Shape]) -> Result<()> {
    let mut at = 0;
    skip(body, &mut at, shapes).ok_or_else(|| {
        format!(
            "at byte {at} of {} it announces more than is there",
            body.len()
        )
    })
}

fn skip(body: &mut [u8], at: &mut usize, shapes: &[Shape]) -> Option<()> {
    for shape in shapes {
        let width = shape.least_bytes();
        let field = body.get_mut(*at..*at + width)?;
        *at += width;
        if matches!(shape, Shape::Int32) {
            continue;
        }
        if field[0] >= 0x80 {
            field.fill(0xff); // the decoder refuses it where null is not allowed
            continue;
        }
        let length = field.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
        let left = body.len() - *at;
        if let Shape::Array(entry) = shape {
            let least: usize = entry.iter().map(Shape::least_bytes).sum();
            if length > left / least {
                return None;
            }
            for _ in 0..length {
                skip(body, at, entry)?;
            }
        } else if length > left {
            return None;
        } else {
            *at += length;
        }
    }
    Some(())
}
