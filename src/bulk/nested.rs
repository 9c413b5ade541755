// SPDX-License-Identifier: Apache-2.0
//! Builds nested Arrow columns as Spark's reader does: all fields are nullable, and the element of
//! a list is named "element".

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, Int32Builder};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray};
use arrow_array::{RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{Field, Fields, Schema};

pub type Named<'a> = (&'a str, ArrayRef);

/// Makes a record batch from named columns. Spark reads the columns by position.
pub fn batch(columns: Vec<Named>) -> RecordBatch {
    let (fields, columns) = described(columns);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.expect("the fields describe the columns, which are of equal length")
}

/// Makes a column of structs. A struct is null if its bit in `valid` is not set; without `valid`,
/// none is null.
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

/// Makes a column with one string for each row; None becomes null.
pub fn texts<'a, R, T: AsRef<str>>(rows: &'a [R], of: impl Fn(&'a R) -> Option<T>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<StringArray>())
}

pub fn numbers<'a, N: ArrowPrimitiveType, R>(
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<N::Native>,
) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<PrimitiveArray<N>>())
}

#[derive(Default)]
pub struct Texts {
    bytes: Vec<u8>,
    lengths: Lengths,
}

impl Texts {
    #[inline]
    pub fn push(&mut self, text: Option<&str>) {
        self.bytes
            .extend_from_slice(text.unwrap_or_default().as_bytes());
        self.lengths.push(text.map(str::len));
    }

    /// Adds the last `count` strings again; none of them may be null.
    pub fn repeat(&mut self, count: usize) {
        let ends = &mut self.lengths.ends;
        let first = ends.len() - 1 - count;
        let added = self.bytes.len() as i32 - ends[first];
        self.bytes.extend_from_within(ends[first] as usize..);
        for at in first + 1..=first + count {
            ends.push(ends[at] + added);
            self.lengths.valid.append(true);
        }
    }

    pub fn finish(mut self) -> ArrayRef {
        i32::try_from(self.bytes.len()).expect("the texts of a batch have less than 2 GiB");
        let ends = OffsetBuffer::new(self.lengths.ends.into());
        let valid = self.lengths.valid.finish();
        // SAFETY: all strings are UTF-8, each end is the end of a whole string, and no end
        // overflowed.
        Arc::new(unsafe { StringArray::new_unchecked(ends, self.bytes.into(), valid) })
    }
}

/// The ends of a column's lists (or strings) in the array of all their values; and which are null.
pub struct Lengths {
    ends: Vec<i32>,
    valid: NullBufferBuilder,
}

impl Default for Lengths {
    fn default() -> Self {
        Self {
            ends: vec![0],
            valid: NullBufferBuilder::new(0),
        }
    }
}

impl Lengths {
    #[inline]
    pub fn push(&mut self, length: Option<usize>) {
        self.valid.append(length.is_some());
        self.ends.push(self.end() + length.unwrap_or(0) as i32);
    }

    fn extend(&mut self, more: usize) {
        *self.ends.last_mut().expect("a list was pushed") += more as i32;
    }

    fn end(&self) -> i32 {
        *self.ends.last().expect("the first list starts at 0")
    }

    pub fn list(mut self, values: ArrayRef) -> ArrayRef {
        let offsets = OffsetBuffer::new(self.ends.into());
        let element = Field::new("element", values.data_type().clone(), true);
        Arc::new(ListArray::new(
            Arc::new(element),
            offsets,
            values,
            self.valid.finish(),
        ))
    }
}

/// A column with the partitions of each member: `[{topic, partitions: [int]}]`.
#[derive(Default)]
pub struct Runs {
    of_member: Lengths,
    topic: Texts,
    of_run: Lengths,
    partition: Int32Builder,
}

impl Runs {
    /// Adds a member's partitions. Neighbours of one topic become one run; a topic may have several
    /// runs, because the order of the partitions is part of an answer.
    pub fn push<'t>(
        &mut self,
        entries: impl Iterator<Item = (Cow<'t, str>, impl Iterator<Item = i32>)>,
    ) {
        let mut count = 0;
        let mut last = None;
        for (topic, partitions) in entries {
            let before = self.partition.len();
            partitions.for_each(|partition| self.partition.append_value(partition));
            let added = self.partition.len() - before;
            if added > 0 && last.as_ref() == Some(&topic) {
                self.of_run.extend(added);
            } else if added > 0 {
                self.topic.push(Some(&topic));
                self.of_run.push(Some(added));
                last = Some(topic);
                count += 1;
            }
        }
        self.of_member.push(Some(count));
    }

    pub fn finish(mut self) -> ArrayRef {
        let partitions = self.of_run.list(Arc::new(self.partition.finish()));
        let topics = self.topic.finish();
        let runs = structs(vec![("topic", topics), ("partitions", partitions)], None);
        self.of_member.list(runs)
    }
}
