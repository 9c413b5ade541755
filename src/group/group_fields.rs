// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/group_fields.py`: the fields of a group that the core reads, each stated once,
//! and the function that reads a group, in the order of this table.

use super::builder::GroupBuilder;
use super::field_types::{Bounds, Field, Form, Given, Input, Kind, PARTITION};
use super::model::{
    AsSent, Library, MemberId, NEWEST_SUBSCRIPTION, TopicId, TopicPartition, UNKNOWN, UserData,
};
use super::spec::GroupSpec;
use super::streams::{StreamsMember, Subtopology};
use crate::error::GroupError;

type Result<T> = std::result::Result<T, GroupError>;

const MAX: i64 = i32::MAX as i64;
pub const COUNT: Kind = Kind::Whole("count", 0, MAX);
pub const RACKS: Kind = Kind::List(&Kind::List(&Kind::Text));
const GENERATION: Kind = Kind::Whole("generation", i32::MIN as i64, MAX);
const VERSION: Kind = Kind::Whole("subscription version", 0, NEWEST_SUBSCRIPTION as i64);

static WEIGHT: Bounds = Bounds(
    "weight",
    0.0,
    9_007_199_254_740_992.0,
    "from 0 to 9007199254740992",
);
static CAPACITY: Bounds = Bounds("capacity", 1e-3, 1e9, "from 0.001 to 1000000000");

pub static TOPIC: [Field; 6] = [
    Field::required("name", Kind::Text),
    Field::required("partitions", COUNT),
    Field::new("racks", RACKS),
    Field::new("topic_id", Kind::Text),
    Field::new("initialized", Kind::List(&PARTITION)),
    Field::new("weights", Kind::List(&Kind::Number(&WEIGHT))),
];

static OWNED: [Field; 3] = [
    Field::required("topic", Kind::Topic),
    Field::required("partitions", Kind::List(&PARTITION)),
    Field::new("topic_id", Kind::Text),
];

static TASKS: [Field; 2] = [
    Field::required("subtopology_id", Kind::Text),
    Field::required("partitions", Kind::List(&PARTITION)),
];

pub static OFFSET: [Field; 3] = [
    Field::required("subtopology_id", Kind::Text),
    Field::required("partition", PARTITION),
    Field::required("offset", Kind::Whole("task offset", i64::MIN, i64::MAX)),
];

static STREAMS: [Field; 4] = [
    Field::new("process_id", Kind::Text),
    Field::new("active_tasks", Kind::List(&Kind::Run(&TASKS))),
    Field::new("standby_tasks", Kind::List(&Kind::Run(&TASKS))),
    Field::new("task_offsets", Kind::List(&Kind::Object(&OFFSET))),
];

pub static MEMBER: [Field; 15] = [
    Field::required("member_id", Kind::Text),
    Field::new("group_instance_id", Kind::Text),
    Field::new("client_id", Kind::Text),
    Field::only(Form::Lines, "client_host", Kind::Text),
    Field::required("topics", Kind::List(&Kind::Topic)),
    Field::new("owned_partitions", Kind::List(&Kind::Run(&OWNED))),
    Field::only(Form::Objects, "owned_topics", Kind::List(&Kind::Topic)),
    Field::new("generation_id", GENERATION),
    Field::new("rack_id", Kind::Text),
    Field::new("subscription_version", VERSION),
    Field::new("user_data", Kind::Text),
    Field::new("user_data_generation_id", GENERATION),
    Field::new("client_library", Kind::Text),
    Field::new("capacity", Kind::Number(&CAPACITY)),
    Field::new("streams", Kind::Beside(&STREAMS)),
];

static SUBTOPOLOGY: [Field; 3] = [
    Field::required("subtopology_id", Kind::Text),
    Field::required("tasks", Kind::Whole("count", 1, MAX)),
    Field::new("stateful", Kind::Flag),
];

pub static GROUP: [Field; 10] = [
    Field::required("group_id", Kind::Text),
    Field::only(Form::Lines, "generation_id", GENERATION),
    Field::new("assignor", Kind::Text),
    Field::new("leader_library", Kind::Text),
    Field::only(Form::Lines, "leader", Kind::Text),
    Field::new("rebalance_protocol", Kind::Text),
    Field::required("topics", Kind::List(&Kind::Object(&TOPIC))),
    Field::required("members", Kind::List(&Kind::Object(&MEMBER))),
    Field::new("subtopologies", Kind::List(&Kind::Object(&SUBTOPOLOGY))),
    Field::new("num_standby_replicas", COUNT),
];

