// SPDX-License-Identifier: Apache-2.0
//! Converts a group from Python objects to numbers once, for any number of calls.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use self_cell::self_cell;

use super::raise;
use crate::error::GroupError;
use crate::group::model::{AsSent, TopicPartition, UserData};
use crate::group::spec::{GroupBuilder, GroupSpec, MemberFields};
use crate::group::streams::StreamsMember;

/// The fields of `model.Topic`.
#[derive(FromPyObject)]
struct Topic {
    name: PyBackedStr,
    partitions: u32,
    racks: Option<Vec<Vec<Option<PyBackedStr>>>>,
    topic_id: Option<PyBackedStr>,
    initialized: Option<Vec<u32>>,
}

/// The fields of `model.Member` that assignors read.
#[derive(FromPyObject)]
struct Member {
    member_id: PyBackedStr,
    topics: Vec<PyBackedStr>,
    group_instance_id: Option<PyBackedStr>,
    client_id: Option<PyBackedStr>,
    owned_partitions: Vec<(PyBackedStr, u32)>,
    generation_id: Option<i32>,
    rack_id: Option<PyBackedStr>,
    subscription_version: Option<u8>,
    user_data: Option<PyBackedStr>,
    user_data_generation_id: Option<i32>,
    streams: Option<Streams>,
}

/// The fields of `model.Subtopology`.
#[derive(FromPyObject)]
struct Subtopology {
    subtopology_id: PyBackedStr,
    tasks: u32,
    stateful: bool,
}

/// The fields of `model.StreamsMember`.
#[derive(FromPyObject)]
struct Streams {
    process_id: PyBackedStr,
    active_tasks: Vec<(PyBackedStr, u32)>,
    standby_tasks: Vec<(PyBackedStr, u32)>,
    task_offsets: Vec<((PyBackedStr, u32), i64)>,
}

/// The fields of `spec.GroupSpec` that assignors read; the names stay in Python's memory.
#[derive(FromPyObject)]
pub struct Group {
    group_id: PyBackedStr,
    topics: Vec<Topic>,
    members: Vec<Member>,
    subtopologies: Option<Vec<Subtopology>>,
    num_standby_replicas: Option<u32>,
}

impl Group {
    /// Replaces names by numbers. The group was validated when the Python object was made.
    fn spec(&self) -> Result<GroupSpec<'_>, GroupError> {
        let mut builder = GroupBuilder::new(&self.group_id, None);
        for topic in &self.topics {
            builder.topic(&topic.name, topic.partitions);
            if let Some(racks) = &topic.racks {
                builder.topic_racks();
                for racks in racks {
                    builder.replica_racks(racks.iter().flatten().map(|rack| &**rack));
                }
            }
            builder.broker_fields(topic.topic_id.as_deref(), topic.initialized.clone());
        }
        for member in &self.members {
            builder.member(MemberFields {
                member_id: &member.member_id,
                group_instance_id: member.group_instance_id.as_deref(),
                client_id: member.client_id.as_deref(),
                rack_id: member.rack_id.as_deref(),
                generation_id: member.generation_id,
                as_sent: AsSent {
                    subscription_version: member.subscription_version,
                    // The name was validated when the Python object was made.
                    user_data: member
                        .user_data
                        .as_deref()
                        .and_then(|name| UserData::by_name(name).ok()),
                    user_data_generation_id: member.user_data_generation_id,
                    ..AsSent::default()
                },
            });
            for topic in &member.topics {
                let topic = builder.subscribed_id(topic);
                builder.subscribe(topic);
            }
            for (topic, partition) in &member.owned_partitions {
                let topic = builder.owned_id(topic);
                builder.own(topic, *partition);
            }
            if let Some(streams) = &member.streams {
                streams.add_to(&mut builder);
            }
        }
        self.add_topology(&mut builder);
        builder.finish(u64::MAX)
    }

    fn add_topology<'a>(&'a self, builder: &mut GroupBuilder<'a>) {
        if let Some(subtopologies) = &self.subtopologies {
            builder.topology();
            for one in subtopologies {
                builder.subtopology(&one.subtopology_id, one.tasks, one.stateful);
            }
        }
        builder.standby_replicas(self.num_standby_replicas.unwrap_or(0));
    }
}

impl Streams {
    /// Adds the tasks to the last member.
    fn add_to<'a>(&'a self, builder: &mut GroupBuilder<'a>) {
        let mut tasks = |tasks: &'a [(PyBackedStr, u32)]| -> Vec<TopicPartition> {
            let numbered = tasks.iter().map(|(id, p)| builder.partition(id, *p));
            numbered.collect()
        };
        let active_tasks = tasks(&self.active_tasks);
        let standby_tasks = tasks(&self.standby_tasks);
        let offsets = self.task_offsets.iter();
        let task_offsets = offsets.map(|((id, p), offset)| (builder.partition(id, *p), *offset));
        let member = StreamsMember {
            process_id: &self.process_id,
            active_tasks,
            standby_tasks,
            task_offsets: task_offsets.collect(),
        };
        builder.streams_member(member);
    }
}

self_cell! {
    struct Cell {
        owner: Group,
        #[covariant]
        dependent: GroupSpec,
    }
}

/// A group in which numbers replace names.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct Interned(Cell);

impl Interned {
    pub fn spec(&self) -> &GroupSpec<'_> {
        self.0.borrow_dependent()
    }
}

/// Replaces a group's names by numbers. Python need not keep the group's objects.
#[pyfunction]
pub fn intern(py: Python<'_>, group: Group) -> PyResult<Interned> {
    let cell = py.detach(|| Cell::try_new(group, Group::spec));
    Ok(Interned(cell.map_err(|error| raise(py, &error))?))
}
