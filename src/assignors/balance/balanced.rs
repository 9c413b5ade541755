// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/balanced.py`: the most even load; then racks, moves and the spread
//! of each topic, in the steps that the Python module explains.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::budget::best_within;
use super::classes::Classes;
use super::levels::{ClassLevel, levels};
use super::network::{Criterion, HandedOut, Lots, fewest_taken, hub_members, level_flow};
use crate::error::GroupError;
use crate::group::model::{MemberId, NOBODY, TopicPartition, quoted};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "balanced";
const MOST_CELLS: i64 = 100_000;
const MOST_PARTITIONS: i64 = 5_000;

/// An order of the criteria, first to last.
pub type Prefer = [Criterion; 3];
pub const PREFER: Prefer = [Criterion::Rack, Criterion::Moves, Criterion::Topics];
const WITH_BUDGET: Prefer = [Criterion::Moves, Criterion::Rack, Criterion::Topics];

/// The criteria after the load, in order, and the number of partitions that may be taken from
/// owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    pub prefer: Prefer,
    pub budget: Option<Budget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    number: i64,
    is_percent: bool,
}

pub const OBJECTIVE: Objective = Objective {
    prefer: PREFER,
    budget: None,
};

/// Reads the settings of a name, such as `balanced?prefer=moves,rack,topics&budget=5%`; None for
/// other names.
pub fn objective_of(name: &str) -> Option<Result<Objective, GroupError>> {
    let settings = match name.split_once('?') {
        None => return (name == NAME).then_some(Ok(OBJECTIVE)),
        Some((NAME, settings)) => settings,
        Some(_) => return None,
    };
    Some(read(settings).ok_or_else(|| {
        let problem = format!(
            "{} has a wrong setting; give prefer=rack,moves,topics, with the three in any order; \
             or budget=3 or budget=5%, with moves first",
            quoted(name)
        );
        GroupError::new("assignor", problem)
    }))
}

fn read(settings: &str) -> Option<Objective> {
    let (mut prefer, mut budget) = (None, None);
    for setting in settings.split('&') {
        match setting.split_once('=')? {
            ("prefer", order) if prefer.is_none() => prefer = Some(order_of(order)?),
            ("budget", text) if budget.is_none() => budget = Some(budget_of(text)?),
            _ => return None,
        }
    }
    let default = if budget.is_some() {
        WITH_BUDGET
    } else {
        PREFER
    };
    let prefer = prefer.unwrap_or(default);
    let fits = budget.is_none() || prefer[0] == Criterion::Moves;
    fits.then_some(Objective { prefer, budget })
}

fn order_of(text: &str) -> Option<Prefer> {
    let criteria = text.split(',').map(|name| match name {
        "rack" => Some(Criterion::Rack),
        "moves" => Some(Criterion::Moves),
        "topics" => Some(Criterion::Topics),
        _ => None,
    });
    let read: Option<Vec<Criterion>> = criteria.collect();
    let read = Prefer::try_from(read?).ok()?;
    PREFER.iter().all(|one| read.contains(one)).then_some(read)
}

fn budget_of(text: &str) -> Option<Budget> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_whole && (1..=9).contains(&number.len())).then_some(Budget {
        number: number.parse().ok()?,
        is_percent: number.len() < text.len(),
    })
}

impl Budget {
    /// Returns the number of assigned partitions that may be taken.
    fn most_taken(self, partitions: i64) -> i64 {
        match self.is_percent {
            true => self.number * partitions / 100,
            false => self.number,
        }
    }
}

pub fn assign(group: &GroupSpec, objective: Objective) -> Assignment {
    let classes = Classes::of(group);
    let exact = spreads_exactly(&classes);
    let counts = |one: &Criterion| exact || *one != Criterion::Topics;
    let criteria: Vec<Criterion> = objective.prefer.into_iter().filter(counts).collect();
    let coarse = Lots::of(group, &classes, true, false);
    let cells = exact.then(|| Lots::of(group, &classes, true, true));
    let cells = cells.as_ref().unwrap_or(&coarse);
    let mut answer = vec![Vec::new(); group.members.len()];
    // 1. Find the levels of the best balance: sets of members, and their loads.
    for level in targets(group, &classes, objective) {
        // 3. Deal the partitions of a level whose members do not differ.
        if let Some(hub) = alike(&classes, &coarse, &level) {
            let nothing = FxHashMap::default();
            hand_out(
                group,
                &classes,
                &coarse,
                &level,
                (nothing, &[hub]),
                &mut answer,
            );
            continue;
        }
        // 2. Find the cheapest flow of each other level.
        let found = level_flow(&classes, cells, &level, &criteria);
        // 4. Turn numbers into partitions.
        let given = (found.keep, found.hubs.as_slice());
        hand_out(group, &classes, cells, &level, given, &mut answer);
    }
    sorted(group, answer)
}

