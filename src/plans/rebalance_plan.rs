// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/rebalance_plan.py`, as far as figures need it.

use super::figures::{Balance, Figures, balance, rack_share};
use super::rounds::Tally;
use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::model::GroupSpec;
use crate::plans::changes::change::Change;
use crate::plans::changes::draft::Draft;
use crate::plans::changes::edits::Follows;
use crate::plans::changes::made_up::MadeUp;
use crate::plans::possible::optimum::Possible;

/// Plays changes one after another, each until the group has settled.
pub fn plan(
    group: &GroupSpec,
    assignor: Assignor,
    changes: &[Change],
) -> Result<Figures, GroupError> {
    play(group, assignor, changes).map_err(|(i, error)| at(error, i))
}

/// As `plan`; an error carries the index of its change.
pub fn play(
    group: &GroupSpec,
    assignor: Assignor,
    changes: &[Change],
) -> Result<Figures, (Option<usize>, GroupError)> {
    let mut draft = Draft::of(group, assignor);
    let mut ids = MadeUp::new(group.group_id);
    let mut tally = Tally::default();
    // 1. and 2.
    if changes.is_empty() {
        let played = tally.play(&mut draft, Follows::Rebalance);
        played.map_err(|error| (None, error))?;
    }
    for (i, change) in changes.iter().enumerate() {
        let played = change.play(&mut draft, &mut ids, |group, follows| {
            tally.play(group, follows)
        });
        played.map_err(|error| (Some(i), error))?;
    }
    // 3.
    let after = draft.spec();
    let (balance_after, rack_share_after) = (balance(&after), rack_share(&after));
    for member in &mut draft.members {
        let then = member.origin.map(|m| (group.owned(m), m));
        let (owned, m) = then.unzip();
        member.owned = owned.unwrap_or(&[]).to_vec();
        member.generation_id = m.and_then(|m| group.members[m as usize].generation_id);
    }
    let possible = Possible::of(&draft.spec());
    let counts = || {
        tally
            .unavailable
            .iter()
            .flatten()
            .filter(|&&count| count > 0)
    };
    Ok(Figures {
        rounds: tally.rounds,
        moves: tally.moves,
        least_moves: possible.least_moves,
        unavailable: counts().count() as u64,
        unavailable_rounds: counts().map(|&count| u64::from(count)).sum(),
        waiting: draft.waiting.len() as u64,
        leaderless: draft.leaderless.len() as u64,
        balance_before: balance(group),
        balance_after,
        balance_possible: Balance::of(&possible.loads()),
        rack_share_before: rack_share(group),
        rack_share_after,
        settled: !tally.unsettled,
        depends_on_ids: ids.any(),
        owns_nothing: (0..group.members.len() as u32).all(|m| group.owned(m).is_empty()),
    })
}

/// Reads changes, and names a bad one by its place.
pub fn changes_from_texts<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<Change>, GroupError> {
    let read = texts.enumerate();
    read.map(|(i, text)| Change::from_text(text).map_err(|error| at(error, Some(i))))
        .collect()
}

/// An error of a change is named by its place in the list.
pub fn at(error: GroupError, i: Option<usize>) -> GroupError {
    match i {
        Some(i) if error.path == "change" => GroupError {
            path: format!("changes[{i}]"),
            ..error
        },
        _ => error,
    }
}
