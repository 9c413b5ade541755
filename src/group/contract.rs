// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/contract.py`: reads the values of a contract line (docs/contract.md), and
//! writes the result line. Error messages equal Python's, except those of the JSON parser.

use std::io::{self, Write};

use crate::error::GroupError;
use crate::group::field_types::{Field, Input, Kind};
use crate::group::group_fields;
use crate::group::model::quoted;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::json::{Map as Fields, Texts, Value};

type Result<T, E = GroupError> = std::result::Result<T, E>;

pub fn parse(line: &[u8]) -> Result<Value> {
    parse_with(line, &mut Texts::default())
}

/// Parses a line as `parse` does, and adds its strings to `texts`, which can outlive the value.
pub fn parse_with(line: &[u8], texts: &mut Texts) -> Result<Value> {
    let text = std::str::from_utf8(line)
        .map_err(|error| GroupError::new("line", format!("not UTF-8: {error}")))?;
    Value::parse(text, texts).map_err(|error| GroupError::new("line", format!("not JSON: {error}")))
}

pub fn from_value(value: &Value, max_partitions: u64) -> Result<GroupSpec<'_>> {
    if let Value::Object(fields) = value {
        refuse_error_line(fields)?;
    }
    group_fields::read(value, max_partitions)
}

/// Returns an error if the line is an error line from an earlier step: the error that it contains.
fn refuse_error_line(fields: &Fields) -> Result<()> {
    match fields.get("error").and_then(Value::as_str) {
        Some(error) if fields.get("topics").is_none() => Err(match error.split_once(": ") {
            Some((path, problem)) => GroupError::new(path, problem),
            None => GroupError::new("error", error),
        }),
        _ => Ok(()),
    }
}

impl<'a> Input<'a> for &'a Value {
    fn fields<const N: usize>(
        &self,
        table: &'static [Field; N],
    ) -> Result<[Option<Self>; N], String> {
        let beside = |field: &Field| matches!(field.kind, Kind::Beside(_)).then_some(*self);
        let mut found = table.each_ref().map(beside);
        let Value::Object(fields) = self else {
            return Err(format!("{} is not an object", kind(self)));
        };
        // Most lines have their fields in the order of the table of fields. Of two fields with one
        // name, the last one counts.
        let mut next = 0;
        for (name, value) in fields.iter() {
            let is_named = |&i: &usize| table[i].name == name;
            let i = (next..N).chain(0..next).find(is_named);
            if let Some(i) = i.filter(|&i| table[i].is_in_lines()) {
                found[i] = (!value.is_null()).then_some(value);
                next = i + 1;
            }
        }
        Ok(found)
    }

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn text(&self) -> Result<&'a str, String> {
        let wrong = || format!("{} is not a string", kind(self));
        self.as_str().ok_or_else(wrong)
    }

    fn flag(&self) -> Result<bool, String> {
        match self {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(format!("{} is not true or false", kind(self))),
        }
    }

    fn whole(&self, of: &Kind) -> Result<i64, String> {
        match self {
            Value::Number(number) if !number.is_f64() => {
                number.as_i64().ok_or_else(|| of.outside(number))
            }
            _ => Err(format!("{} is not a {}", kind(self), of.noun())),
        }
    }

    fn number(&self, of: &Kind) -> Result<f64, String> {
        match self {
            // An integer beyond 2^53 is out of all bounds, even if it would be rounded down to
            // 2^53.
            Value::Number(number) if number.as_i64().is_some_and(|one| one > 1 << 53) => {
                Ok(f64::INFINITY)
            }
            Value::Number(number) => Ok(number.as_f64().unwrap_or(f64::INFINITY)),
            _ => Err(format!("{} is not a {}", kind(self), of.noun())),
        }
    }

    fn list(&self, _item: &'static Kind) -> Result<impl Iterator<Item = Self>, String> {
        match self {
            Value::Array(values) => Ok(values.iter()),
            _ => Err(format!("{} is not a list", kind(self))),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::String(_) => "a string",
        Value::Number(number) if number.is_f64() => "a number that is not whole",
        Value::Number(_) => "a number",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
    }
}

// Result and error lines

/// Writes the result line of a group, without a newline. `more` holds further fields, each after a
/// comma.
pub fn write_result(
    out: &mut impl Write,
    group: &GroupSpec,
    assignor: &str,
    answer: &Assignment,
    more: &str,
) -> io::Result<()> {
    let (id, assignor) = (quoted(group.group_id), quoted(assignor));
    write!(
        out,
        r#"{{"group_id":{id},"assignor":{assignor},"assignment":"#
    )?;
    // Each topic name is escaped only once, because names occur many times.
    let topics: Vec<String> = group.topic_names().into_iter().map(quoted).collect();
    write_lists(out, group, &topics, answer)?;
    if let Some(standby) = &answer.standby {
        out.write_all(b",\"standby\":")?;
        write_lists(out, group, &topics, standby)?;
    }
    if !answer.anomalies.is_empty() {
        out.write_all(b",\"anomalies\":[")?;
        for (i, anomaly) in answer.anomalies.iter().enumerate() {
            separate(out, i)?;
            let (kind, tp) = (anomaly.kind.name(), anomaly.partition);
            let (topic, partition) = (&topics[tp.topic as usize], tp.partition);
            write!(
                out,
                r#"{{"kind":"{kind}","topic":{topic},"partition":{partition},"#
            )?;
            let member = anomaly.member.map(|m| group.members[m as usize].member_id);
            write!(out, r#""member_id":{}}}"#, or_null(member))?;
        }
        out.write_all(b"]")?;
    }
    write!(out, "{more}}}")
}

/// Writes each member's list of partitions; `topics` contains the names in quotes.
fn write_lists(
    out: &mut impl Write,
    group: &GroupSpec,
    topics: &[String],
    answer: &Assignment,
) -> io::Result<()> {
    out.write_all(b"{")?;
    for (m, member) in group.members.iter().enumerate() {
        separate(out, m)?;
        serde_json::to_writer(&mut *out, member.member_id)?;
        out.write_all(b":[")?;
        for (i, tp) in answer.of(m as u32).iter().enumerate() {
            separate(out, i)?;
            out.write_all(b"[")?;
            out.write_all(topics[tp.topic as usize].as_bytes())?;
            write!(out, ",{}]", tp.partition)?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"}")
}

pub fn write_error(
    out: &mut impl Write,
    group_id: Option<&str>,
    error: &GroupError,
) -> io::Result<()> {
    let (id, error) = (or_null(group_id), quoted(&error.to_string()));
    write!(out, r#"{{"group_id":{id},"error":{error}}}"#)
}

fn or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".into(), quoted)
}

pub fn group_id(value: &Value) -> Option<&str> {
    value.get("group_id").and_then(Value::as_str)
}

fn separate(out: &mut impl Write, i: usize) -> io::Result<()> {
    out.write_all(if i > 0 { b"," } else { b"" })
}
