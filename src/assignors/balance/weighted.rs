// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/weighted.py`: the most even load by weights and capacities, in the
//! steps that the Python module explains.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::balanced::{self, OBJECTIVE, sorted};
use super::bound::{self, Owned};
use super::figures::{Counts, field};
use super::search::{Effort, Handed, Reach, State, bring_home, hand_out};
use super::small::{MOST_NODES, MOST_PARTS, fitting};
use super::weights::{Level, Loads, Place};
use crate::error::GroupError;
use crate::group::model::{NOBODY, quoted};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "weighted";
const MOST_WORK: i64 = 20_000_000;
const STARTS: u128 = 13;
const LARGE: usize = 1000;
const WHOLE: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    Partitions(u64),
    /// Millionths of the partitions that have a reader.
    Share(u64),
    None,
}

/// The settings of `weighted`; shares are in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    tolerance: u64,
    min_gain: u64,
    budget: Budget,
}

pub const OPTIONS: Options = Options {
    tolerance: 50_000,
    min_gain: 100_000,
    budget: Budget::Share(50_000),
};

/// Reads the settings of a name, such as `weighted?tolerance=5%&budget=3`; None for other names.
pub fn options_of(name: &str) -> Option<Result<Options, GroupError>> {
    let settings = match name.split_once('?') {
        None => return (name == NAME).then_some(Ok(OPTIONS)),
        Some((NAME, settings)) => settings,
        Some(_) => return None,
    };
    let mut options = OPTIONS;
    let mut given = Vec::new();
    let read = settings.split('&').try_for_each(|setting| {
        let (key, value) = setting.split_once('=')?;
        if given.contains(&key) {
            return None;
        }
        given.push(key);
        match (key, share(value)) {
            ("tolerance", Some(share)) if share <= WHOLE => options.tolerance = share,
            ("min-gain", Some(share)) if share <= WHOLE => options.min_gain = share,
            ("budget", Some(share)) => options.budget = Budget::Share(share),
            ("budget", None) if value == "none" => options.budget = Budget::None,
            ("budget", None) => options.budget = Budget::Partitions(number(value)?),
            _ => return None,
        }
        Some(())
    });
    Some(read.map(|()| options).ok_or_else(|| {
        let problem = format!(
            "{} has a wrong setting; give tolerance=5%, min-gain=10% or budget=5% (or =3, or \
             =none), with & between them, each once",
            quoted(name)
        );
        GroupError::new("assignor", problem)
    }))
}

/// Returns a share, such as 5% or 0.5%, in millionths; None for other strings.
fn share(text: &str) -> Option<u64> {
    let text = text.strip_suffix('%')?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 4 || !(decimals.is_empty() || number(decimals).is_some()) {
        return None;
    }
    Some(number(whole)? * 10_000 + number(&format!("{decimals:0<4}"))?)
}