/// Reads a group. `max_partitions` limits the partitions of all its topics together.
pub fn read<'a, I: Input<'a>>(group: I, max_partitions: u64) -> Result<GroupSpec<'a>> {
    let group = Given::whole_row(group);
    let [
        group_id,
        generation_id,
        assignor,
        leader_library,
        leader,
        protocol,
        topics,
        members,
        subtopologies,
        standby_replicas,
    ] = group.fields(&GROUP)?;
    let group_id = group_id.text()?;
    generation_id.optional_whole()?;
    let mut builder = GroupBuilder::new(group_id, assignor.optional_text()?);
    builder.group.leader_library = leader_library.optional_text()?.and_then(Library::by_name);
    leader.optional_text()?;
    let protocol = protocol.optional_text()?;
    for one in topics.list()? {
        topic(&mut builder, &one)?;
    }
    let mut ids = Vec::new();
    let mut last = None;
    for one in members.list()? {
        member(&mut builder, &mut ids, &mut last, &one)?;
    }
    if let Some(listed) = subtopologies.optional_list()? {
        let mut subtopologies = Vec::new();
        for one in listed {
            let [id, tasks, stateful] = one.fields(&SUBTOPOLOGY)?;
            let subtopology_id = id.text()?;
            subtopologies.push(Subtopology {
                subtopology_id,
                topic: builder.topic_id(subtopology_id),
                tasks: tasks.whole()? as u32,
                stateful: stateful.value.is_some() && stateful.flag()?,
            });
        }
        builder.group.streams.subtopologies = Some(subtopologies);
    }
    let replicas = standby_replicas.optional_whole()?.unwrap_or(0);
    builder.group.streams.num_standby_replicas = replicas as u32;
    for (path, topic, topic_id) in ids {
        let wrong = |problem| GroupError::new(path, problem);
        builder.id_beside_owned(topic, topic_id).map_err(wrong)?;
    }
    builder.rebalance_protocol(protocol)?;
    builder.finish(max_partitions)
}

fn topic<'a, I: Input<'a>>(builder: &mut GroupBuilder<'a>, topic: &Given<I>) -> Result<()> {
    let [name, partitions, racks, topic_id, initialized, weights] = topic.fields(&TOPIC)?;
    let name = name.text()?;
    builder.topic(name, partitions.whole()? as u32);
    if let Some(partitions) = racks.optional_list()? {
        builder.topic_racks();
        for replicas in partitions {
            if replicas.is_null() {
                builder.replica_racks(std::iter::empty())?;
            } else {
                let racks = replicas.list()?;
                let racks = racks.filter(|rack| !rack.is_null());
                builder.replica_racks(racks.map(|rack| rack.text()))?;
            }
        }
    }
    let topic_id = topic_id.optional_text()?;
    let initialized = initialized.optional_list()?.map(|partitions| {
        let partitions = partitions.map(|one| Ok(one.whole()? as u32));
        partitions.collect()
    });
    builder.broker_fields(topic_id, initialized.transpose()?);
    if let Some(given) = weights.optional_list()? {
        let weight = |one: Given<I>| match one.is_null() {
            true => Ok(UNKNOWN),
            false => one.number(),
        };
        let weights: Result<Vec<f64>> = given.map(weight).collect();
        builder.last_topic().weights = Some(weights?);
    }
    Ok(())
}

/// A topic id given with a member's owned partitions: its path, the topic's number, and the id.
type IdBesideOwned<'a> = (String, TopicId, &'a str);

