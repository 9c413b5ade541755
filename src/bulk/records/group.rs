// SPDX-License-Identifier: Apache-2.0
//! Reads groups from records of `__consumer_offsets`: each key and value becomes one row, in the
//! contract's columns.
//!
//! ```text
//! kind | state | group_id | generation_id | assignor | leader_library
//! | topics: [{name, partitions, racks: [[string]]}] | members: [{…}] | error
//! ```
//!
//! Bytes are borrowed. The row of an unreadable record has its `error` set.

use std::borrow::Cow;

use arrow_array::RecordBatch;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bulk::columns::{Column, SchemaError};
use crate::group::field_types::{Field, Input, Kind};
use crate::group::group_fields::{COUNT, RACKS};
use crate::group::model::quoted;
use crate::wire::group_records::{GroupMetadataValue, Key, decode_group, decode_key};
use crate::wire::sent_members::{leader_library, user_data};
use crate::wire::{ReadAssignment, ReadSubscription, decode_assignment, decode_subscription};

static TOPICS: [Field; 3] = [
    Field::required("name", Kind::Text),
    Field::required("partitions", COUNT),
    Field::new("racks", RACKS),
];

static RECORD: [Field; 2] = [
    Field::required("key", Kind::Bytes),
    Field::required("value", Kind::Bytes),
];

/// The subscription version of the newest Java client. Without user data, a row omits it.
const NEWEST_VERSION: i16 = 3;

#[derive(Default)]
pub struct Group<'a> {
    /// The protocol type: "consumer", "connect", …
    pub kind: &'a str,
    pub state: &'static str,
    pub group_id: &'a str,
    pub generation_id: i32,
    pub assignor: Option<&'a str>,
    pub leader_library: Option<&'static str>,
    pub topics: Vec<(Cow<'a, str>, i32)>,
    /// The members' subscriptions; neighbours that sent equal bytes share one.
    pub subscriptions: Vec<ReadSubscription<'a>>,
    pub members: Vec<Member<'a>>,
}

impl<'a> Group<'a> {
    pub fn is_answered(&self) -> bool {
        self.kind == "consumer" && !self.members.is_empty()
    }

    pub fn subscription(&self, member: &Member) -> &ReadSubscription<'a> {
        &self.subscriptions[member.subscription]
    }
}

/// A member: its subscription when it joined, and the partitions that the record assigns to it.
pub struct Member<'a> {
    pub member_id: &'a str,
    pub group_instance_id: Option<&'a str>,
    pub client_id: &'a str,
    pub client_host: &'a str,
    pub subscription: usize,
    pub held: ReadAssignment<'a>,
    /// Names of held topics that were not UTF-8, repaired as Java does.
    pub repaired: Vec<String>,
    /// Subscription version and user data; None if they are those of the newest Java client.
    pub sent: Option<(i16, Option<&'static str>)>,
}

/// A row: the group's id (None if the key is not that of a classic group), and its group or error.
pub type Row<'a> = (Option<&'a str>, Result<Group<'a>, String>);

/// Partition counts and replica racks of a cluster's topics.
pub struct Inventory {
    topics: FxHashMap<String, Topic>,
    /// Whether a topic that the inventory lacks is assumed to end with its highest assigned
    /// partition. If false, such a topic is an error.
    assume_assigned: bool,
}

struct Topic {
    partitions: i32,
    racks: Option<Vec<Vec<Option<String>>>>,
}

impl Inventory {
    /// Reads the columns `name` and `partitions`, and `racks` if present.
    pub fn of(batch: &RecordBatch, assume_assigned: bool) -> Result<Self, SchemaError> {
        let columns = Column::of_batch(batch, &TOPICS)?;
        let [names, partitions, racks] = [0, 1, 2].map(|i| columns.field(i));
        let mut topics = FxHashMap::default();
        for row in 0..batch.num_rows() {
            let Ok(name) = names.at(row).text() else {
                continue;
            };
            let of_partition = |partitions: &Column, p| match partitions.list(p) {
                Some((replicas, texts)) => {
                    let text = |at| texts.at(at).text().ok().map(str::to_owned);
                    replicas.map(text).collect()
                }
                None => Vec::new(),
            };
            let racks = racks.list(row).map(|(range, partitions)| {
                let racks = range.map(|p| of_partition(partitions, p));
                racks.collect()
            });
            let topic = Topic {
                partitions: partitions.whole(row).unwrap_or(0) as i32,
                racks,
            };
            topics.insert(name.to_owned(), topic);
        }
        Ok(Self {
            topics,
            assume_assigned,
        })
    }
}

/// The keys and values of a batch of records.
pub struct Records<'a>(Column<'a>);

impl<'a> Records<'a> {
    pub fn of(batch: &'a RecordBatch) -> Result<Self, SchemaError> {
        Column::of_batch(batch, &RECORD).map(Self)
    }

