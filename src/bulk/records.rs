// SPDX-License-Identifier: Apache-2.0
//! Reads groups from records of `__consumer_offsets`: makes one contract row from each key and
//! value.
//!
//! ```text
//! kind | state | group_id | generation_id | assignor | leader_library
//! | topics: [{name, partitions, racks: [[string]]}] | members: [{…}] | error
//! ```
//!
//! Bytes are borrowed. The row of an unreadable record has its `error` set.

mod columns;

use std::borrow::Cow;
use std::rc::Rc;

use arrow_array::RecordBatch;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bulk::batch::SchemaError;
use crate::bulk::batch::columns::{Bytes, Integers, Lists, Strings, Structs};
use crate::group::model::quoted;
use crate::wire::group_records::{GroupMetadataValue, Key, decode_group, decode_key};
use crate::wire::sent_members::{leader_library, user_data};
use crate::wire::{
    Entry, ReadAssignment, ReadSubscription, decode_assignment, decode_subscription,
};

/// The subscription version of the newest Java client, which a contract row leaves out.
const NEWEST_VERSION: i16 = 3;

/// A group as its record describes it.
pub struct Group<'a> {
    /// The protocol type: "consumer", "connect", …
    pub kind: &'a str,
    pub state: &'static str,
    pub group_id: &'a str,
    pub generation_id: i32,
    pub assignor: Option<&'a str>,
    pub leader_library: Option<&'static str>,
    pub topics: Vec<(Cow<'a, str>, i32)>,
    pub members: Vec<Member<'a>>,
}

/// A member: its subscription when it joined, and the partitions that it has since then.
pub struct Member<'a> {
    pub member_id: &'a str,
    pub group_instance_id: Option<&'a str>,
    pub client_id: &'a str,
    pub client_host: &'a str,
    /// Shared with the previous member if both sent equal bytes.
    pub subscription: Rc<ReadSubscription<'a>>,
    pub held: ReadAssignment<'a>,
    /// Subscription version and user data; None if they are those of the newest Java client.
    pub sent: Option<(i16, Option<&'static str>)>,
}

/// A row: the group's id (None if the key is unreadable), and the group.
pub type Row<'a> = (Option<&'a str>, Result<Group<'a>, String>);

/// Partition counts and replica racks of a cluster's topics.
pub struct Inventory {
    topics: FxHashMap<String, Topic>,
}

struct Topic {
    partitions: i32,
    racks: Option<Vec<Vec<Option<String>>>>,
}

impl Inventory {
    /// Reads the columns `name` and `partitions`, and `racks` if present.
    pub fn of(batch: &RecordBatch) -> Result<Self, SchemaError> {
        let rows = Structs::of_batch(batch);
        let names: Strings = rows.column("name", true)?;
        let partitions: Integers = rows.column("partitions", true)?;
        let racks: Lists = rows.column("racks", false)?;
        let replicas: Lists = racks.elements()?;
        let texts: Strings = replicas.elements()?;
        let mut topics = FxHashMap::default();
        for row in 0..batch.num_rows() {
            let Ok(Some(name)) = names.get(row) else {
                continue;
            };
            let text = |i| texts.get(i).ok().flatten().map(str::to_owned);
            let of_partition = |p| {
                replicas
                    .get(p)
                    .map_or_else(Vec::new, |at| at.map(text).collect())
            };
            let topic = Topic {
                partitions: partitions.get(row).unwrap_or(0) as i32,
                racks: racks.get(row).map(|at| at.map(of_partition).collect()),
            };
            topics.insert(name.to_owned(), topic);
        }
        Ok(Self { topics })
    }
}

/// Makes one row from each record of a batch: a group, or an error. A topic that the inventory
/// lacks is an error; with `assume_assigned`, its highest assigned partition is its last.
///
/// Reads the columns `key` and `value`; if one of them is missing or not binary, this is an error.
pub fn groups(
    batch: &RecordBatch,
    inventory: &Inventory,
    assume_assigned: bool,
) -> Result<RecordBatch, SchemaError> {
    let records = Structs::of_batch(batch);
    let keys: Bytes = records.column("key", true)?;
    let values: Bytes = records.column("value", true)?;
    let row = |at| group(keys.get(at), values.get(at), inventory, assume_assigned);
    let rows: Vec<Row> = (0..batch.num_rows()).map(row).collect();
    Ok(columns::write(&rows, inventory))
}

