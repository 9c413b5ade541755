// SPDX-License-Identifier: Apache-2.0
//! Makes nested Arrow columns for Spark's reader: all nullable, with list elements named "element".

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

const ELEMENT: &str = "element";

pub fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new(ELEMENT, item, true)))
}

pub fn fields<const N: usize>(named: [(&str, DataType); N]) -> Fields {
    named
        .into_iter()
        .map(|(name, data_type)| Field::new(name, data_type, true))
        .collect()
}

/// The ascending end offsets of lists. A null row is an empty list with its validity bit unset.
pub struct Ends(Vec<i32>);

impl Ends {
    pub fn new() -> Self {
        Self(vec![0])
    }

    pub fn push(&mut self, length: usize) {
        let last = self.0[self.0.len() - 1];
        self.0.push(last + length as i32);
    }

    pub fn list(
        self,
        item: DataType,
        values: ArrayRef,
        nulls: Option<NullBufferBuilder>,
    ) -> ListArray {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.0));
        let field = Arc::new(Field::new(ELEMENT, item, true));
        let nulls = nulls.and_then(|mut nulls| nulls.finish());
        ListArray::new(field, offsets, values, nulls)
    }
}

pub fn structs<const N: usize>(fields: Fields, columns: [ArrayRef; N]) -> ArrayRef {
    Arc::new(StructArray::new(fields, columns.to_vec(), None))
}