    pub fn get(&self, at: usize) -> [Option<&'a [u8]>; 2] {
        [0, 1].map(|i| self.0.field(i).bytes(at))
    }

    pub fn row(&self, at: usize, inventory: &Inventory) -> Row<'a> {
        let [key, value] = self.get(at);
        group(key, value, inventory)
    }
}

fn group<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>, inventory: &Inventory) -> Row<'a> {
    let group_id = match decode_key(key.unwrap_or_default()) {
        Ok(Key::GroupMetadata { group_id }) => group_id,
        Ok(_) => return (None, Err("key: not that of a classic group".into())),
        Err(problem) => return (None, Err(problem)),
    };
    let Some(value) = value else {
        return (Some(group_id), Err("value: a tombstone".into()));
    };
    let read = decode_group(value).and_then(|value| of_record(group_id, &value, inventory));
    (Some(group_id), read)
}

fn of_record<'a>(
    group_id: &'a str,
    value: &GroupMetadataValue<'a>,
    inventory: &Inventory,
) -> Result<Group<'a>, String> {
    let state = if value.members.is_empty() {
        "Empty"
    } else {
        "Stable"
    };
    let mut group = Group {
        kind: value.protocol_type,
        state,
        group_id,
        generation_id: value.generation_id,
        assignor: value.protocol,
        ..Group::default()
    };
    // Connect and other protocols have other byte formats, which are not read here.
    if value.protocol_type != "consumer" {
        return Ok(group);
    }
    for (i, member) in value.members.iter().enumerate() {
        let at = |problem: String| format!("members[{i}].{problem}");
        if i == 0 || value.members[i - 1].subscription != member.subscription {
            let read = decode_subscription(member.subscription).map_err(at)?;
            group.subscriptions.push(read);
        }
        let place = group.subscriptions.len() - 1;
        let subscription = &group.subscriptions[place];
        let held = match member.assignment {
            [] => ReadAssignment::default(),
            bytes => decode_assignment(bytes).map_err(at)?,
        };
        let assignor = value.protocol.unwrap_or_default();
        let user_data = user_data(assignor, subscription, member.client_id);
        let is_newest = subscription.version >= NEWEST_VERSION && user_data.is_none();
        group.members.push(Member {
            member_id: member.member_id,
            group_instance_id: member.group_instance_id,
            client_id: member.client_id,
            client_host: member.client_host,
            sent: (!is_newest).then_some((subscription.version, user_data)),
            subscription: place,
            repaired: repaired(&held),
            held,
        });
    }
    let bytes = value.members.iter().map(|member| member.assignment);
    let given = group
        .members
        .iter()
        .zip(bytes)
        .filter(|(_, bytes)| !bytes.is_empty());
    let versions = group.subscriptions.iter().map(|one| one.version);
    group.leader_library = leader_library(given.map(|(member, _)| &member.held), versions);
    group.topics = topics(&group, inventory)?;
    Ok(group)
}

fn repaired(held: &ReadAssignment) -> Vec<String> {
    let names = held.partitions.iter().map(|entry| entry.topic());
    let owned = names.filter_map(|name| match name {
        Cow::Owned(name) => Some(name),
        Cow::Borrowed(_) => None,
    });
    owned.collect()
}

/// Returns the subscribed topics in the order of first mention, with their numbers of partitions.
fn topics<'a>(
    group: &Group<'a>,
    inventory: &Inventory,
) -> Result<Vec<(Cow<'a, str>, i32)>, String> {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut topics = Vec::new();
    for name in group.subscriptions.iter().flat_map(|one| &one.topics) {
        if !seen.insert(name) {
            continue;
        }
        let partitions = match inventory.topics.get(&**name) {
            Some(topic) => topic.partitions,
            None if inventory.assume_assigned => assigned_count(&group.members, name),
            None => {
                let name = quoted(name);
                let problem =
                    format!("the inventory has no topic {name}; add it, or set assume_assigned");
                return Err(format!("topics: {problem}"));
            }
        };
        topics.push((name.clone(), partitions));
    }
    Ok(topics)
}

fn assigned_count(members: &[Member], name: &str) -> i32 {
    let held = members
        .iter()
        .flat_map(|member| member.held.partitions.iter());
    let of_topic = held.filter(|entry| entry.topic() == name);
    of_topic
        .flat_map(|entry| entry.partitions())
        .max()
        .map_or(0, |highest| highest + 1)
}

/// Returns the racks of a topic's replicas, one list for each partition; None if unknown.
pub fn racks<'i>(inventory: &'i Inventory, name: &str) -> Option<&'i [Vec<Option<String>>]> {
    inventory.topics.get(name)?.racks.as_deref()
}
