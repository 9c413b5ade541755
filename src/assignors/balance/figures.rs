// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/figures.py`: how good an answer from `balanced` or `weighted` is.

use super::balanced::{Objective, spreads_exactly};
use super::classes::{Classes, NO_CLASS};
use super::levels::levels;
use super::network::Criterion;
use crate::group::model::{NOBODY, quoted};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

/// The moves of an assignment, its partitions in rack, and how it spreads topics.
pub struct Counts {
    taken: u64,
    moves: u64,
    in_rack: u64,
    topic_pairs: u64,
}

impl Counts {
    pub fn of(group: &GroupSpec, classes: &Classes, answer: &Assignment) -> Self {
        let (mut taken, mut moves, mut in_rack, mut topic_pairs) = (0, 0, 0, 0);
        for (m, member) in group.members.iter().enumerate() {
            let owned = answer.of(m as u32);
            for &tp in owned {
                let owner = classes.owner(tp);
                moves += u64::from(owner != m as u32);
                taken += u64::from(owner != m as u32 && owner != NOBODY);
                let near = |rack| group.replica_racks(tp).contains(&rack);
                in_rack += u64::from(member.rack.is_some_and(near));
            }
            for of_topic in owned.chunk_by(|a, b| a.topic == b.topic) {
                topic_pairs += pairs(of_topic.len() as u64);
            }
        }
        Self {
            taken,
            moves,
            in_rack,
            topic_pairs,
        }
    }
}

/// Returns the field `balance` of the result line of `balanced`, after a comma.
pub fn balance_field(group: &GroupSpec, answer: &Assignment, objective: Objective) -> String {
    let classes = Classes::of(group);
    let counts = Counts::of(group, &classes, answer);
    let members = 0..group.members.len() as u32;
    let greatest = members
        .map(|m| answer.of(m).len())
        .max()
        .unwrap_or(0)
        .to_string();
    let within = objective.budget.is_some() && is_less_even(&classes, answer);
    let is_last = objective.prefer[2] == Criterion::Topics;
    let is_spread = is_last && counts.topic_pairs == least_pairs(group, &classes);
    let exact = !within && (spreads_exactly(&classes) || is_spread);
    field(
        [&greatest, &greatest, &"1.0".into()],
        &counts,
        (exact, false),
        within.then_some("budget"),
    )
}

/// Formats the field `balance`: greatest, bound and gap, the counts, whether the answer is exact
/// and whether the search was exhausted, and why owners kept their partitions.
pub fn field(
    [greatest, bound, gap]: [&String; 3],
    counts: &Counts,
    (exact, exhausted): (bool, bool),
    kept_because: Option<&str>,
) -> String {
    let Counts {
        taken,
        moves,
        in_rack,
        topic_pairs,
    } = counts;
    let kept_because = kept_because.map_or("null".into(), quoted);
    format!(
        r#","balance":{{"greatest":{greatest},"bound":{bound},"gap":{gap},"taken":{taken},"moves":{moves},"in_rack":{in_rack},"topic_pairs":{topic_pairs},"exact":{exact},"exhausted":{exhausted},"kept_because":{kept_because}}}"#
    )
}

fn is_less_even(classes: &Classes, answer: &Assignment) -> bool {
    let members = 0..classes.class_of_member.len() as u32;
    let loads = members.map(|m| answer.of(m).len() as i64);
    let least = levels(classes).into_iter().map(|level| {
        let sizes = level
            .members
            .iter()
            .map(|&k| classes.members[k as usize].len() as i64);
        let less = (level.load - 1).max(0);
        level.extra * level.load * level.load + (sizes.sum::<i64>() - level.extra) * less * less
    });
    loads.map(|load| load * load).sum::<i64>() > least.sum()
}

fn pairs(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

/// Returns the least possible `topic_pairs`: each topic spread as evenly as if it were alone.
fn least_pairs(group: &GroupSpec, classes: &Classes) -> u64 {
    let topics = group.topics.iter().zip(&classes.class_of_topic);
    let spread = topics.filter(|&(_, &c)| c != NO_CLASS).map(|(topic, &c)| {
        let sizes = classes.subscribers[c as usize].iter();
        let members: usize = sizes.map(|&k| classes.members[k as usize].len()).sum();
        let (each, more) = (
            u64::from(topic.partitions) / members as u64,
            u64::from(topic.partitions) % members as u64,
        );
        members as u64 * pairs(each) + more * each
    });
    spread.sum()
}