fn number(text: &str) -> Option<u64> {
    let is_number = text.len() <= 9 && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// An assignment, its greatest level (of the fullest member), and why no more partitions were
/// taken.
#[derive(Default)]
struct Found {
    places: Vec<Place>,
    greatest: Level,
    bound: Level,
    exact: bool,
    exhausted: bool,
    kept_because: Option<&'static str>,
}

/// Returns the assignment, and the field `balance` of its result line after a comma.
pub fn answer(group: &GroupSpec, options: Options) -> (Assignment, String) {
    let loads = Loads::of(group);
    let found = solve(group, &loads, options);
    let mut lists = vec![Vec::new(); group.members.len()];
    for (&tp, &m) in loads.partitions.iter().zip(&found.places) {
        lists[loads.member(m) as usize].push(tp);
    }
    let answer = sorted(group, lists);
    let counts = Counts::of(group, &loads.classes, &answer);
    let shown = |level: Level| decimals((level * 1000 / loads.scale) << loads.shift);
    let gap = (found.greatest * 1000)
        .checked_div(found.bound)
        .unwrap_or(1000);
    let figures = [shown(found.greatest), shown(found.bound), decimals(gap)];
    let is = (found.exact, found.exhausted);
    let balance = field(figures.each_ref(), &counts, is, found.kept_because);
    (answer, balance)
}

/// Formats a number of thousandths as Python does. From 2^53 thousandths on, the decimals are
/// dropped.
fn decimals(thousandths: u128) -> String {
    match thousandths {
        n if n < 1 << 53 => format!("{:?}", n as f64 / 1000.0),
        n => (n / 1000).to_string(),
    }
}

/// Returns the best assignment for a group, in the steps of the Python module.
fn solve(group: &GroupSpec, loads: &Loads, options: Options) -> Found {
    let effort = Effort(Cell::new(MOST_WORK));
    let total = loads.parts.len();
    if total == 0 {
        return Found {
            exact: true,
            ..Found::default()
        };
    }
    let mut budget = match options.budget {
        Budget::None => total,
        Budget::Partitions(most) => most as usize,
        Budget::Share(share) => (total as u64 * share).div_ceil(WHOLE) as usize,
    };
    let mut rest = loads.without(&vec![false; loads.factor.len()], &loads.owner);
    let even = || balanced_places(group, loads, budget);
    let mut stage = Stage::new(&rest, options, budget, &effort);
    let mut first = stage.run(loads.owner.clone(), 0, Some(&even));
    let mut last = first.places.clone();
    let (mut area, mut alone) = (stage.area, stage.alone);
    // 5.
    while !rest.parts.is_empty() && effort.spend(0) {
        let mut gone = vec![false; loads.factor.len()];
        for (&i, &alone) in rest.parts.iter().zip(&alone) {
            gone[last[i as usize] as usize] |= alone > area;
        }
        if !gone.contains(&true) {
            break;
        }
        for &i in &rest.parts {
            let owner = rest.owner[i as usize];
            let is_settled =
                gone[last[i as usize] as usize] || owner != NOBODY && gone[owner as usize];
            budget -= usize::from(is_settled && rest.is_taken(i, last[i as usize]));
        }
        rest = rest.without(&gone, &last);
        if !rest.parts.is_empty() {
            let taken = rest.taken(&last);
            let mut stage = Stage::new(&rest, options, budget, &effort);
            last = stage.run(last, taken, None).places;
            (area, alone) = (stage.area, stage.alone);
        }
    }
    first.places = last;
    first.exhausted = !effort.spend(0);
    first
}

/// Returns the assignment of `balanced` with this budget, as places.
fn balanced_places(group: &GroupSpec, loads: &Loads, budget: usize) -> Vec<Place> {
    let name = format!("{}?budget={budget}", balanced::NAME);
    let is_limit = budget < loads.parts.len();
    let objective = is_limit.then(|| balanced::objective_of(&name)).flatten();
    let objective = objective.and_then(Result::ok).unwrap_or(OBJECTIVE);
    let answer = balanced::assign(group, objective);
    let mut readers = FxHashMap::default();
    for place in 0..loads.factor.len() as Place {
        let owned = answer.of(loads.member(place));
        readers.extend(owned.iter().map(|&tp| (tp, place)));
    }
    loads.partitions.iter().map(|tp| readers[tp]).collect()
}

/// Steps 1 to 4 for the partitions and members that are still to be decided.
struct Stage<'s> {
    loads: &'s Loads,
    options: Options,
    budget: usize,
    effort: &'s Effort,
    reach: Reach,
    owned: Vec<Owned>,
    area: Level,
    alone: Vec<Level>,
    free_bound: Level,
    bound: Level,
    target: Level,
}

/// A result's rank, lowest first: its greatest level (the target, if the level is lower), the taken
/// partitions, and the sums of squares of loads and of counts.
type Key = (Level, i64, u128, u128);
type Even<'e> = Option<&'e dyn Fn() -> Vec<Place>>;

