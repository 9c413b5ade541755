// SPDX-License-Identifier: Apache-2.0
//! Mirror of `switching/comparison.py` and `switching/recommendation.py`: compares the built-in
//! assignors that clients run, and recommends one with a reason.

use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::model::Library;
use crate::group::spec::GroupSpec;
use crate::plans::changes::change::Change;
use crate::plans::clients::{Client, MayRun};
use crate::plans::figures::Figures;
use crate::plans::rebalance_plan::play;

/// The figures of one assignor, or the error of its plan.
pub struct Candidate {
    pub assignor: Assignor,
    pub figures: Result<Figures, GroupError>,
}

/// All candidates and the recommendation; `recommended` is None if no assignor can be recommended.
pub struct Comparison {
    pub candidates: Vec<Candidate>,
    pub recommended: Option<Assignor>,
    pub reason: String,
}

/// Plans the changes with each assignor, and recommends one. An error is returned with the index of
/// the change that caused it, if a change did.
pub fn compare(
    group: &GroupSpec,
    changes: &[Change],
) -> Result<Comparison, (Option<usize>, GroupError)> {
    if let Some(name) = group.assignor {
        let own = Assignor::by_name(name).and_then(Assignor::for_plans);
        own.map_err(|error| (None, error))?;
    }
    for (i, change) in changes.iter().enumerate() {
        if matches!(change, Change::SwitchAssignor(_)) {
            let problem = "a comparison asks every assignor as it is; leave the switch out";
            return Err((Some(i), GroupError::new("change", problem)));
        }
    }
    let mut candidates = Vec::new();
    let dialects = own(group).is_some_and(Assignor::is_dialect)
        || group.leader_library == Some(Library::Librdkafka);
    for assignor in Assignor::ALL {
        let foreign = assignor.is_dialect() && !dialects;
        if assignor.is_server_side() || assignor.is_ours() || foreign {
            continue;
        }
        let figures = match play(group, assignor, changes) {
            Err((place, error)) if error.path == "change" => return Err((place, error)),
            Err((_, error)) => Err(error),
            Ok(figures) => Ok(figures),
        };
        candidates.push(Candidate { assignor, figures });
    }
    let keeps = why_all_are_equal(group, changes);
    let is_compared = candidates
        .iter()
        .any(|one| Some(one.assignor) == own(group));
    let alone = (is_compared && keeps.is_none()).then(|| listed_alone(group, changes));
    let alone = alone.flatten();
    let changed = !changes.is_empty();
    let (recommended, reason) = recommend(group, &candidates, alone.as_ref(), keeps, changed);
    Ok(Comparison {
        candidates,
        recommended,
        reason,
    })
}

/// Returns why every assignor assigns everything to one member; None if that is not so.
fn why_all_are_equal(group: &GroupSpec, changes: &[Change]) -> Option<&'static str> {
    let adds = |change: &Change| matches!(change, Change::AddMembers(_));
    if group.members.len() == 1 && !changes.iter().any(adds) {
        return Some("its only member reads all");
    }
    let grows =
        |change: &Change| matches!(change, Change::AddPartitions { .. } | Change::AddTopics(_));
    let topics = &group.topics[..group.declared];
    let partitions: u64 = topics.iter().map(|one| u64::from(one.partitions)).sum();
    (partitions == 1 && !changes.iter().any(grows)).then_some(ONE_PARTITION)
}

const ONE_PARTITION: &str =
    "there is only one partition, which one member reads under every assignor";

fn own(group: &GroupSpec) -> Option<Assignor> {
    Assignor::by_name(group.assignor?).ok()
}

/// Returns the figures of an eager group's own cooperative assignor, as if its members listed only
/// this assignor. None for other groups, or if the plan fails or never settles with this list.
fn listed_alone(group: &GroupSpec, changes: &[Change]) -> Option<Figures> {
    let own = own(group).filter(|own| group.is_eager && own.withholds())?;
    let as_they_are: Vec<_> = (0..group.members.len() as u32).collect();
    let mut cooperative = group.listed(&as_they_are);
    cooperative.is_eager = false;
    let figures = play(&cooperative, own, changes).ok()?;
    figures.settled.then_some(figures)
}

