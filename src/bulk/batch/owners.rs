// SPDX-License-Identifier: Apache-2.0
//! Writes the answers of a batch as one list of owners for each group, the cheapest form for Spark.
//!
//! ```text
//! group_id | assignor | topics: [{name, partitions: int}] | members: [string] | owners: [int]
//! | error | error_kind
//! ```

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::Int32Builder;

use super::figures::error_columns;
use super::{Answer, Row};
use crate::bulk::nested::{Lengths, Texts, batch, structs, texts};

#[derive(Default)]
struct Columns {
    topics: Lengths,
    name: Texts,
    partitions: Int32Builder,
    members: Lengths,
    member_id: Texts,
    owners: Lengths,
    owner: Int32Builder,
}

pub fn write(rows: &[Row<Answer>]) -> RecordBatch {
    let mut lists = Columns::default();
    for (_, answer) in rows {
        lists.answer(answer.as_ref().ok());
    }
    let name = |row: &Row<Answer>| row.1.as_ref().ok().map(|answer| answer.assignor.name());
    let topics = vec![
        ("name", lists.name.finish()),
        ("partitions", Arc::new(lists.partitions.finish()) as _),
    ];
    let mut columns = vec![
        ("group_id", texts(rows, |row| row.0)),
        ("assignor", texts(rows, name)),
        ("topics", lists.topics.list(structs(topics, None))),
        ("members", lists.members.list(lists.member_id.finish())),
        ("owners", lists.owners.list(Arc::new(lists.owner.finish()))),
    ];
    columns.extend(error_columns(rows, |row| row.1.as_ref().err()));
    batch(columns)
}

impl Columns {
    fn answer(&mut self, answer: Option<&Answer>) {
        let group = answer.map(|answer| &answer.group);
        let topics = group.map(|group| &group.topics[..group.declared]);
        self.topics.push(topics.map(<[_]>::len));
        self.members.push(group.map(|group| group.members.len()));
        let Some(answer) = answer else {
            return self.owners.push(None);
        };
        // `starts[t]` is the index of topic t's partition 0 in `owners`.
        let mut starts = Vec::new();
        let mut total = 0;
        for topic in topics.unwrap_or_default() {
            self.name.push(Some(topic.name));
            self.partitions.append_value(topic.partitions as i32);
            starts.push(total);
            total += topic.partitions as usize;
        }
        let mut owners = vec![None; total];
        for (m, member) in answer.group.members.iter().enumerate() {
            self.member_id.push(Some(member.member_id));
            for tp in answer.assignment.of(m as u32) {
                // Sticky assignors may assign partitions that are claimed but do not exist.
                let exists = tp.partition < answer.group.topics[tp.topic as usize].partitions;
                if exists {
                    owners[starts[tp.topic as usize] + tp.partition as usize] = Some(m as i32);
                }
            }
        }
        self.owners.push(Some(total));
        owners
            .iter()
            .for_each(|&owner| self.owner.append_option(owner));
    }
}
