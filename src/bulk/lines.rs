// SPDX-License-Identifier: Apache-2.0
//! Mirror of `bulk/lines.py`: assigns groups in JSON lines, one group each; a bad line affects no
//! other line.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::assignors::{Assignor, assign_with_fields};
use crate::error::GroupError;
use crate::group::contract;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::json::Texts;
use crate::return_freed_memory;

#[derive(Clone, Copy)]
pub struct Options {
    /// If set, this assignor is run instead of the groups' own.
    pub assignor: Option<Assignor>,
    pub max_partitions: u64,
    /// The largest number of threads. With 1, all work is done on the caller's thread.
    pub threads: usize,
}

pub struct LineAnswer {
    /// A result or error line, without a newline.
    pub line: Vec<u8>,
    pub is_error: bool,
}

/// Assigns the groups in lines, in order; `first` is the number of the first line, for errors.
pub fn assign_lines(lines: &[&[u8]], first: u64, options: Options) -> Vec<LineAnswer> {
    in_parallel(lines.len(), options.threads, |i| {
        assign_line(lines[i], first + i as u64, options)
    })
}

fn assign_line(line: &[u8], number: u64, options: Options) -> LineAnswer {
    let parsed = contract::parse(line);
    let done = parsed.as_ref().map_err(Clone::clone).and_then(|value| {
        let group = contract::from_value(value, options.max_partitions)?;
        let (assignor, answer, more) = assign_with_fields(&group, options.assignor)?;
        let mut out = Vec::with_capacity(about_bytes(&group, &answer));
        contract::write_result(&mut out, &group, assignor.name(), &answer, &more).expect(IN_MEMORY);
        Ok(out)
    });
    let is_error = done.is_err();
    let group_id = || parsed.as_ref().ok().and_then(contract::group_id);
    LineAnswer {
        line: done.unwrap_or_else(|error| error_line(group_id(), error, number)),
        is_error,
    }
}

const IN_MEMORY: &str = "writing to memory does not fail";
const PIECE_BYTES: usize = 1 << 20;

/// Assigns one line's group as `assign_lines` does, but passes the result line to `write` in
/// pieces: it can be many times longer than the input line. If the line is wrong or the assignor
/// fails, writes nothing and returns the error line.
///
/// The parsed line is freed before the assignor begins: it can be twice as large as the input line.
pub fn assign_long_line(
    line: &[u8],
    number: u64,
    options: Options,
    write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Option<Vec<u8>>> {
    let mut texts = Texts::default();
    let value = match contract::parse_with(line, &mut texts) {
        Ok(value) => value,
        Err(error) => return Ok(Some(error_line(None, error, number))),
    };
    let group = match contract::from_value(&value, options.max_partitions) {
        Ok(group) => names_kept_by(&texts, group),
        Err(error) => return Ok(Some(error_line(contract::group_id(&value), error, number))),
    };
    drop(value);
    return_freed_memory();
    let (assignor, answer, more) = match assign_with_fields(&group, options.assignor) {
        Ok(answered) => answered,
        Err(error) => return Ok(Some(error_line(Some(group.group_id), error, number))),
    };
    let mut out = Pieces {
        piece: Vec::with_capacity(PIECE_BYTES),
        write,
    };
    contract::write_result(&mut out, &group, assignor.name(), &answer, &more)?;
    out.flush()?;
    Ok(None)
}

/// Returns the group with names that live as long as `texts`, so that the value can be freed
/// earlier.
fn names_kept_by<'t>(_: &'t Texts, group: GroupSpec<'_>) -> GroupSpec<'t> {
    // SAFETY: a group borrows nothing but names, and `texts` keeps all the value's strings alive
    // for `'t`.
    unsafe { std::mem::transmute::<GroupSpec<'_>, GroupSpec<'t>>(group) }
}

/// Collects pieces of about `PIECE_BYTES`. Unlike a `BufWriter`, it writes nothing when it is
/// dropped, so nothing is written after an error.
struct Pieces<F> {
    piece: Vec<u8>,
    write: F,
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for Pieces<F> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.piece.len() + text.len() > PIECE_BYTES {
            self.flush()?;
        }
        self.piece.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        (self.write)(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

fn error_line(group_id: Option<&str>, error: GroupError, number: u64) -> Vec<u8> {
    let error = match error.path.as_str() {
        "line" => GroupError::new(format!("line {number}"), error.problem),
        _ => error,
    };
    let mut out = Vec::new();
    contract::write_error(&mut out, group_id, &error).expect(IN_MEMORY);
    out
}

/// Returns the approximate length of a result line. A buffer that grows needs up to three times its
/// content.
fn about_bytes(group: &GroupSpec, answer: &Assignment) -> usize {
    let names = answer.partitions.iter().map(|tp| {
        let name = group.topics[tp.topic as usize].name;
        name.len() + "[\"\",1234],".len()
    });
    let ids = group
        .members
        .iter()
        .map(|member| member.member_id.len() + "\"\":[],".len());
    names.sum::<usize>()
        + ids.sum::<usize>()
        + "{\"group_id\":,\"assignor\":,\"assignment\":}".len()
}

/// Returns `work(i)` for each `i` in `0..count`, in order. The threads are scoped: none outlives
/// the call, so that a later fork (as in Spark's Python workers) is safe.
pub fn in_parallel<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let threads = threads.clamp(1, count.max(1));
    if threads == 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Vec::new();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        break;
                    }
                    mine.push((i, work(i)));
                }
                done.lock()
                    .expect("no thread panics while it holds the lock")
                    .extend(mine);
            });
        }
    });
    let mut done = done.into_inner().expect("all threads have ended");
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, answer)| answer).collect()
}
