// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/rounds.py`: rebalances a group until it has settled, in the steps that the
//! Python module explains. A round is one rebalance. Rounds are counted and, if the caller wants
//! them, also kept (`Kept`).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::assignors::Assignor;
use crate::error::GroupError;
use crate::group::model::{MemberId, TopicPartition};
use crate::group::ownership::{Assignment, PartitionSet, offsets};
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;
use crate::plans::changes::draft::Draft;
use crate::plans::changes::edits::Follows;
use crate::plans::clients::{Client, MayRun};

const MOST_ROUNDS: usize = 100;

/// One rebalance; its `Step` lists the members that take part.
pub struct Round {
    pub generation_id: i32,
    pub is_eager: bool,
    pub held: Assignment,
    pub assignment: Assignment,
    pub unavailable: Vec<TopicPartition>,
}

/// Mirror of `ownership.Delta`.
pub struct Delta {
    pub kept: Assignment,
    pub revoked: Assignment,
    pub gained: Assignment,
    pub transferring: Assignment,
}

impl Round {
    pub fn delta(&self) -> Delta {
        let (mut kept, mut revoked, mut gained) = (Vec::new(), Vec::new(), Vec::new());
        let mut old: FxHashSet<TopicPartition> = FxHashSet::default();
        let mut new = old.clone();
        let mut given_up = FxHashSet::default();
        for m in 0..self.held.offsets.len() as MemberId - 1 {
            let (held, assigned) = (self.held.of(m).iter(), self.assignment.of(m).iter());
            old.clear();
            old.extend(held.clone());
            new.clear();
            new.extend(assigned.clone());
            let (stays, goes): (Vec<_>, Vec<_>) = held.copied().partition(|tp| new.contains(tp));
            given_up.extend(goes.iter().copied());
            kept.push(stays);
            revoked.push(goes);
            gained.push(assigned.copied().filter(|tp| !old.contains(tp)).collect());
        }
        Delta {
            transferring: within(&gained, &given_up),
            kept: Assignment::of_lists(&kept),
            revoked: Assignment::of_lists(&revoked),
            gained: Assignment::of_lists(&gained),
        }
    }

    /// Returns, by new owner, the partitions that this round revokes and only `later` assigns.
    pub fn withheld(&self, later: &Self) -> Assignment {
        let mut given_up: FxHashSet<TopicPartition> =
            self.delta().revoked.partitions.into_iter().collect();
        for tp in &self.assignment.partitions {
            given_up.remove(tp);
        }
        let gained = later.delta().gained;
        let members = 0..gained.offsets.len() as MemberId - 1;
        within(
            &members.map(|m| gained.of(m).to_vec()).collect::<Vec<_>>(),
            &given_up,
        )
    }
}

fn within(lists: &[Vec<TopicPartition>], set: &FxHashSet<TopicPartition>) -> Assignment {
    let within = |list: &Vec<TopicPartition>| {
        let list = list.iter().copied();
        list.filter(|tp| set.contains(tp)).collect()
    };
    Assignment::of_lists(&lists.iter().map(within).collect::<Vec<_>>())
}

/// One event, and the rounds that follow it.
pub struct Step {
    /// Index of the change that caused the event; None for a plan without changes.
    pub change: Option<usize>,
    /// The cause of the event in words; None if the change itself is the cause.
    pub cause: Option<String>,
    /// The members; each is the index of its id in `Kept::ids`.
    pub members: Vec<u32>,
    /// The new id of a member that came back, and its first id, both as indices in `Kept::ids`.
    pub renamed: Option<(u32, u32)>,
    pub rounds: Vec<Round>,
    pub settled: bool,
    pub waiting: Vec<TopicPartition>,
    pub leaderless: Vec<TopicPartition>,
}

/// The steps of a plan, and all ids that its members ever had, beginning with those of the first
/// group.
#[derive(Default)]
pub struct Kept {
    pub ids: Vec<String>,
    numbers: FxHashMap<String, u32>,
    pub steps: Vec<Step>,
    /// How many of the draft's `waiting` and `leaderless` partitions belong to earlier steps.
    seen: (usize, usize),
}