/// Returns the levels of the best balance. If the budget is too small for it, returns one level
/// that contains all members, with the best loads within the budget.
fn targets(group: &GroupSpec, classes: &Classes, objective: Objective) -> Vec<ClassLevel> {
    let best = levels(classes);
    let partitions = classes.supply.iter().sum();
    let most = objective.budget.map(|budget| budget.most_taken(partitions));
    match most {
        Some(most) if fewest_taken(group, classes, &best) > most => {
            let loads = best_within(classes, most);
            vec![ClassLevel {
                load: loads.iter().copied().max().unwrap_or(0),
                extra: 0,
                topics: (0..classes.topics.len() as u32).collect(),
                members: (0..classes.members.len() as u32).collect(),
                loads,
            }]
        }
        _ => best,
    }
}

/// Returns the assignment with these lists, each sorted by topic name and partition number.
pub fn sorted(group: &GroupSpec, mut lists: Vec<Vec<TopicPartition>>) -> Assignment {
    for list in &mut lists {
        list.sort_unstable_by_key(by_place(group));
    }
    Assignment::of_lists(&lists)
}

fn by_place(group: &GroupSpec) -> impl Fn(&TopicPartition) -> (u32, u32) {
    let ranks = group.topic_ranks();
    |tp| (ranks[tp.topic as usize], tp.partition)
}

pub fn spreads_exactly(classes: &Classes) -> bool {
    let sizes = |of: &Vec<u32>| {
        of.iter()
            .map(|&k| classes.members[k as usize].len() as i64)
            .sum()
    };
    let sharers = classes.subscribers.iter().map(sizes);
    let cells = sharers
        .zip(&classes.supply)
        .map(|(n, count): (i64, _)| n * count);
    cells.sum::<i64>() <= MOST_CELLS && classes.supply.iter().sum::<i64>() <= MOST_PARTITIONS
}

fn alike(classes: &Classes, lots: &Lots, level: &ClassLevel) -> Option<HandedOut> {
    if level.members.len() > 1 || !level.loads.is_empty() {
        return None;
    }
    let here = lots.of_level(level);
    let hubs = hub_members(classes, lots, level, &here);
    let class = classes.class_of_member[hubs[0].members[0] as usize];
    let is_inside = |&(m, _): &(MemberId, i64)| classes.class_of_member[m as usize] == class;
    let lot = |&n: &u32| &lots.lots[n as usize];
    if hubs.len() > 1 || here.iter().any(|n| lot(n).held.iter().any(is_inside)) {
        return None;
    }
    let members = hubs[0].members.iter().enumerate();
    let less = (level.load - 1).max(0);
    let load = |i: usize| {
        if (i as i64) < level.extra {
            level.load
        } else {
            less
        }
    };
    Some(HandedOut {
        wanted: members.map(|(i, &m)| (m, load(i))).collect(),
        lots: here
            .iter()
            .map(|n| (*n, lot(n).partitions.len() as i64))
            .collect(),
    })
}

/// Adds the partitions of a level to `answer`. `given` holds the number of partitions of each lot
/// that each member keeps, and the hubs that hand out the others.
pub fn hand_out(
    group: &GroupSpec,
    classes: &Classes,
    lots: &Lots,
    level: &ClassLevel,
    given: (FxHashMap<(u32, MemberId), i64>, &[HandedOut]),
    answer: &mut [Vec<TopicPartition>],
) {
    let (keep, hubs) = given;
    let mut free: FxHashMap<u32, VecDeque<TopicPartition>> = FxHashMap::default();
    for n in lots.of_level(level) {
        let partitions = &lots.lots[n as usize].partitions;
        let mut left = Vec::new();
        let mut seen: FxHashMap<(MemberId, u32), u32> = FxHashMap::default();
        let mut turns: Vec<(MemberId, u32, TopicPartition)> = Vec::new();
        for &tp in partitions {
            match classes.owner(tp) {
                NOBODY => left.push(tp),
                m => {
                    let turn = seen.entry((m, tp.topic)).or_default();
                    turns.push((m, *turn, tp));
                    *turn += 1;
                }
            }
        }
        // The sort is stable: a member keeps the first partition of each topic, then the second.
        turns.sort_by_key(|&(m, turn, _)| (m, turn));
        for of_member in turns.chunk_by(|a, b| a.0 == b.0) {
            let m = of_member[0].0;
            let kept = keep.get(&(n, m)).copied().unwrap_or(0) as usize;
            let (kept, given_up) = of_member.split_at(kept);
            answer[m as usize].extend(kept.iter().map(|&(.., tp)| tp));
            left.extend(given_up.iter().map(|&(.., tp)| tp));
        }
        left.sort_unstable_by_key(by_place(group));
        free.insert(n, left.into());
    }
    for hub in hubs {
        let mut batch = Vec::new();
        for (n, count) in &hub.lots {
            if let Some(free) = free.get_mut(n) {
                batch.extend(free.drain(..*count as usize));
            }
        }
        batch.sort_unstable_by_key(by_place(group));
        let wanting = hub.wanted.iter().copied().filter(|&(_, wanted)| wanted > 0);
        let mut waiting: VecDeque<(MemberId, i64)> = wanting.collect();
        for tp in batch {
            let (m, wanted) = waiting.pop_front().expect("members want what the hub has");
            answer[m as usize].push(tp);
            if wanted > 1 {
                waiting.push_back((m, wanted - 1));
            }
        }
    }
}
