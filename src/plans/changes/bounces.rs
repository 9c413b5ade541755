// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/bounces.py`: members that restart.
//!
//! The Rust core plays only groups whose leader assigns.

use std::borrow::Cow;

use super::draft::Draft;
use super::edits::{Follows, error, find_member};
use super::made_up::{Basis, MadeUp, not_empty, prefix_of};
use crate::error::GroupError;
use crate::group::model::quoted;

const AWAY_MS: u64 = 10_000;
const HEARTBEAT_MS: u64 = 3_000;
const LONGEST_MS: u64 = (1 << 31) - 1;
const LONGEST_TEXT: usize = 15;

pub fn bounce<'a>(
    group: &mut Draft<'a>,
    ids: &mut MadeUp,
    member: Option<&str>,
    is_static: Option<bool>,
    away_ms: Option<u64>,
    mut then: impl FnMut(&mut Draft<'a>, Follows, Option<String>) -> Result<(), GroupError>,
) -> Result<(), GroupError> {
    let bounced: Vec<Cow<'a, str>> = match member {
        Some(name) => vec![group.members[find_member(group, name)?].member_id.clone()],
        None => group.members.iter().map(|m| m.member_id.clone()).collect(),
    };
    let is_first = chance_to_be_first(away_ms, group.members.len()) > 0.5;
    for member_id in bounced {
        let place = group.members.iter().position(|m| m.member_id == member_id);
        let Some(m) = place else { continue };
        let instance = group.members[m].group_instance_id.clone();
        let name = not_empty(instance.as_deref())
            .unwrap_or(&member_id)
            .to_owned();
        if is_static.unwrap_or(instance.is_some()) {
            group.wait_for(group.members[m].owned.clone());
            // The member returns before its session times out: it gets a new member id and keeps
            // its place in the group (KIP-345).
            if let Some(instance) = instance {
                let taken = group.member_ids();
                let member_id = ids.newcomer(&instance, Basis::Known, &taken, true);
                group.members[m].member_id = Cow::Owned(member_id);
            }
            let cause = format!("{name} restarts as a static member: no rebalance");
            then(group, Follows::Nothing, Some(cause))?;
            continue;
        }
        let mut taken_id = None;
        let without_members = group.next_generation();
        let mut back = group.members.remove(m);
        let mut cause = format!("{name} leaves and comes back");
        // Without another member, there is no rebalance, but the group's generation still
        // increases.
        if group.members.is_empty() {
            group.generation_id = Some(without_members);
            taken_id = Some(back.member_id.clone());
        } else if is_first {
            taken_id = Some(back.member_id.clone()); // the rebalance after its leave has not ended
        } else {
            then(group, Follows::Rebalance, Some(format!("{name} leaves")))?;
            cause = format!("{name} comes back");
        }
        let prefix = prefix_of(back.client_id.as_deref(), &back.member_id);
        let name = not_empty(back.group_instance_id.as_deref()).unwrap_or(prefix);
        let mut taken = group.member_ids();
        taken.extend(taken_id.as_deref());
        let is_static = back.group_instance_id.is_some();
        back.member_id = Cow::Owned(ids.newcomer(name, Basis::Known, &taken, is_static));
        back.owned.clear();
        back.generation_id = None;
        back.as_sent.user_data_generation_id = None;
        group.members.push(back);
        then(group, Follows::Rebalance, Some(cause))?;
    }
    Ok(())
}

/// Returns the probability (0 to 1) that a member returns before all others have joined again.
fn chance_to_be_first(away_ms: Option<u64>, members: usize) -> f64 {
    let heard = (away_ms.unwrap_or(AWAY_MS) as f64 / HEARTBEAT_MS as f64).min(1.0);
    match members {
        0 | 1 => 1.0,
        _ => 1.0 - heard.powi(members as i32 - 1),
    }
}

/// The values of `bounce-members`: a member (None means all), whether it counts as static, and the
/// ms for which it is away.
type Bounced = (Option<String>, Option<bool>, Option<u64>);

pub fn parse(value: &str) -> Result<Bounced, GroupError> {
    let (value, away) = match value.split_once(",away=") {
        Some((value, away)) => (value, Some(duration(away)?)),
        None => (value, None),
    };
    if away.is_some_and(|ms| ms > LONGEST_MS) {
        return Err(error(format!(
            "away is more than {LONGEST_MS} milliseconds"
        )));
    }
    let (member, is_static) = if let Some(member) = value.strip_suffix(",static") {
        (member, Some(true))
    } else if let Some(member) = value.strip_suffix(",dynamic") {
        (member, Some(false))
    } else {
        (value, None)
    };
    let all = member.is_empty() || member == "*";
    Ok(((!all).then(|| member.to_owned()), is_static, away))
}

fn duration(text: &str) -> Result<u64, GroupError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let ms = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    match text[..digits].parse::<u64>() {
        Ok(number) if ms > 0 && text.len() <= LONGEST_TEXT => Ok(number.saturating_mul(ms)),
        _ => {
            let name = quoted(text);
            Err(error(format!(
                "{name} is not a duration; 250ms, 5s, 2m and 1h are"
            )))
        }
    }
}
