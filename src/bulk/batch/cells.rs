// SPDX-License-Identifier: Apache-2.0
//! Reads single values of columns. An error has the path of the field.

use super::columns::{NotUtf8, Strings};
use crate::error::GroupError;

pub fn required<T>(value: Option<T>, path: impl FnOnce() -> String) -> Result<T, GroupError> {
    value.ok_or_else(|| GroupError::new(path(), "missing"))
}

pub fn element<T>(
    value: Option<T>,
    noun: &str,
    path: impl FnOnce() -> String,
) -> Result<T, GroupError> {
    value.ok_or_else(|| GroupError::new(path(), format!("null is not a {noun}")))
}

pub fn optional_text<'a>(
    column: &Strings<'a>,
    at: usize,
    path: impl FnOnce() -> String,
) -> Result<Option<&'a str>, GroupError> {
    let not_utf8 = |_: NotUtf8| GroupError::new(path(), "not UTF-8");
    column.get(at).map_err(not_utf8)
}

pub fn text<'a>(
    column: &Strings<'a>,
    at: usize,
    path: impl Fn() -> String,
) -> Result<&'a str, GroupError> {
    required(optional_text(column, at, &path)?, path)
}

pub fn count(number: i64, noun: &str, path: impl FnOnce() -> String) -> Result<u32, GroupError> {
    count_from(0, number, noun, path)
}

/// A number from `least` to `i32::MAX`.
pub fn count_from(
    least: i64,
    number: i64,
    noun: &str,
    path: impl FnOnce() -> String,
) -> Result<u32, GroupError> {
    let fits = (least..=i64::from(i32::MAX)).contains(&number);
    fits.then_some(number as u32).ok_or_else(|| {
        GroupError::new(
            path(),
            format!("{number} is not a {noun} from {least} to {}", i32::MAX),
        )
    })
}
