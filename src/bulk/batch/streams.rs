// SPDX-License-Identifier: Apache-2.0
//! Reads the columns of streams groups.

use super::cells::{count, count_from, element, optional_text, required, text};
use super::columns::{Booleans, Integers, Lists, SchemaError, Strings, Structs};
use crate::error::GroupError;
use crate::group::builder::GroupBuilder;
use crate::group::model::TopicPartition;
use crate::group::streams::StreamsMember;

/// The columns of a topology.
pub struct Topology<'a> {
    subtopologies: Lists<'a>,
    subtopology_id: Strings<'a>,
    tasks: Integers<'a>,
    stateful: Booleans<'a>,
    num_standby_replicas: Integers<'a>,
}

impl<'a> Topology<'a> {
    pub fn of(row: &Structs<'a>) -> Result<Self, SchemaError> {
        let subtopologies: Lists = row.column("subtopologies", false)?;
        let one = subtopologies.structs()?;
        Ok(Self {
            subtopology_id: one.column("subtopology_id", true)?,
            tasks: one.column("tasks", true)?,
            stateful: one.column("stateful", false)?,
            num_standby_replicas: row.column("num_standby_replicas", false)?,
            subtopologies,
        })
    }

    pub fn read(&self, builder: &mut GroupBuilder<'a>, row: usize) -> Result<(), GroupError> {
        if let Some(subtopologies) = self.subtopologies.get(row) {
            builder.topology();
            for (i, at) in subtopologies.enumerate() {
                let path = |field: &str| format!("subtopologies[{i}].{field}");
                let id = text(&self.subtopology_id, at, || path("subtopology_id"))?;
                let tasks = required(self.tasks.get(at), || path("tasks"))?;
                let tasks = count_from(1, tasks, "count", || path("tasks"))?;
                builder.subtopology(id, tasks, self.stateful.get(at).unwrap_or(false));
            }
        }
        if let Some(replicas) = self.num_standby_replicas.get(row) {
            let path = || "num_standby_replicas".into();
            builder.standby_replicas(count(replicas, "count", path)?);
        }
        Ok(())
    }
}

/// The columns of the members' processes and tasks.
pub struct Tasks<'a> {
    process_id: Strings<'a>,
    active: TaskLists<'a>,
    standby: TaskLists<'a>,
    offsets: Lists<'a>,
    subtopology_id: Strings<'a>,
    partition: Integers<'a>,
    offset: Integers<'a>,
}

impl<'a> Tasks<'a> {
    pub fn of(member: &Structs<'a>) -> Result<Self, SchemaError> {
        let offsets: Lists = member.column("task_offsets", false)?;
        let entry = offsets.structs()?;
        Ok(Self {
            process_id: member.column("process_id", false)?,
            active: TaskLists::of(member, "active_tasks")?,
            standby: TaskLists::of(member, "standby_tasks")?,
            subtopology_id: entry.column("subtopology_id", true)?,
            partition: entry.column("partition", true)?,
            offset: entry.column("offset", true)?,
            offsets,
        })
    }

    /// Reads the fields of the member that was added to `builder` last.
    pub fn read(
        &self,
        builder: &mut GroupBuilder<'a>,
        at: usize,
        path: impl Fn(&str) -> String,
    ) -> Result<(), GroupError> {
        let process_id = optional_text(&self.process_id, at, || path("process_id"))?;
        let Some(process_id) = process_id else {
            return Ok(());
        };
        let mut member = StreamsMember {
            process_id,
            active_tasks: self.active.read(builder, at, || path("active_tasks"))?,
            standby_tasks: self.standby.read(builder, at, || path("standby_tasks"))?,
            task_offsets: Vec::new(),
        };
        for (i, at) in self.offsets.get(at).unwrap_or(0..0).enumerate() {
            let path = |field: &str| format!("{}[{i}].{field}", path("task_offsets"));
            let id = text(&self.subtopology_id, at, || path("subtopology_id"))?;
            let partition = required(self.partition.get(at), || path("partition"))?;
            let partition = count(partition, "partition", || path("partition"))?;
            let offset = required(self.offset.get(at), || path("offset"))?;
            let task = builder.partition(id, partition);
            member.task_offsets.push((task, offset));
        }
        builder.streams_member(member);
        Ok(())
    }
}

struct TaskLists<'a> {
    entries: Lists<'a>,
    subtopology_id: Strings<'a>,
    partitions: Lists<'a>,
    partition: Integers<'a>,
}

impl<'a> TaskLists<'a> {
    fn of(member: &Structs<'a>, name: &str) -> Result<Self, SchemaError> {
        let entries: Lists = member.column(name, false)?;
        let entry = entries.structs()?;
        let partitions: Lists = entry.column("partitions", true)?;
        Ok(Self {
            subtopology_id: entry.column("subtopology_id", true)?,
            partition: partitions.elements()?,
            partitions,
            entries,
        })
    }

    fn read(
        &self,
        builder: &mut GroupBuilder<'a>,
        at: usize,
        path: impl Fn() -> String,
    ) -> Result<Vec<TopicPartition>, GroupError> {
        let mut tasks = Vec::new();
        for (i, at) in self.entries.get(at).unwrap_or(0..0).enumerate() {
            let path = |field: &str| format!("{}[{i}].{field}", path());
            let id = text(&self.subtopology_id, at, || path("subtopology_id"))?;
            let partitions = required(self.partitions.get(at), || path("partitions"))?;
            for (p, at) in partitions.enumerate() {
                let path = || format!("{}[{p}]", path("partitions"));
                let partition = element(self.partition.get(at), "partition", path)?;
                tasks.push(builder.partition(id, count(partition, "partition", path)?));
            }
        }
        Ok(tasks)
    }
}
