// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/contract.py` and `group/group_fields.py`: reads a group from a contract line
//! (docs/contract.md), and writes an answer as a result line. The order of the checks and the texts
//! of errors are those of the Python modules, except for the JSON parser's own texts.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::error::GroupError;
use crate::group::builder::{GroupBuilder, MemberFields};
use crate::group::model::{AsSent, Library, NEWEST_SUBSCRIPTION, TopicPartition, UserData};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::group::streams::StreamsMember;
use crate::json::{Map as Fields, Texts, Value};

type Result<T> = std::result::Result<T, GroupError>;

/// Parses one JSON value. Returns an error at `line` if the line is not UTF-8 or not JSON.
pub fn parse(line: &[u8]) -> Result<Value> {
    parse_with(line, &mut Texts::default())
}

/// As `parse`; `texts` gets the line's texts, which can outlive the value.
pub fn parse_with(line: &[u8], texts: &mut Texts) -> Result<Value> {
    let text = std::str::from_utf8(line)
        .map_err(|error| GroupError::new("line", format!("not UTF-8: {error}")))?;
    Value::parse(text, texts).map_err(|error| GroupError::new("line", format!("not JSON: {error}")))
}

/// Reads the group of a parsed line. `max_partitions` limits the sum over its topics.
pub fn from_value(value: &Value, max_partitions: u64) -> Result<GroupSpec<'_>> {
    let fields = object(value, "line")?;
    refuse_error_line(fields)?;
    let group_id = string(fields, "group_id", "")?;
    generation(fields, "generation_id", "")?;
    let assignor = optional_string(fields, "assignor", "")?;
    let mut builder = GroupBuilder::new(group_id, assignor);
    builder.leader_library(optional_string(fields, "leader_library", "")?);
    optional_string(fields, "leader", "")?;
    let protocol = optional_string(fields, "rebalance_protocol", "")?;
    for_each(fields, "topics", "", |value, at| {
        topic(&mut builder, value, at)
    })?;
    let mut ids = Vec::new();
    for_each(fields, "members", "", |value, at| {
        member(&mut builder, &mut ids, value, at)
    })?;
    topology(&mut builder, fields)?;
    for (path, topic, topic_id) in ids {
        let wrong = |problem| GroupError::new(path, problem);
        let topic = builder.owned_id(topic);
        builder.id_beside_owned(topic, topic_id).map_err(wrong)?;
    }
    builder.rebalance_protocol(protocol)?;
    builder.finish(max_partitions)
}

/// If the line is an error line that an earlier step wrote, returns its error.
fn refuse_error_line(fields: &Fields) -> Result<()> {
    match fields.get("error").and_then(Value::as_str) {
        Some(error) if !fields.contains_key("topics") => Err(match error.split_once(": ") {
            Some((path, problem)) => GroupError::new(path, problem),
            None => GroupError::new("error", error),
        }),
        _ => Ok(()),
    }
}

fn topic<'a>(builder: &mut GroupBuilder<'a>, value: &'a Value, at: &str) -> Result<()> {
    let fields = object(value, at)?;
    let name = string(fields, "name", at)?;
    let count = required(fields, "partitions", at)?;
    let count = integer(count, || path(at, "partitions"), "count", 0, i32::MAX)?;
    builder.topic(name, count as u32);
    if present(fields, "racks").is_some() {
        builder.topic_racks();
        for_each(fields, "racks", at, |value, at| racks(builder, value, at))?;
    }
    let topic_id = optional_string(fields, "topic_id", at)?;
    let mut initialized = None;
    if present(fields, "initialized").is_some() {
        let partitions = initialized.insert(Vec::new());
        each_partition(fields, "initialized", at, |partition| {
            partitions.push(partition)
        })?;
    }
    builder.broker_fields(topic_id, initialized);
    Ok(())
}

fn racks<'a>(builder: &mut GroupBuilder<'a>, value: &'a Value, at: &str) -> Result<()> {
    if value.is_null() {
        builder.replica_racks(std::iter::empty());
        return Ok(());
    }
    let values = array(value, || at.into())?;
    for (i, value) in values.iter().enumerate() {
        if !value.is_null() {
            text(value, || format!("{at}[{i}]"))?;
        }
    }
    builder.replica_racks(values.iter().filter_map(Value::as_str));
    Ok(())
}