impl Kept {
    pub fn number(&mut self, member_id: &str) -> u32 {
        if let Some(&number) = self.numbers.get(member_id) {
            return number;
        }
        let number = self.ids.len() as u32;
        self.ids.push(member_id.to_owned());
        self.numbers.insert(member_id.to_owned(), number);
        number
    }

    pub fn step(&mut self, group: &Draft, change: Option<usize>, cause: Option<String>) {
        let mut renamed = None;
        let mut members = Vec::with_capacity(group.members.len());
        for member in &group.members {
            let known = self.ids.len() as u32;
            let number = self.number(&member.member_id);
            renamed = renamed.or(member
                .origin
                .filter(|_| number == known)
                .map(|m| (number, m)));
            members.push(number);
        }
        let once = |partitions: &[TopicPartition]| {
            let mut seen = FxHashSet::default();
            let partitions = partitions.iter().copied();
            partitions.filter(|&tp| seen.insert(tp)).collect()
        };
        self.steps.push(Step {
            change,
            cause,
            members,
            renamed,
            rounds: Vec::new(),
            settled: true,
            waiting: once(&group.waiting[self.seen.0..]),
            leaderless: once(&group.leaderless[self.seen.1..]),
        });
        self.seen = (group.waiting.len(), group.leaderless.len());
    }

    fn round(&mut self, round: Round) {
        if let Some(step) = self.steps.last_mut() {
            step.rounds.push(round);
        }
    }
}

/// The totals over the rounds of a plan.
#[derive(Default)]
pub struct Tally<'i> {
    pub rounds: usize,
    pub moves: u64,
    /// `unavailable[topic][partition]` is the number of rounds in which no member reads the
    /// partition.
    unavailable: Vec<Vec<u32>>,
    pub unsettled: bool,
    /// The rounds themselves; None if the caller needs only the totals.
    pub kept: Option<Kept>,
    /// Whether partitions without a reader are neither counted nor kept.
    only_moves: bool,
    pub interrupt: Option<&'i Interrupt>,
}

impl<'i> Tally<'i> {
    pub fn keeping(interrupt: &'i Interrupt) -> Self {
        Self {
            kept: Some(Kept::default()),
            interrupt: Some(interrupt),
            ..Self::default()
        }
    }

    pub fn of_moves(interrupt: &'i Interrupt) -> Self {
        Self {
            only_moves: true,
            interrupt: Some(interrupt),
            ..Self::default()
        }
    }