/// Reads a member. `last` holds the list of topics of the member before.
fn member<'a, I: Input<'a>>(
    builder: &mut GroupBuilder<'a>,
    ids: &mut Vec<IdBesideOwned<'a>>,
    last: &mut Option<I>,
    member: &Given<I>,
) -> Result<()> {
    let [
        member_id,
        group_instance_id,
        client_id,
        client_host,
        topics,
        owned_partitions,
        owned_topics,
        generation_id,
        rack_id,
        version,
        user_data,
        user_data_generation_id,
        client_library,
        capacity,
        streams,
    ] = member.fields(&MEMBER)?;
    let (member_id, instance) = (member_id.text()?, group_instance_id.optional_text()?);
    builder.member(member_id, instance, client_id.optional_text()?);
    client_host.optional_text()?;
    let declared = builder.group.declared;
    if let (Some(topics), Some(last)) = (&topics.value, &*last)
        && topics.equals(last)
    {
        builder.subscribe_as_before();
    } else {
        builder.subscribe_to(topics.list()?.map(|one| one.topic(declared)))?;
        *last = topics.value.clone();
    }
    own(builder, ids, &owned_partitions)?;
    if let Some(topics) = owned_topics.optional_list()? {
        let topics = topics.map(|one| Ok(builder.owned_id(one.topic(declared)?)));
        let topics: Result<Vec<_>> = topics.collect();
        builder.own_topics(&topics?);
    }
    let generation = |given: &Given<I>| Ok(given.optional_whole()?.map(|one| one as i32));
    let (generation_id, rack_id) = (generation(&generation_id)?, rack_id.optional_text()?);
    let subscription_version = version.optional_whole()?.map(|version| version as u8);
    let by_name = |name| UserData::by_name(name).map_err(|problem| user_data.wrong(problem));
    let as_sent = AsSent {
        subscription_version,
        user_data: user_data.optional_text()?.map(by_name).transpose()?,
        user_data_generation_id: generation(&user_data_generation_id)?,
        library: client_library.optional_text()?.and_then(Library::by_name),
        ..AsSent::default()
    };
    builder.sent(generation_id, rack_id, as_sent);
    if let Some(capacity) = capacity.optional_number()? {
        builder.last_member().capacity = capacity;
    }
    match streams.value {
        Some(_) => streams_member(builder, &streams),
        None => Ok(()),
    }
}

fn own<'a, I: Input<'a>>(
    builder: &mut GroupBuilder<'a>,
    ids: &mut Vec<IdBesideOwned<'a>>,
    owned: &Given<I>,
) -> Result<()> {
    let (mut topics, mut is_whole) = (Vec::new(), true);
    for run in owned.optional_list()?.into_iter().flatten() {
        let [topic, partitions, topic_id] = run.fields(&OWNED)?;
        let topic = topic.topic(builder.group.declared)?;
        let topic = builder.owned_id(topic);
        topics.push(topic);
        let mut is_empty = true;
        for partition in partitions.list()? {
            builder.own(topic, partition.whole()? as u32);
            is_empty = false;
        }
        is_whole &= !is_empty;
        if let Some(id) = topic_id.optional_text()? {
            ids.push((topic_id.path.to_string(), topic, id));
        }
    }
    if !is_whole {
        builder.own_topics(&topics);
    }
    Ok(())
}

fn streams_member<'a, I: Input<'a>>(
    builder: &mut GroupBuilder<'a>,
    streams: &Given<I>,
) -> Result<()> {
    let [process_id, active_tasks, standby_tasks, task_offsets] = streams.fields(&STREAMS)?;
    let Some(process_id) = process_id.optional_text()? else {
        return Ok(());
    };
    let mut member = StreamsMember {
        process_id,
        active_tasks: tasks(builder, &active_tasks)?,
        standby_tasks: tasks(builder, &standby_tasks)?,
        task_offsets: Vec::new(),
    };
    for one in task_offsets.optional_list()?.into_iter().flatten() {
        let [id, partition, offset] = one.fields(&OFFSET)?;
        let task = builder.partition(id.text()?, partition.whole()? as u32);
        member.task_offsets.push((task, offset.whole()?));
    }
    let last = builder.group.members.len() as MemberId - 1;
    builder.group.streams.members.insert(last, member);
    Ok(())
}

fn tasks<'a, I: Input<'a>>(
    builder: &mut GroupBuilder<'a>,
    given: &Given<I>,
) -> Result<Vec<TopicPartition>> {
    let mut tasks = Vec::new();
    for run in given.optional_list()?.into_iter().flatten() {
        let [id, partitions] = run.fields(&TASKS)?;
        let id = id.text()?;
        for partition in partitions.list()? {
            tasks.push(builder.partition(id, partition.whole()? as u32));
        }
    }
    Ok(tasks)
}
