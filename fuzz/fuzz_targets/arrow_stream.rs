// SPDX-License-Identifier: Apache-2.0
//! A batch of a damaged IPC stream is answered or refused. The stream is read without arrow's own
//! checks, as other libraries read one. Only buffers are damaged: a reader checks the lengths before.

#![no_main]

use _core::bulk::batch::{Form, assign_batch, compare_batch, plan_batch};
use _core::bulk::imported;
use _core::bulk::lines::Options;
use arrow_array::{Array, StructArray};
use arrow_ipc::reader::StreamReader;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_mutator!(|stream: &mut [u8], size: usize, _max_size: usize, _seed: u32| {
    if let Some(buffers) = buffers(&mut stream[..size]) {
        let mut changed = buffers.to_vec();
        let length = fuzzer_mutate(&mut changed, buffers.len(), buffers.len());
        buffers[..length].copy_from_slice(&changed[..length]);
    }
    size
});

/// The buffers of the first batch: they follow the message with the schema and that of the batch.
/// A message begins with 4 bytes that mark it, and its length.
fn buffers(stream: &mut [u8]) -> Option<&mut [u8]> {
    let mut start = 0;
    for _message in 0..2 {
        let length = stream.get(start + 4..start + 8)?.try_into().ok()?;
        start += 8 + u32::from_le_bytes(length) as usize;
    }
    stream.get_mut(start..)
}

fuzz_target!(|stream: &[u8]| {
    let Ok(reader) = StreamReader::try_new(stream, None) else {
        return;
    };
    // SAFETY: none of the values is read before `imported` has checked them.
    let reader = unsafe { reader.with_skip_validation(true) };
    for batch in reader.map_while(Result::ok).take(3) {
        let data = StructArray::from(batch).into_data();
        let Ok(batch) = imported::record_batch(data) else {
            continue;
        };
        let options = Options {
            assignor: None,
            max_partitions: 200,
            threads: 1,
        };
        let _ = assign_batch(&batch, options, Form::Columns, false);
        let _ = assign_batch(&batch, options, Form::Lines, false);
        let _ = plan_batch(&batch, Some(&["add-members=1".into()]), options, Form::Columns);
        let _ = compare_batch(&batch, &[], options, Form::Columns);
    }
});