impl<'s> Stage<'s> {
    fn new(loads: &'s Loads, options: Options, budget: usize, effort: &'s Effort) -> Self {
        // 1.
        let owned = bound::owned_by(loads);
        let (area, alone) = (bound::area(loads), bound::alone(loads));
        let alone_bound = alone.iter().copied().max().unwrap_or(0);
        let free_bound = alone_bound.max(area).max(bound::pigeonhole(loads));
        let mut bound = free_bound;
        if budget < owned.iter().map(|of| of.parts.len()).sum() {
            bound = bound::within_budget(loads, &owned, budget, bound);
        }
        let mut stage = Self {
            loads,
            options,
            budget,
            effort,
            reach: Reach::of(loads),
            owned,
            area,
            alone,
            free_bound,
            bound,
            target: 0,
        };
        stage.target = stage.above(bound);
        stage
    }

    fn above(&self, level: Level) -> Level {
        level * Level::from(WHOLE + self.options.tolerance) / Level::from(WHOLE)
    }

    /// Returns the best result. `start` takes `taken` partitions; `even` returns the answer of
    /// `balanced`, or is None.
    fn run(&mut self, start: Vec<Place>, taken: usize, even: Even) -> Found {
        // 2.
        let mut kept = self.best(std::iter::once(start), taken);
        if kept.greatest <= self.target {
            kept.kept_because = (!kept.exact).then_some("tolerance");
            return kept;
        }
        let whole = Level::from(WHOLE);
        let least = kept.greatest * (whole - Level::from(self.options.min_gain));
        if self.bound * whole > least {
            kept.kept_because = Some("min_gain");
            return kept;
        }
        // 3.
        let total = self.loads.parts.len();
        let is_free = total < LARGE && self.budget >= total;
        if is_free {
            self.target = self.bound;
        }
        let mut found = self.best(self.starts(&kept, even), self.budget);
        let level = self.above(found.greatest);
        if found.greatest < level && (is_free || self.target < found.greatest) {
            // From here on, the best level found determines the target, instead of the bound.
            self.target = level;
            let again = std::iter::once(found.places).chain(self.starts(&kept, even));
            found = self.best(again, self.budget);
        }
        // 4.
        if found.greatest * whole > least {
            kept.kept_because = Some("min_gain");
            return kept;
        }
        let is_short = found.greatest > self.above(self.free_bound) && self.bound > self.free_bound;
        found.kept_because = is_short.then_some("budget");
        found
    }