/// An assignor whose plan settles, and the plan's figures.
type Ranked<'a> = (Assignor, &'a Figures);

/// Recommends an assignor. `alone` holds the figures of an eager group's own assignor, computed as
/// if its members listed no other assignor. If there is a reason to keep the present assignor
/// whatever the figures are, `keeps` holds this reason. `changed` is false if the figures are
/// those of a rebalance without changes.
fn recommend(
    group: &GroupSpec,
    candidates: &[Candidate],
    alone: Option<&Figures>,
    keeps: Option<&str>,
    changed: bool,
) -> (Option<Assignor>, String) {
    let runs = own(group);
    let own = |assignor: Assignor| runs == Some(assignor);
    let stays = |one: &&Candidate| {
        own(one.assignor) && one.figures.as_ref().is_ok_and(|figures| figures.settled)
    };
    if let (Some(kept), Some(why)) = (candidates.iter().find(stays), keeps) {
        let reason = format!("{} is what the group runs, and {why}", kept.assignor.name());
        return (Some(kept.assignor), reason);
    }
    let settles = candidates.iter().filter_map(|one| {
        let alone = alone.filter(|_| own(one.assignor));
        let figures = alone.or(one.figures.as_ref().ok())?;
        figures.settled.then_some((one.assignor, figures))
    });
    let mut settled: Vec<Ranked> = settles.collect();
    // The sort is stable, so the order of `Assignor::ALL` breaks ties.
    settled.sort_by(|a, b| {
        let measures = MEASURES.iter();
        let differ = measures.map(|measure| (measure.of)(a.1).total_cmp(&(measure.of)(b.1)));
        let first = differ.reduce(std::cmp::Ordering::then);
        let first = first.expect("there are measures");
        first.then(own(b.0).cmp(&own(a.0)))
    });
    if settled.is_empty() {
        return (None, "every assignor fails, or never becomes stable".into());
    }
    // An assignor of another library is recommended only if none of the group's own library settles
    // and is one that the clients have.
    let dialect = runs.is_some_and(Assignor::is_dialect);
    let alike = |one: &&Ranked| one.0.is_dialect() == dialect;
    let first = settled.iter().position(|one| alike(&one)).unwrap_or(0);
    let may_run = MayRun::of(group);
    let lacking = |assignor: Assignor| -> Vec<Client> {
        if own(assignor) {
            return Vec::new(); // members already run it
        }
        may_run.lacking(assignor).collect()
    };
    let had = settled.iter().filter(|one| lacking(one.0).is_empty());
    let had: Vec<Ranked> = had.copied().collect();
    let mut possible: Vec<Ranked> = had.iter().filter(alike).copied().collect();
    if possible.is_empty() {
        possible.clone_from(&had);
    }
    let Some((&best, others)) = possible.split_first() else {
        let mut clients = Client::ALL.to_vec();
        clients.retain(|one| settled.iter().any(|of| lacking(of.0).contains(one)));
        let names = named(&clients);
        let reason = format!("{names} has none of these assignors that becomes stable");
        return (None, reason);
    };
    let name = best.0.name();
    let mut reason = reason(group, best, others, alone.is_some(), changed);
    if possible.len() == 1 && had.len() > 1 {
        reason = format!("{name} is the only one here of the kind that the group runs");
    } else if possible.len() == 1 && settled.len() > 1 {
        reason = format!("{name} is the only one that becomes stable and that the clients have");
    }
    if settled[..=first].iter().all(|one| one.0 != best.0) {
        let better = settled[first].0;
        let lacking = lacking(better);
        let verb = if lacking.len() == 1 { "does" } else { "do" };
        let who = named(&lacking);
        let how = if may_run.surely_lack(better) {
            format!(", but {who} {verb}")
        } else {
            format!(" if no member runs {who}, which {verb}")
        };
        let better = better.name();
        reason += &format!("; {better} would do better{how} not have it");
    }
    if let (Some(_), Some(own)) = (alone, group.assignor) {
        reason += "; the members list an eager assignor too: the rolling bounce to ";
        reason += &format!("{own} alone is missing");
    }
    (Some(best.0), reason)
}