/// A topic id given with a member's owned partitions: its path, the topic's name, and the id.
type IdBesideOwned<'a> = (String, &'a str, &'a str);

fn member<'a>(
    builder: &mut GroupBuilder<'a>,
    ids: &mut Vec<IdBesideOwned<'a>>,
    value: &'a Value,
    at: &str,
) -> Result<()> {
    let fields = object(value, at)?;
    let member_id = string(fields, "member_id", at)?;
    let group_instance_id = optional_string(fields, "group_instance_id", at)?;
    let client_id = optional_string(fields, "client_id", at)?;
    optional_string(fields, "client_host", at)?;
    let topics = strings(fields, "topics", at)?;
    let mut owned = Vec::new();
    let (mut owned_topics, mut is_whole) = (Vec::new(), true);
    if present(fields, "owned_partitions").is_some() {
        for_each(fields, "owned_partitions", at, |value, at| {
            let fields = object(value, at)?;
            let topic = string(fields, "topic", at)?;
            let before = owned.len();
            owned_topics.push(topic);
            each_partition(fields, "partitions", at, |partition| {
                owned.push((topic, partition))
            })?;
            is_whole &= owned.len() > before;
            if let Some(topic_id) = optional_string(fields, "topic_id", at)? {
                ids.push((path(at, "topic_id"), topic, topic_id));
            }
            Ok(())
        })?;
    }
    builder.member(MemberFields {
        member_id,
        group_instance_id,
        client_id,
        generation_id: generation(fields, "generation_id", at)?,
        rack_id: optional_string(fields, "rack_id", at)?,
        as_sent: as_sent(fields, at)?,
    });
    builder.subscribe_to(topics.into_iter());
    for (topic, partition) in owned {
        let topic = builder.owned_id(topic);
        builder.own(topic, partition);
    }
    if !is_whole {
        let topics = owned_topics
            .into_iter()
            .map(|topic| builder.owned_id(topic));
        let topics: Vec<_> = topics.collect();
        builder.own_topics(&topics);
    }
    streams_member(builder, fields, at)
}

/// Reads the fields of a topology.
fn topology<'a>(builder: &mut GroupBuilder<'a>, fields: &'a Fields) -> Result<()> {
    if present(fields, "subtopologies").is_some() {
        builder.topology();
        for_each(fields, "subtopologies", "", |value, at| {
            let fields = object(value, at)?;
            let subtopology_id = string(fields, "subtopology_id", at)?;
            let tasks = required(fields, "tasks", at)?;
            let tasks = integer(tasks, || path(at, "tasks"), "count", 1, i32::MAX)?;
            let stateful = present(fields, "stateful").map_or(Ok(false), |value| {
                let problem = || format!("{} is not true or false", kind(value));
                let wrong = || GroupError::new(path(at, "stateful"), problem());
                value.as_bool().ok_or_else(wrong)
            })?;
            builder.subtopology(subtopology_id, tasks as u32, stateful);
            Ok(())
        })?;
    }
    if let Some(replicas) = present(fields, "num_standby_replicas") {
        let place = || "num_standby_replicas".into();
        builder.standby_replicas(integer(replicas, place, "count", 0, i32::MAX)? as u32);
    }
    Ok(())
}

/// Reads `STREAMS` of `group/group_fields.py`, which stands beside the fields of the member.
fn streams_member<'a>(builder: &mut GroupBuilder<'a>, fields: &'a Fields, at: &str) -> Result<()> {
    let Some(process_id) = optional_string(fields, "process_id", at)? else {
        return Ok(());
    };
    let mut member = StreamsMember {
        process_id,
        active_tasks: tasks(builder, fields, "active_tasks", at)?,
        standby_tasks: tasks(builder, fields, "standby_tasks", at)?,
        task_offsets: Vec::new(),
    };
    if present(fields, "task_offsets").is_some() {
        for_each(fields, "task_offsets", at, |value, at| {
            let fields = object(value, at)?;
            let topic = string(fields, "subtopology_id", at)?;
            let partition = required(fields, "partition", at)?;
            let partition = integer(
                partition,
                || path(at, "partition"),
                "partition",
                0,
                i32::MAX,
            )?;
            let task = builder.partition(topic, partition as u32);
            let value = required(fields, "offset", at)?;
            let offset = whole(
                value,
                || path(at, "offset"),
                "task offset",
                i64::MIN,
                i64::MAX,
            )?;
            member.task_offsets.push((task, offset));
            Ok(())
        })?;
    }
    builder.streams_member(member);
    Ok(())
}

