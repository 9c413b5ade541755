// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/rebalance_plan.py`: plays changes to a group, and compares the state after them
//! with the best possible result.

use rustc_hash::FxHashSet;

use super::figures::{Balance, Figures, balance, rack_share};
use super::rounds::Tally;
use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::model::TopicPartition;
use crate::group::spec::GroupSpec;
use crate::plans::changes::change::{Change, renamed};
use crate::plans::changes::draft::Draft;
use crate::plans::changes::edits::Follows;
use crate::plans::changes::made_up::{Draw, MadeUp};
use crate::plans::possible::optimum::Possible;

/// Plays changes one after another; after each, the group rebalances until it has settled.
pub fn plan(
    group: &GroupSpec,
    assignor: Assignor,
    changes: &[Change],
) -> Result<Figures, GroupError> {
    play(group, assignor, changes).map_err(|(i, error)| at(error, i))
}

/// Returns the result of `plan`; an error is returned with the index of the change that caused it
/// (None if no change did).
pub fn play(
    group: &GroupSpec,
    assignor: Assignor,
    changes: &[Change],
) -> Result<Figures, (Option<usize>, GroupError)> {
    let ids = MadeUp::new(group.group_id, Draw::default());
    let played = Played::of(group, assignor, changes, None, ids, Tally::default())?;
    Ok(played.figures(group))
}

/// Mirror of `affected.is_idle`: whether there are changes, all of them add partitions, remove
/// topics or resubscribe, and no rebalance follows. The changes must fit the group.
pub fn is_idle(group: &GroupSpec, assignor: Assignor, changes: &[Change]) -> bool {
    let of_topics = |change: &Change| {
        matches!(
            change,
            Change::AddPartitions { .. } | Change::RemoveTopics(_) | Change::Resubscribe { .. }
        )
    };
    if changes.is_empty() || !changes.iter().all(of_topics) {
        return false;
    }
    let mut draft = Draft::of(group, assignor);
    let mut ids = MadeUp::new(group.group_id, Draw::default());
    let mut is_idle = true;
    for change in changes {
        let then = |_: &mut Draft, follows, _| {
            is_idle &= follows == Follows::Nothing;
            Ok(())
        };
        is_idle &= change.play(&mut draft, &mut ids, then).is_ok();
    }
    is_idle
}

/// A plan after its changes: the group at the end, and the tally of all rounds.
pub struct Played<'a, 'i> {
    pub draft: Draft<'a>,
    pub ids: MadeUp<'a>,
    pub tally: Tally<'i>,
}

impl<'a, 'i> Played<'a, 'i> {
    /// Plays all changes. `tally` counts the rounds and may keep them; `generation_id` is the
    /// group's present generation.
    pub fn of(
        group: &GroupSpec<'a>,
        assignor: Assignor,
        changes: &[Change],
        generation_id: Option<i32>,
        mut ids: MadeUp<'a>,
        mut tally: Tally<'i>,
    ) -> Result<Self, (Option<usize>, GroupError)> {
        let assignor = assignor.for_plans().map_err(|error| (None, error))?;
        let mut draft = Draft::of(group, assignor);
        draft.generation_id = generation_id;
        if let Some(kept) = &mut tally.kept {
            for member in &draft.members {
                kept.number(&member.member_id);
            }
        }
        // 1. and 2. After each event, the group rebalances until it has settled.
        let mut then = |place: Option<usize>, group: &mut Draft<'a>, follows, cause| {
            if let Some(kept) = &mut tally.kept {
                kept.step(group, place, cause);
            }
            tally.play(group, follows)
        };
        if changes.is_empty() {
            let played = then(None, &mut draft, Follows::Rebalance, None);
            played.map_err(|error| (None, error))?;
        }
        for (i, change) in changes.iter().enumerate() {
            let then = |group: &mut Draft<'a>, follows, cause| then(Some(i), group, follows, cause);
            let played = renamed(change, &ids).play(&mut draft, &mut ids, then);
            played.map_err(|error| (Some(i), error))?;
        }
        Ok(Self { draft, ids, tally })
    }

    /// 3. Returns the group at the end of the plan, but with the partitions that its members held
    ///    at the beginning (in `group`). The plan is compared with the best result that is possible
    ///    from this state.
    pub fn as_it_began(&mut self, group: &GroupSpec) -> GroupSpec<'_> {
        let now = self.draft.numbers_now();
        for member in &mut self.draft.members {
            let owned = member.origin.map_or(&[][..], |m| group.owned(m));
            member.owned = owned.to_vec();
            for tp in &mut member.owned {
                tp.topic = now[tp.topic as usize];
            }
            let then = member.origin.map(|m| &group.members[m as usize]);
            member.generation_id = then.and_then(|then| then.generation_id);
            let sent = then.and_then(|then| then.as_sent.user_data_generation_id);
            member.as_sent.user_data_generation_id = sent;
        }
        self.draft.spec()
    }

    fn figures(mut self, group: &GroupSpec) -> Figures {
        let now = self.draft.numbers_now();
        let distinct = |partitions: &[TopicPartition]| {
            let named = |tp: &TopicPartition| (now[tp.topic as usize], tp.partition);
            partitions.iter().map(named).collect::<FxHashSet<_>>().len() as u64
        };
        let (waiting, leaderless) = (
            distinct(&self.draft.waiting),
            distinct(&self.draft.leaderless),
        );
        let counts = self.tally.unavailable(&now);
        let counts = counts.iter().flatten().filter(|&&count| count > 0);
        let (unavailable, unavailable_rounds) = (
            counts.clone().count() as u64,
            counts.map(|&count| u64::from(count)).sum(),
        );
        let after = self.draft.spec();
        let (balance_after, rack_share_after) = (balance(&after), rack_share(&after));
        drop(after);
        let possible = Possible::of(&self.as_it_began(group));
        Figures {
            rounds: self.tally.rounds,
            moves: self.tally.moves,
            least_moves: possible.least_moves,
            unavailable,
            unavailable_rounds,
            waiting,
            leaderless,
            balance_before: balance(group),
            balance_after,
            balance_possible: Balance::of(&possible.loads()),
            rack_share_before: rack_share(group),
            rack_share_after,
            settled: !self.tally.unsettled,
            depends_on_ids: !self.ids.made.is_empty(),
            owns_nothing: (0..group.members.len() as u32).all(|m| group.owned(m).is_empty()),
        }
    }
}

/// Parses changes. If a change is wrong, the path of the error contains the change's index.
pub fn changes_from_texts<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<Change>, GroupError> {
    let read = texts.enumerate();
    read.map(|(i, text)| Change::from_text(text).map_err(|error| at(error, Some(i))))
        .collect()
}

/// Sets the path of a change's error to `changes[i]`, where i is the change's index.
pub fn at(error: GroupError, i: Option<usize>) -> GroupError {
    match i {
        Some(i) if error.path == "change" => GroupError {
            path: format!("changes[{i}]"),
            ..error
        },
        _ => error,
    }
}
