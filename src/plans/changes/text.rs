// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/text.py`: changes as short strings.

use super::bounces;
use super::change::Change;
use super::edits::error;
use super::members::{AddMembers, MOST_NEW_MEMBERS};
use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::model::quoted;

const VERBS: &str = "add-members, remove-members, remove-member, remove-rack, remove-client, \
    partitions, add-topics, remove-topics, resubscribe, switch-assignor, bounce-members, \
    switch-protocol";

impl Change {
    pub fn from_text(text: &str) -> Result<Self, GroupError> {
        let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
        let end = trimmed.find(['=', ' ']).unwrap_or(trimmed.len());
        let value = trimmed.get(end + 1..).unwrap_or("");
        Ok(match &trimmed[..end] {
            "add-members" => add_members(value)?,
            "remove-members" => Self::RemoveLast(at_least_one(value, "members")?),
            "remove-member" => Self::RemoveMember(some(value)?),
            "remove-rack" => Self::RemoveRack(some(value)?),
            "remove-client" => Self::RemoveClient(some(value)?),
            "partitions" => {
                let (topic, partitions) = topic_count(value, at_least_one)?;
                Self::AddPartitions { topic, partitions }
            }
            "add-topics" => {
                let topics = value.split(',').map(|topic| topic_count(topic, count));
                Self::AddTopics(topics.collect::<Result<_, _>>()?)
            }
            "remove-topics" => Self::RemoveTopics(topics(value)?),
            "resubscribe" => {
                // A topic's name contains no colon, but a member's name may.
                let (member, names) = match value.rsplit_once(':') {
                    Some((member, names)) => (Some(member.to_owned()), names),
                    None => (None, value),
                };
                Self::Resubscribe {
                    topics: topics(names)?,
                    member,
                }
            }
            "switch-assignor" => {
                let name = some(value)?;
                Assignor::by_name(&name).map_err(|unknown| error(unknown.problem))?;
                Self::SwitchAssignor(name)
            }
            "bounce-members" => {
                let (member, is_static, away_ms) = bounces::parse(value)?;
                Self::BounceMembers {
                    member,
                    is_static,
                    away_ms,
                }
            }
            "switch-protocol" => {
                let problem = "switch-protocol is planned for one group at a time, in Python";
                return Err(error(problem.to_owned()));
            }
            _ => {
                let problem = format!("{} begins with none of {VERBS}", quoted(text));
                return Err(error(problem));
            }
        })
    }
}

fn add_members(value: &str) -> Result<Change, GroupError> {
    let mut rest = value;
    let mut options: [(&str, Option<String>); 4] =
        ["rack", "client-id", "instance-id", "like"].map(|key| (key, None));
    let mut number = None;
    // The option whose value comes next; at first None, because the count comes before all options.
    let mut open: Option<usize> = None;
    loop {
        let found = (0..options.len()).filter_map(|o| {
            let at = rest.find(&format!(",{}=", options[o].0))?;
            Some((at, o))
        });
        let next = found.min();
        let said = &rest[..next.map_or(rest.len(), |(at, _)| at)];
        match open {
            None => number = Some(said),
            Some(o) if options[o].1.is_none() => options[o].1 = Some(said.to_owned()),
            Some(o) => return Err(error(format!("{}= is there twice", options[o].0))),
        }
        let Some((at, o)) = next else { break };
        rest = &rest[at + options[o].0.len() + 2..];
        open = Some(o);
    }
    let [(_, rack), (_, client_id), (_, instance_id), (_, like)] = options;
    let number = number.unwrap_or("");
    if let Some((_, more)) = number.split_once(',') {
        let key = quoted(more.split('=').next().unwrap_or(""));
        let problem =
            format!("{key} is not a key; the keys are rack, client-id, instance-id, like");
        return Err(error(problem));
    }
    let count = count(number, "members")?;
    if !(1..=MOST_NEW_MEMBERS).contains(&count) {
        let problem = format!("{count} is not a number of members from 1 to {MOST_NEW_MEMBERS}");
        return Err(error(problem));
    }
    Ok(Change::AddMembers(AddMembers {
        count,
        like,
        rack,
        client_id,
        instance_id,
    }))
}

fn topic_count(
    value: &str,
    read: fn(&str, &str) -> Result<u32, GroupError>,
) -> Result<(String, u32), GroupError> {
    match value.rsplit_once('=') {
        Some((topic, number)) if !topic.is_empty() => {
            Ok((topic.to_owned(), read(number, "partitions")?))
        }
        _ => Err(error(format!("{} is not TOPIC=N", quoted(value)))),
    }
}

fn topics(value: &str) -> Result<Vec<String>, GroupError> {
    let topics: Vec<String> = value.split(',').map(ToOwned::to_owned).collect();
    if topics.iter().any(String::is_empty) {
        return Err(error(format!("{} is not TOPIC,TOPIC,…", quoted(value))));
    }
    Ok(topics)
}

fn some(value: &str) -> Result<String, GroupError> {
    if value.is_empty() {
        return Err(error("a value is missing, as in add-members=2".into()));
    }
    Ok(value.to_owned())
}

fn count(text: &str, noun: &str) -> Result<u32, GroupError> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_number => Ok(number),
        _ => Err(error(format!("{} is not a number of {noun}", quoted(text)))),
    }
}

fn at_least_one(text: &str, noun: &str) -> Result<u32, GroupError> {
    match count(text, noun)? {
        0 => Err(error(format!("0 is not a number of {noun} from 1 on"))),
        number => Ok(number),
    }
}