fn tasks<'a>(
    builder: &mut GroupBuilder<'a>,
    fields: &'a Fields,
    name: &str,
    at: &str,
) -> Result<Vec<TopicPartition>> {
    let mut tasks = Vec::new();
    if present(fields, name).is_some() {
        for_each(fields, name, at, |value, at| {
            let fields = object(value, at)?;
            let topic = string(fields, "subtopology_id", at)?;
            each_partition(fields, "partitions", at, |partition| {
                tasks.push(builder.partition(topic, partition));
            })
        })?;
    }
    Ok(tasks)
}

fn as_sent(fields: &Fields, at: &str) -> Result<AsSent> {
    let version = present(fields, "subscription_version").map(|value| {
        let place = || path(at, "subscription_version");
        let newest = i32::from(NEWEST_SUBSCRIPTION);
        integer(value, place, "subscription version", 0, newest).map(|version| version as u8)
    });
    let version = version.transpose()?;
    let user_data = optional_string(fields, "user_data", at)?.map(|name| {
        let wrong = |problem| GroupError::new(path(at, "user_data"), problem);
        UserData::by_name(name).map_err(wrong)
    });
    Ok(AsSent {
        subscription_version: version,
        user_data: user_data.transpose()?,
        user_data_generation_id: generation(fields, "user_data_generation_id", at)?,
        library: optional_string(fields, "client_library", at)?.and_then(Library::by_name),
        ..AsSent::default()
    })
}

// Fields and types

fn path(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.into()
    } else {
        format!("{at}.{name}")
    }
}

fn present<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn required<'a>(fields: &'a Fields, name: &str, at: &str) -> Result<&'a Value> {
    present(fields, name).ok_or_else(|| GroupError::new(path(at, name), "missing"))
}

fn string<'a>(fields: &'a Fields, name: &str, at: &str) -> Result<&'a str> {
    text(required(fields, name, at)?, || path(at, name))
}

fn optional_string<'a>(fields: &'a Fields, name: &str, at: &str) -> Result<Option<&'a str>> {
    let value = present(fields, name);
    value
        .map(|value| text(value, || path(at, name)))
        .transpose()
}

fn generation(fields: &Fields, name: &str, at: &str) -> Result<Option<i32>> {
    let value = present(fields, name);
    let read = |value| integer(value, || path(at, name), "generation", i32::MIN, i32::MAX);
    value.map(read).transpose()
}

fn strings<'a>(fields: &'a Fields, name: &str, at: &str) -> Result<Vec<&'a str>> {
    let values = array(required(fields, name, at)?, || path(at, name))?;
    let texts = values.iter().enumerate();
    texts
        .map(|(i, value)| text(value, || format!("{}[{i}]", path(at, name))))
        .collect()
}

fn for_each<'a>(
    fields: &'a Fields,
    name: &str,
    at: &str,
    mut item: impl FnMut(&'a Value, &str) -> Result<()>,
) -> Result<()> {
    let values = array(required(fields, name, at)?, || path(at, name))?;
    let mut at = path(at, name);
    let list = at.len();
    for (i, value) in values.iter().enumerate() {
        at.truncate(list);
        write!(at, "[{i}]").expect("writing to memory does not fail");
        item(value, &at)?;
    }
    Ok(())
}

