// SPDX-License-Identifier: Apache-2.0
//! Builds nested Arrow columns for Spark's reader: all fields are nullable, and the element of a
//! list is named "element".

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, Int32Builder, StringBuilder};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray};
use arrow_array::{RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Fields, Schema};

pub type Named<'a> = (&'a str, ArrayRef);

/// Makes a record batch of named columns. Spark takes the columns by position.
pub fn batch(columns: Vec<Named>) -> RecordBatch {
    let (fields, columns) = described(columns);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.expect("the fields describe the columns, which are of equal length")
}

/// Makes a column of structs; a struct is null where `valid` has no bit.
pub fn structs(columns: Vec<Named>, valid: Option<NullBuffer>) -> ArrayRef {
    let (fields, columns) = described(columns);
    Arc::new(StructArray::new(fields, columns, valid))
}

fn described(columns: Vec<Named>) -> (Fields, Vec<ArrayRef>) {
    let field = |(name, column): &Named| Field::new(*name, column.data_type().clone(), true);
    let fields = columns.iter().map(field).collect();
    let columns = columns.into_iter().map(|(_, column)| column);
    (fields, columns.collect())
}

/// Makes a column of texts, one from each row; None makes a null.
pub fn texts<'a, R, T: AsRef<str>>(rows: &'a [R], of: impl Fn(&'a R) -> Option<T>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<StringArray>())
}

/// Makes a column of numbers, one from each row; None makes a null.
pub fn numbers<'a, N: ArrowPrimitiveType, R>(
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<N::Native>,
) -> PrimitiveArray<N> {
    rows.iter().map(of).collect()
}

/// The lengths of the lists in a column; None is a null.
#[derive(Default)]
pub struct Lengths(Vec<Option<u32>>);

impl Lengths {
    pub fn push(&mut self, length: Option<usize>) {
        self.0.push(length.map(|length| length as u32));
    }

    /// Makes the last list longer.
    fn extend(&mut self, more: usize) {
        let last = self.0.last_mut().and_then(Option::as_mut);
        *last.expect("a list was pushed") += more as u32;
    }

    /// Makes the column of lists; `values` has the values of all lists.
    pub fn list(self, values: ArrayRef) -> ArrayRef {
        let lengths = self.0.iter().map(|length| length.unwrap_or(0) as usize);
        let offsets = OffsetBuffer::from_lengths(lengths);
        let element = Field::new("element", values.data_type().clone(), true);
        let valid: NullBuffer = self.0.iter().map(Option::is_some).collect();
        let nulls = (valid.null_count() > 0).then_some(valid);
        Arc::new(ListArray::new(Arc::new(element), offsets, values, nulls))
    }
}

/// A column with the partitions of each member: `[{topic, partitions: [int]}]`.
#[derive(Default)]
pub struct Runs {
    of_member: Lengths,
    topic: StringBuilder,
    of_run: Lengths,
    partition: Int32Builder,
}

impl Runs {
    /// Adds a member's partitions. Neighbours of one topic become one run; a topic may have several
    /// runs, because the order of the partitions is part of an answer.
    pub fn push<'t>(
        &mut self,
        entries: impl Iterator<Item = (&'t str, impl Iterator<Item = i32>)>,
    ) {
        let mut count = 0;
        let mut last = None;
        for (topic, partitions) in entries {
            let before = self.partition.len();
            partitions.for_each(|partition| self.partition.append_value(partition));
            let added = self.partition.len() - before;
            if added > 0 && last == Some(topic) {
                self.of_run.extend(added);
            } else if added > 0 {
                self.topic.append_value(topic);
                self.of_run.push(Some(added));
                last = Some(topic);
                count += 1;
            }
        }
        self.of_member.push(Some(count));
    }

    pub fn finish(mut self) -> ArrayRef {
        let partitions = self.of_run.list(Arc::new(self.partition.finish()));
        let topics = Arc::new(self.topic.finish());
        let runs = structs(vec![("topic", topics), ("partitions", partitions)], None);
        self.of_member.list(runs)
    }
}
