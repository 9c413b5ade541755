// SPDX-License-Identifier: Apache-2.0
//! Converts a group from Python objects to numbers once, for any number of calls.

use std::sync::Mutex;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use self_cell::self_cell;

use super::{listed, listed_or_none, raise};
use crate::error::GroupError;
use crate::group::builder::{GroupBuilder, MemberFields};
use crate::group::contract;
use crate::group::model::{AsSent, Library, TopicId, TopicPartition, UserData};
use crate::group::spec::GroupSpec;
use crate::group::streams::StreamsMember;
use crate::json::{Map, Value};

/// The fields of `model.Topic`.
#[derive(FromPyObject)]
struct Topic {
    name: PyBackedStr,
    partitions: u32,
    #[pyo3(from_py_with = lists_or_none)]
    racks: Option<Vec<Vec<Option<PyBackedStr>>>>,
    topic_id: Option<PyBackedStr>,
    #[pyo3(from_py_with = listed_or_none)]
    initialized: Option<Vec<u32>>,
}

/// The fields of `model.Member` that assignors and plans read.
#[derive(FromPyObject)]
struct Member {
    member_id: PyBackedStr,
    group_instance_id: Option<PyBackedStr>,
    client_id: Option<PyBackedStr>,
    #[pyo3(from_py_with = listed)]
    owned_partitions: Vec<(PyBackedStr, u32)>,
    #[pyo3(from_py_with = listed)]
    owned_topics: Vec<PyBackedStr>,
    generation_id: Option<i32>,
    rack_id: Option<PyBackedStr>,
    subscription_version: Option<u8>,
    user_data: Option<PyBackedStr>,
    user_data_generation_id: Option<i32>,
    client_library: Option<PyBackedStr>,
    streams: Option<Streams>,
}

fn lists_or_none<'py, T: FromPyObjectOwned<'py>>(
    given: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<Vec<T>>>> {
    let lists: Option<Vec<Bound<'py, PyAny>>> = listed_or_none(given)?;
    lists
        .map(|lists| lists.iter().map(listed).collect())
        .transpose()
}

/// The members, and their lists of topics. Members with equal lists one after another share one.
struct Members {
    lists: Vec<Vec<PyBackedStr>>,
    /// Each member with the index of its list.
    rows: Vec<(Member, usize)>,
}

impl<'py> FromPyObject<'_, 'py> for Members {
    type Error = PyErr;

    fn extract(members: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (mut lists, mut rows) = (Vec::new(), Vec::new());
        let mut last: Option<Bound<'py, PyAny>> = None;
        for member in members.try_iter()? {
            let member = member?;
            let topics = member.getattr(intern!(members.py(), "topics"))?;
            // Comparing two lists takes less time than reading one, most of all if their names are
            // the same objects.
            let shares = match &last {
                Some(last) => topics.eq(last)?,
                None => false,
            };
            if !shares {
                lists.push(listed(&topics)?);
                last = Some(topics);
            }
            rows.push((member.extract()?, lists.len() - 1));
        }
        Ok(Self { lists, rows })
    }
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
    #[pyo3(from_py_with = listed)]
    active_tasks: Vec<(PyBackedStr, u32)>,
    #[pyo3(from_py_with = listed)]
    standby_tasks: Vec<(PyBackedStr, u32)>,
    #[pyo3(from_py_with = listed)]
    task_offsets: Vec<((PyBackedStr, u32), i64)>,
}

/// The fields of `spec.GroupSpec` that assignors read; the names stay in Python's memory.
#[derive(FromPyObject)]
pub struct Group {
    group_id: PyBackedStr,
    #[pyo3(from_py_with = listed)]
    topics: Vec<Topic>,
    members: Members,
    #[pyo3(from_py_with = listed_or_none)]
    subtopologies: Option<Vec<Subtopology>>,
    num_standby_replicas: Option<u32>,
    rebalance_protocol: Option<PyBackedStr>,
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
        let mut last = None;
        for (member, list) in &self.members.rows {
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
                    library: member.client_library.as_deref().and_then(Library::by_name),
                    ..AsSent::default()
                },
            });
            if last.replace(*list) == Some(*list) {
                builder.subscribe_as_before();
            } else {
                builder.subscribe_to(self.members.lists[*list].iter().map(|topic| &**topic));
            }
            for (topic, partition) in &member.owned_partitions {
                let topic = builder.owned_id(topic);
                builder.own(topic, *partition);
            }
            let topics = member.owned_topics.iter();
            let topics: Vec<TopicId> = topics.map(|topic| builder.owned_id(topic)).collect();
            builder.own_topics(&topics);
            if let Some(streams) = &member.streams {
                streams.add_to(&mut builder);
            }
        }
        self.add_topology(&mut builder);
        builder.eager(self.rebalance_protocol.as_deref() == Some("eager"));
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

/// The owner of a group's names.
enum Source {
    Objects(Group),
    /// A parsed contract line, and the most partitions that it may have.
    Line(Value, u64),
}

impl Source {
    fn spec(&self) -> Result<GroupSpec<'_>, GroupError> {
        match self {
            Self::Objects(group) => group.spec(),
            Self::Line(line, max_partitions) => contract::from_value(line, *max_partitions),
        }
    }
}

self_cell! {
    struct Cell {
        owner: Source,
        #[covariant]
        dependent: GroupSpec,
    }
}

/// By topic, and by partition: the TopicPartitions of a group that some answer had. The next answer
/// for the group has them again, which takes a tenth of the time of new ones.
pub type Kept = Vec<Vec<Option<Py<PyAny>>>>;

/// A group in which numbers replace names.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct Interned {
    cell: Cell,
    member_ids: PyOnceLock<Py<PyTuple>>,
    pub kept: Mutex<Kept>,
}

impl Interned {
    fn of(source: Source) -> Result<Self, GroupError> {
        Ok(Self {
            cell: Cell::try_new(source, Source::spec)?,
            member_ids: PyOnceLock::new(),
            kept: Mutex::default(),
        })
    }

    /// Reads a contract line; None if it is wrong.
    pub fn of_line(line: &[u8], max_partitions: u64) -> Option<Self> {
        let line = contract::parse(line).ok()?;
        Self::of(Source::Line(line, max_partitions)).ok()
    }

    pub fn spec(&self) -> &GroupSpec<'_> {
        self.cell.borrow_dependent()
    }

    /// The contract line, if the group comes from one.
    pub fn line(&self) -> Option<&Map> {
        match self.cell.borrow_owner() {
            Source::Line(line, _) => line.as_object(),
            Source::Objects(_) => None,
        }
    }
}

#[pymethods]
impl Interned {
    /// The ids of the members, in join order.
    #[getter]
    fn member_ids(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let make = || PyResult::Ok(PyTuple::new(py, self.spec().member_ids())?.unbind());
        Ok(self.member_ids.get_or_try_init(py, make)?.clone_ref(py))
    }
}

/// Replaces a group's names by numbers. Python need not keep the group's objects.
#[pyfunction]
pub fn intern(py: Python<'_>, group: Group) -> PyResult<Interned> {
    let interned = py.detach(|| Interned::of(Source::Objects(group)));
    interned.map_err(|error| raise(py, &error))
}