    /// Runs rebalances until the group has settled, or sets `unsettled`.
    pub fn play(&mut self, group: &mut Draft, follows: Follows) -> Result<(), GroupError> {
        if follows == Follows::Nothing {
            return Ok(());
        }
        let withholds = group.assignor.withholds();
        let is_ours = group.assignor.is_ours();
        let starts_over = follows == Follows::StartingOver || (withholds && group.is_eager);
        let aiokafka = || MayRun::of(&group.spec()).has_member_of(Client::Aiokafka);
        let eager = starts_over || !withholds || (is_ours && aiokafka());
        let mut seen: Vec<Assignment> = Vec::new();
        let mut target: Option<Assignment> = None;
        let never = Interrupt::default();
        let interrupt = self.interrupt.unwrap_or(&never);
        for _ in 0..MOST_ROUNDS {
            // 1. Members claim partitions. They claim none after a change of assignor, or if they
            // are eager with a cooperative assignor. During a switch, some members are eager.
            let claims = |m: usize| !starts_over && !group.members[m].forgets;
            let mut sent = forgetful(group.spec(), claims);
            if !eager {
                sent = still_subscribed(sent);
            }
            // 2. The leader's assignor computes the answer.
            interrupt.check()?;
            let answer = match target.take() {
                Some(target) => target,
                None => answer(&sent, group.assignor, interrupt)?,
            };
            let answer = if is_ours && !eager {
                withholding(&sent, target.insert(answer))
            } else {
                answer
            };
            // 3. Count the partitions that members gain.
            let (gained, _) = difference(|m| &group.members[m].owned, &answer);
            self.rounds += 1;
            self.moves += gained;
            // 4. Count the partitions that no member reads in this round.
            let unavailable = if self.only_moves {
                Vec::new()
            } else {
                self.without_reader(&sent, eager)
            };
            // 5. From here on, the members hold the answer, in a new generation.
            let (_, loses) = difference(|m| sent.owned(m as MemberId), &answer);
            let held = self.kept.is_some().then(|| held_by_all(group));
            let generation_id = in_new_generation(group, &answer);
            if let (Some(kept), Some(held)) = (&mut self.kept, held) {
                kept.round(Round {
                    generation_id,
                    is_eager: eager,
                    held,
                    assignment: answer.clone(),
                    unavailable,
                });
            }
            if eager || loses == 0 {
                return Ok(());
            }
            // A group that reaches an earlier state again never settles.
            let state = held_by_all(group);
            if seen.contains(&state) {
                break;
            }
            seen.push(state);
        }
        self.unsettled = true;
        if let Some(step) = self.kept.as_mut().and_then(|kept| kept.steps.last_mut()) {
            step.settled = false;
        }
        Ok(())
    }

    /// Returns `unavailable` by the topics' present numbers, which `now` holds (from
    /// `Draft::numbers_now`). If a topic was created again, the counts of both topics are added.
    pub fn unavailable(&mut self, now: &[u32]) -> &[Vec<u32>] {
        self.unavailable.resize(now.len(), Vec::new());
        for (t, &now) in now.iter().enumerate() {
            if t != now as usize {
                let before = std::mem::take(&mut self.unavailable[t]);
                let counts = &mut self.unavailable[now as usize];
                counts.resize(counts.len().max(before.len()), 0);
                for (count, before) in counts.iter_mut().zip(before) {
                    *count += before;
                }
            }
        }
        &self.unavailable
    }

    /// Counts the subscribed partitions that no member reads. Returns them if rounds are kept.
    fn without_reader(&mut self, group: &GroupSpec, eager: bool) -> Vec<TopicPartition> {
        let mut without = Vec::new();
        let mut read = PartitionSet::new(group);
        for m in 0..group.members.len() as MemberId {
            for &tp in group.owned(m).iter().filter(|_| !eager) {
                read.insert(tp);
            }
        }
        self.unavailable.resize(group.topics.len(), Vec::new());
        let topics = (0..).zip(&group.topics).zip(group.subscribed());
        for ((topic, declared), _) in topics.filter(|(_, is_subscribed)| *is_subscribed) {
            let counts = &mut self.unavailable[topic as usize];
            counts.resize(counts.len().max(declared.partitions as usize), 0);
            for partition in 0..declared.partitions {
                let tp = TopicPartition { topic, partition };
                if !read.contains(tp) {
                    counts[partition as usize] += 1;
                    if self.kept.is_some() {
                        without.push(tp);
                    }
                }
            }
        }
        without
    }
}

/// Returns the leader's answer. librdkafka's leader visits the members in the order of the broker's
/// map.
fn answer(
    group: &GroupSpec,
    assignor: Assignor,
    interrupt: &Interrupt,
) -> Result<Assignment, GroupError> {
    if !assignor.is_dialect() {
        return assignor.assign_until(group, interrupt);
    }
    let order = group.members_in_order();
    let listed = assignor.assign_until(&group.listed(order), interrupt)?;
    let mut lists = vec![Vec::new(); order.len()];
    for (place, &m) in (0..).zip(order) {
        lists[m as usize] = listed.of(place).to_vec();
    }
    let mut answer = Assignment::of_lists(&lists);
    answer.anomalies = listed.anomalies;
    for anomaly in &mut answer.anomalies {
        anomaly.member = anomaly.member.map(|place| order[place as usize]);
    }
    Ok(answer)
}