fn named(clients: &[Client]) -> String {
    let names: Vec<&str> = clients.iter().map(|client| client.name()).collect();
    names.join(" and ")
}

/// A criterion; the smallest value is the best. If this criterion decides, `equal` is appended to
/// the reason: the candidates are equal in the criteria before it.
struct Measure {
    of: fn(&Figures) -> f64,
    /// Compares two values in words: the best candidate's value, and the value of the candidate
    /// whose name is passed.
    words: fn(f64, &str, f64) -> String,
    equal: &'static str,
}

const EVENNESS: usize = 0;
const UNREAD: usize = 1;

const MEASURES: [Measure; 4] = [
    Measure {
        of: |f| f64::from(f.balance_after.max - f.balance_after.min),
        words: |mine, other, its| {
            let mine = counted(mine, "partition");
            format!("leaves the fullest and the emptiest member {mine} apart, {other} {its}")
        },
        equal: "",
    },
    Measure {
        of: |f| f.unavailable_rounds as f64,
        words: |mine, other, its| {
            let mine = counted(mine, "time");
            format!("leaves partitions without a reader {mine}, {other} {its}")
        },
        equal: ", and is as even",
    },
    Measure {
        of: |f| f.moves as f64,
        words: |mine, other, its| format!("makes {}, {other} {its}", counted(mine, "move")),
        equal: ", is as even and leaves as few without a reader",
    },
    Measure {
        of: |f| 1.0 - f.rack_share_after.unwrap_or(0.0),
        words: |mine, other, its| {
            let (mine, its) = (mine * 100.0, its * 100.0);
            format!("reads {mine:.0}% in another rack, {other} {its:.0}%")
        },
        equal: ", and is equal in all else",
    },
];

fn counted(number: f64, noun: &str) -> String {
    let s = if number == 1.0 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

/// Returns why the best candidate is better than the group's own assignor or, if that is the best
/// or has no figures, than the next best. `alone`: the own assignor's figures are computed as if
/// members listed it alone.
fn reason(
    group: &GroupSpec,
    best: Ranked,
    others: &[Ranked],
    alone: bool,
    changed: bool,
) -> String {
    let is_own = |assignor: Assignor| group.assignor == Some(assignor.name());
    let label = |assignor: Assignor| match alone && is_own(assignor) {
        true => format!("{} alone", assignor.name()),
        false => assignor.name().to_owned(),
    };
    let (name, figures) = (label(best.0), best.1);
    let own = |one: &&Ranked| is_own(one.0);
    let Some(&(other, its_figures)) = others.iter().find(own).or(others.first()) else {
        return format!("{name} is the only one that becomes stable");
    };
    let stops = counted(figures.unavailable as f64, "partition") + " without a reader";
    let repeats = |one: &Figures| one.unavailable_rounds > one.unavailable;
    let again = repeats(figures) || repeats(its_figures);
    for (i, measure) in MEASURES.iter().enumerate() {
        let (mine, its) = ((measure.of)(figures), (measure.of)(its_figures));
        if mine == its {
            continue;
        }
        let other = label(other);
        let mut how = (measure.words)(mine, &other, its);
        if i == UNREAD && !again {
            how = format!("leaves {stops}, {other} {its}");
        }
        if i == EVENNESS && figures.unavailable < its_figures.unavailable {
            let same_figures = changed || figures.unavailable == 0;
            let first = if same_figures { "" } else { "the first time " };
            how += &format!(
                ", and {first}{stops} instead of {}",
                its_figures.unavailable
            );
        }
        return format!("{name} {how}{}", measure.equal);
    }
    if alone && is_own(best.0) {
        return format!("no other does better than {name}");
    }
    if is_own(best.0) {
        return format!("{name} is what the group runs, and no other does better");
    }
    let other = other.name();
    format!("{name} does as well as {other} and comes first in Kafka's order")
}