/// Reads a list of partition numbers. These are most of a long line, so a number's path is made
/// only if the number is wrong.
fn each_partition(fields: &Fields, name: &str, at: &str, mut item: impl FnMut(u32)) -> Result<()> {
    let values = array(required(fields, name, at)?, || path(at, name))?;
    for (i, value) in values.iter().enumerate() {
        let place = || format!("{}[{i}]", path(at, name));
        item(integer(value, place, "partition", 0, i32::MAX)? as u32);
    }
    Ok(())
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Fields> {
    let problem = || GroupError::new(at, format!("{} is not an object", kind(value)));
    value.as_object().ok_or_else(problem)
}

fn array(value: &Value, at: impl FnOnce() -> String) -> Result<&Vec<Value>> {
    let problem = || GroupError::new(at(), format!("{} is not a list", kind(value)));
    value.as_array().ok_or_else(problem)
}

fn text(value: &Value, at: impl FnOnce() -> String) -> Result<&str> {
    let problem = || GroupError::new(at(), format!("{} is not a string", kind(value)));
    value.as_str().ok_or_else(problem)
}

fn integer(
    value: &Value,
    at: impl FnOnce() -> String,
    noun: &str,
    least: i32,
    most: i32,
) -> Result<i32> {
    whole(value, at, noun, least.into(), most.into()).map(|number| number as i32)
}

fn whole(
    value: &Value,
    at: impl FnOnce() -> String,
    noun: &str,
    least: i64,
    most: i64,
) -> Result<i64> {
    let Some(number) = value.as_number().filter(|number| !number.is_f64()) else {
        return Err(GroupError::new(
            at(),
            format!("{} is not a {noun}", kind(value)),
        ));
    };
    let fits = |number: &i64| (least..=most).contains(number);
    number.as_i64().filter(fits).ok_or_else(|| {
        let problem = format!("{number} is not a {noun} from {least} to {most}");
        GroupError::new(at(), problem)
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::String(_) => "a string",
        Value::Number(number) if number.is_f64() => "a number that is not whole",
        Value::Number(_) => "a number",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
    }
}

// Result and error lines

/// Writes the result line of a group, without a newline.
pub fn write_result(
    out: &mut impl Write,
    group: &GroupSpec,
    assignor: &str,
    answer: &Assignment,
) -> io::Result<()> {
    out.write_all(b"{\"group_id\":")?;
    write_string(out, group.group_id)?;
    out.write_all(b",\"assignor\":")?;
    write_string(out, assignor)?;
    out.write_all(b",\"assignment\":")?;
    // Each topic name is escaped only once, because names occur many times.
    let topics: Vec<Vec<u8>> = group
        .topics
        .iter()
        .map(|topic| {
            let mut name = Vec::new();
            write_string(&mut name, topic.name).map(|()| name)
        })
        .collect::<io::Result<_>>()?;
    write_lists(out, group, &topics, answer)?;
    if let Some(standby) = &answer.standby {
        out.write_all(b",\"standby\":")?;
        write_lists(out, group, &topics, standby)?;
    }
    if !answer.anomalies.is_empty() {
        out.write_all(b",\"anomalies\":[")?;
        for (i, anomaly) in answer.anomalies.iter().enumerate() {
            separate(out, i)?;
            out.write_all(b"{\"kind\":")?;
            write_string(out, anomaly.kind.name())?;
            out.write_all(b",\"topic\":")?;
            out.write_all(&topics[anomaly.partition.topic as usize])?;
            write!(out, ",\"partition\":{}", anomaly.partition.partition)?;
            out.write_all(b",\"member_id\":")?;
            match anomaly.member {
                Some(m) => write_string(out, group.members[m as usize].member_id)?,
                None => out.write_all(b"null")?,
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"}")
}

/// Writes each member's partitions; `topics` has the names in quotes.
fn write_lists(
    out: &mut impl Write,
    group: &GroupSpec,
    topics: &[Vec<u8>],
    answer: &Assignment,
) -> io::Result<()> {
    out.write_all(b"{")?;
    for (m, member) in group.members.iter().enumerate() {
        separate(out, m)?;
        write_string(out, member.member_id)?;
        out.write_all(b":[")?;
        for (i, tp) in answer.of(m as u32).iter().enumerate() {
            separate(out, i)?;
            out.write_all(b"[")?;
            out.write_all(&topics[tp.topic as usize])?;
            write!(out, ",{}]", tp.partition)?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"}")
}

/// Writes the error line of a group, without a newline.
pub fn write_error(
    out: &mut impl Write,
    group_id: Option<&str>,
    error: &GroupError,
) -> io::Result<()> {
    out.write_all(b"{\"group_id\":")?;
    match group_id {
        Some(group_id) => write_string(out, group_id)?,
        None => out.write_all(b"null")?,
    }
    out.write_all(b",\"error\":")?;
    write_string(out, &error.to_string())?;
    out.write_all(b"}")
}

/// The group id in a parsed line, which need not be a valid group; None if the id is missing or not
/// a string.
pub fn group_id(value: &Value) -> Option<&str> {
    value.get("group_id").and_then(Value::as_str)
}

fn separate(out: &mut impl Write, i: usize) -> io::Result<()> {
    out.write_all(if i > 0 { b"," } else { b"" })
}

fn write_string(out: &mut impl Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}