/// Returns the target without the partitions that a member gains while another member claims them.
fn withholding(group: &GroupSpec, target: &Assignment) -> Assignment {
    let members = || 0..group.members.len() as MemberId;
    let claimed: FxHashSet<_> = members().flat_map(|m| group.owned(m)).collect();
    let lists = members().map(|m| {
        let own: FxHashSet<_> = group.owned(m).iter().collect();
        let given = target.of(m).iter().copied();
        let given = given.filter(|tp| own.contains(tp) || !claimed.contains(tp));
        given.collect::<Vec<_>>()
    });
    Assignment::of_lists(&lists.collect::<Vec<_>>())
}

fn forgetful(mut group: GroupSpec, claims: impl Fn(usize) -> bool) -> GroupSpec {
    let members = group.members.iter_mut().enumerate();
    for (_, member) in members.filter(|(m, _)| !claims(*m)) {
        member.owned = (0, 0);
        member.generation_id = None;
        member.as_sent.user_data_generation_id = None;
    }
    group
}

fn still_subscribed(mut group: GroupSpec) -> GroupSpec {
    let mut owned = Vec::with_capacity(group.owned.len());
    // By topic: the last member found that lists it. The array need not be cleared for each member,
    // because a member looks only for its own number.
    let mut listed_by = vec![u32::MAX; group.topics.len()];
    for m in 0..group.members.len() as u32 {
        for &topic in group.subscription(m) {
            listed_by[topic as usize] = m;
        }
        let first = owned.len() as u32;
        let claims = group.owned(m).iter();
        owned.extend(claims.filter(|tp| listed_by[tp.topic as usize] == m));
        group.members[m as usize].owned = (first, owned.len() as u32);
    }
    group.owned = owned;
    group
}

/// Returns how many partitions members gain and lose by `answer`; `held` returns the partitions
/// that a member had before.
fn difference<'g>(held: impl Fn(usize) -> &'g [TopicPartition], answer: &Assignment) -> (u64, u64) {
    let (mut gained, mut revoked) = (0, 0);
    let mut old: Vec<TopicPartition> = Vec::new();
    let mut new: Vec<TopicPartition> = Vec::new();
    let missing = |from: &[TopicPartition], sorted: &[TopicPartition]| {
        let gone = from.iter().filter(|tp| sorted.binary_search(tp).is_err());
        gone.count() as u64
    };
    for m in 0..answer.offsets.len() - 1 {
        let (before, after) = (held(m), answer.of(m as MemberId));
        if before == after {
            continue; // most members keep exactly their partitions
        }
        old.clear();
        old.extend_from_slice(before);
        old.sort_unstable();
        new.clear();
        new.extend_from_slice(after);
        new.sort_unstable();
        gained += missing(&new, &old);
        revoked += missing(&old, &new);
    }
    (gained, revoked)
}

pub fn held_by_all(group: &Draft) -> Assignment {
    let lists = || group.members.iter().map(|member| &member.owned);
    Assignment {
        offsets: offsets(lists().map(|list| list.len() as u32)),
        partitions: lists().flatten().copied().collect(),
        ..Assignment::default()
    }
}

fn in_new_generation(group: &mut Draft, answer: &Assignment) -> i32 {
    let generation_id = group.next_generation();
    group.generation_id = Some(generation_id);
    for (m, member) in group.members.iter_mut().enumerate() {
        member.generation_id = Some(generation_id);
        member.as_sent.user_data_generation_id = None;
        member.owned.clear();
        member.owned.extend_from_slice(answer.of(m as u32));
        if group.assignor.is_dialect() {
            let topics = &group.topics;
            let place = |tp: &TopicPartition| (&*topics[tp.topic as usize].name, tp.partition);
            member.owned.sort_by(|a, b| place(a).cmp(&place(b)));
        }
    }
    generation_id
}
