// SPDX-License-Identifier: Apache-2.0
//! Converts a group from Python objects to numbers once, for any number of calls.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use self_cell::self_cell;

use super::raise;
use crate::error::GroupError;
use crate::group::model::{AsSent, UserData};
use crate::group::spec::{GroupBuilder, GroupSpec, MemberFields};

/// The fields of `model.Topic`.
#[derive(FromPyObject)]
struct Topic {
    name: PyBackedStr,
    partitions: u32,
    racks: Option<Vec<Vec<Option<PyBackedStr>>>>,
    topic_id: Option<PyBackedStr>,
    initialized: Option<Vec<u32>>,
}

/// The fields of `model.Member`.
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
}

/// The fields of `model.GroupSpec`; the names stay in Python's memory.
#[derive(FromPyObject)]
pub struct Group {
    group_id: PyBackedStr,
    topics: Vec<Topic>,
    members: Vec<Member>,
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
        }
        builder.finish(u64::MAX)
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
