// SPDX-License-Identifier: Apache-2.0
//! Checks Arrow data from another library before any of it is read. A reader of IPC streams may
//! pass on the bytes of a file without a check, so an offset can point anywhere.
//!
//! UTF-8 is not checked here: a string that is not UTF-8 fails only its own row (`Cell::text`).

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_buffer::ArrowNativeType;
use arrow_data::{ArrayData, ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::DataType;

/// Makes a record batch from imported structs. An error names the damaged column.
pub fn record_batch(data: ArrayData) -> Result<RecordBatch, String> {
    check(&data, "")?;
    let rows = StructArray::from(data);
    if rows.null_count() > 0 {
        return Err("rows of a record batch cannot be null".into());
    }
    Ok(RecordBatch::from(rows))
}

/// Checks an array, after its children.
fn check(data: &ArrayData, path: &str) -> Result<(), String> {
    let children = data.child_data();
    let outside = |fits| match fits {
        true => Ok(()),
        false => Err("an offset points outside of the values".to_owned()),
    };
    let checked = match data.data_type() {
        DataType::Struct(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (field, child) in fields.iter().zip(children) {
                check(child, &format!("{path}{dot}{}", field.name()))?;
            }
            let rows = data.offset() + data.len();
            let are_long = children.iter().all(|child| child.len() >= rows);
            are_long
                .then_some(())
                .ok_or_else(|| "a field is too short".into())
        }
        DataType::List(_) | DataType::LargeList(_) => {
            check(&children[0], &format!("{path}[]"))?;
            outside(match data.data_type() {
                DataType::List(_) => offsets_fit::<i32>(data, children[0].len()),
                _ => offsets_fit::<i64>(data, children[0].len()),
            })
        }
        DataType::Utf8 | DataType::Binary => {
            outside(offsets_fit::<i32>(data, data.buffers()[1].len()))
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            outside(offsets_fit::<i64>(data, data.buffers()[1].len()))
        }
        DataType::Utf8View | DataType::BinaryView => outside(views_fit(data)),
        // Numbers and booleans; and columns of other types, which are never read, but are part of
        // the batch.
        _ => data.validate_data().map_err(|error| error.to_string()),
    };
    let column = if path.is_empty() { "batch" } else { path };
    checked.map_err(|problem| {
        format!("{column}: damaged Arrow data: {problem}; read or write the data again")
    })
}

/// Whether the offsets ascend from at least 0 to at most `limit`. An empty array may have any
/// offsets, or none at all.
fn offsets_fit<T: ArrowNativeType + PartialOrd>(data: &ArrayData, limit: usize) -> bool {
    if data.is_empty() {
        return true;
    }
    let offsets: &[T] = data.buffers()[0].typed_data();
    let Some(own) = offsets.get(data.offset()..=data.offset() + data.len()) else {
        return false;
    };
    let last = own[data.len()].to_usize();
    // The loop never ends early, so the compiler can compare several offsets at once.
    let ascend = |fine, pair: &[T]| fine & (pair[0] <= pair[1]);
    own[0].to_usize().is_some()
        && last.is_some_and(|last| last <= limit)
        && own.windows(2).fold(true, ascend)
}

/// Whether each view is inline or within one of the buffers. The view of a null is not checked.
fn views_fit(data: &ArrayData) -> bool {
    let (views, buffers) = (&data.buffers()[0], &data.buffers()[1..]);
    let views: &[u128] = views.typed_data();
    let Some(own) = views.get(data.offset()..data.offset() + data.len()) else {
        return false;
    };
    own.iter().enumerate().all(|(i, &view)| {
        let view = ByteView::from(view);
        let end = u64::from(view.offset) + u64::from(view.length);
        let buffer = buffers.get(view.buffer_index as usize);
        view.length <= MAX_INLINE_VIEW_LEN
            || buffer.is_some_and(|buffer| end <= buffer.len() as u64)
            || data.is_null(i)
    })
}