fn group<'a>(
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    inventory: &Inventory,
    assume_assigned: bool,
) -> Row<'a> {
    let group_id = match decode_key(key.unwrap_or_default()) {
        Ok(Key::GroupMetadata { group_id }) => group_id,
        Ok(_) => return (None, Err("key: not that of a classic group".into())),
        Err(problem) => return (None, Err(problem)),
    };
    let Some(value) = value else {
        return (Some(group_id), Err("value: a tombstone".into()));
    };
    let read = decode_group(value)
        .and_then(|value| of_record(group_id, &value, inventory, assume_assigned));
    (Some(group_id), read)
}

fn of_record<'a>(
    group_id: &'a str,
    value: &GroupMetadataValue<'a>,
    inventory: &Inventory,
    assume_assigned: bool,
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
        leader_library: None,
        topics: Vec::new(),
        members: Vec::new(),
    };
    // Connect and other protocols have other formats of bytes, which are not read here.
    if value.protocol_type != "consumer" {
        return Ok(group);
    }
    for (i, member) in value.members.iter().enumerate() {
        let at = |problem: String| format!("members[{i}].{problem}");
        let subscription = match group.members.last() {
            Some(last) if value.members[i - 1].subscription == member.subscription => {
                last.subscription.clone()
            }
            _ => Rc::new(decode_subscription(member.subscription).map_err(at)?),
        };
        let held = match member.assignment {
            [] => ReadAssignment::default(),
            bytes => decode_assignment(bytes).map_err(at)?,
        };
        let assignor = value.protocol.unwrap_or_default();
        let user_data = user_data(assignor, &subscription, member.client_id);
        let is_newest = subscription.version >= NEWEST_VERSION && user_data.is_none();
        group.members.push(Member {
            member_id: member.member_id,
            group_instance_id: member.group_instance_id,
            client_id: member.client_id,
            client_host: member.client_host,
            sent: (!is_newest).then_some((subscription.version, user_data)),
            subscription,
            held,
        });
    }
    let bytes = value.members.iter().map(|member| member.assignment);
    let given = group
        .members
        .iter()
        .zip(bytes)
        .filter(|(_, bytes)| !bytes.is_empty());
    let versions = group.members.iter();
    group.leader_library = leader_library(
        given.map(|(member, _)| &member.held),
        versions.map(|member| member.subscription.version),
    );
    group.topics = topics(&group.members, inventory, assume_assigned)?;
    Ok(group)
}

/// Subscribed topics in the order of their first mention, with their partition counts.
fn topics<'a>(
    members: &[Member<'a>],
    inventory: &Inventory,
    assume_assigned: bool,
) -> Result<Vec<(Cow<'a, str>, i32)>, String> {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut topics = Vec::new();
    // Members that share a subscription have the topics of the first of them.
    let distinct = members.chunk_by(|a, b| Rc::ptr_eq(&a.subscription, &b.subscription));
    for name in distinct.flat_map(|members| &members[0].subscription.topics) {
        if !seen.insert(name) {
            continue;
        }
        let partitions = match inventory.topics.get(&**name) {
            Some(topic) => topic.partitions,
            None if assume_assigned => assigned_count(members, name),
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
    let held = members.iter().flat_map(|member| &member.held.partitions);
    let of_topic = held.filter(|entry| entry.topic == name);
    of_topic
        .flat_map(Entry::partitions)
        .max()
        .map_or(0, |highest| highest + 1)
}

/// The racks of a topic's replicas, as one list for each partition.
fn racks<'i>(inventory: &'i Inventory, name: &str) -> Option<&'i [Vec<Option<String>>]> {
    inventory.topics.get(name)?.racks.as_deref()
}