    fn starts<'e>(&self, kept: &Found, even: Even<'e>) -> impl Iterator<Item = Vec<Place>> {
        let mut home = kept.places.clone();
        for &i in &self.loads.parts {
            home[i as usize] = self.loads.owner[i as usize];
        }
        let emptied = move |gone: &[u32]| {
            let mut emptied = home.clone();
            for &i in gone {
                emptied[i as usize] = NOBODY;
            }
            emptied
        };
        let (greatest, low) = (kept.greatest, self.bound / 2);
        let (first, target) = (kept.places.clone(), self.target);
        (0..STARTS + 4).filter_map(move |n| match n {
            n if n <= STARTS => {
                let lower = |n: u128| greatest - (greatest - low) * n / STARTS;
                let level = n.checked_sub(1).map_or(target, lower);
                let gone = bound::shed(self.loads, &self.owned, level, self.budget)?;
                Some(emptied(&gone))
            }
            n if n == STARTS + 1 => Some(first.clone()),
            n if n == STARTS + 2 => even.map(|even| even()),
            _ => Some(emptied(&self.loads.parts)),
        })
    }

    /// Returns the best assignment found from these starts and, in small groups, by `search_whole`.
    fn best(&self, starts: impl Iterator<Item = Vec<Place>>, budget: usize) -> Found {
        let (loads, target) = (self.loads, self.target);
        let total = loads.parts.len();
        // In large groups, the first start that reaches the target is nearly always the best one,
        // so it is enough if it keeps the budget.
        let mut least = total;
        if total < LARGE {
            least = bound::shed(loads, &self.owned, target, total).map_or(0, |gone| gone.len());
        }
        let enough = budget.min(least);
        let mut best: Option<(Key, Vec<Place>)> = None;
        for mut start in starts {
            let mut handed = hand_out(loads, &mut start, self.effort);
            let greatest = self.greatest(&handed.load);
            if greatest <= target && loads.taken(&start) <= enough {
                best = Some(((target, 0, 0, 0), start));
                break;
            }
            self.effort.spend(total);
            // Partitions return to their owners before the state is built and after it is dropped:
            // its orders serve only single steps.
            bring_home(loads, &mut start, &mut handed, target.max(greatest));
            if loads.taken(&start) > budget {
                continue;
            }
            let mut state = State::new(loads, &self.reach, self.effort, start, handed);
            state.improve(target, budget);
            let greatest = state.fullest().0;
            let (mut places, mut handed) = state.ended();
            bring_home(loads, &mut places, &mut handed, target.max(greatest));
            let key = self.key(&places, &handed);
            if best.as_ref().is_none_or(|(best, _)| key < *best) {
                best = Some((key, places));
            }
            let reached = best
                .as_ref()
                .is_some_and(|(best, _)| best.0 <= target && best.1 <= enough as i64);
            if !self.effort.spend(0) || reached {
                break;
            }
        }
        let (_, places) = best.expect("the first start is within the budget");
        let mut found = Found {
            greatest: self.greatest_of(&places),
            places,
            bound: self.bound,
            ..Found::default()
        };
        if total <= MOST_PARTS {
            self.search_whole(&mut found, budget, least);
        }
        found.exact |= found.greatest <= self.bound;
        found
    }

    fn key(&self, places: &[Place], handed: &Handed) -> Key {
        let total: u64 = handed.load.iter().sum();
        let shift = (u64::BITS - total.leading_zeros()).saturating_sub(36);
        let loads = handed.load.iter().zip(&self.loads.factor);
        let squares =
            loads.map(|(load, &factor)| u128::from(load >> shift).pow(2) * u128::from(factor));
        let counts = handed.count.iter().map(|&n| u128::from(n).pow(2));
        (
            self.target.max(self.greatest(&handed.load)),
            self.loads.taken(places) as i64,
            squares.sum(),
            counts.sum(),
        )
    }

    fn greatest(&self, load: &[u64]) -> Level {
        let levels = (0..).zip(load).map(|(m, &load)| self.loads.level(m, load));
        levels.max().unwrap_or(0)
    }

    fn greatest_of(&self, places: &[Place]) -> Level {
        let mut load = vec![0; self.loads.factor.len()];
        for &i in &self.loads.parts {
            load[places[i as usize] as usize] += self.loads.weight[i as usize];
        }
        self.greatest(&load)
    }

    /// Improves the result until a search finds nothing better. The result is then exact if it is
    /// above the target and the search was not cut short.
    fn search_whole(&self, found: &mut Found, budget: usize, least_taken: usize) {
        let nodes = MOST_NODES.min(self.effort.0.get());
        let effort = Effort(Cell::new(nodes));
        loop {
            let taken = self.loads.taken(&found.places);
            let better = if found.greatest > self.target {
                fitting(self.loads, found.greatest - 1, budget, &effort)
            } else if taken > least_taken {
                fitting(self.loads, self.target, taken - 1, &effort)
            } else {
                break;
            };
            let Some(better) = better else {
                found.exact = found.greatest > self.target && effort.spend(0);
                break;
            };
            for &i in &self.loads.parts {
                found.places[i as usize] = better[i as usize];
            }
            found.greatest = self.greatest_of(&found.places);
        }
        self.effort.spend((nodes - effort.0.get()) as usize);
    }
}
