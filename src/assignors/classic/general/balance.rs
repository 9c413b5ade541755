// SPDX-License-Identifier: Apache-2.0
//! Step 6 of the general algorithm: passes over the partitions until a pass moves none. Step 7: the
//! moves of step 6 are undone if they did not lower the score and some member kept a partition.
//!
//! Shortcuts that cannot change the answer:
//! - Before every partition, Kafka tests whether the group is balanced, and stops if it is. For a
//!   partition that stays, this makes no difference, so here the test runs only before a move (or
//!   an exception). If partitions may be owned twice, the test may throw; then it runs before every
//!   partition, as in Kafka.
//! - Before a move, the result of the test is usually known already (`is_balanced.rs`).
//! - If any subscriber has at least two partitions fewer than the owner, then so does the smallest
//!   subscriber (the one with the fewest partitions), and only the smallest is tested. But Kafka's
//!   class throws if it meets a fixed subscriber first. So if a topic has a fixed subscriber, its
//!   subscribers are searched in Kafka's order (`is_above_other`).
//! - If each owner of a run's partitions has at most one partition more than the smallest member of
//!   the group, no partition of the run moves (`is_settled`).
//! - The tree that finds the smallest member holds only the subscribers of one topic (`Smallest`).

use super::build::{Build, Owners, Run};
use super::smallest::Smallest;
use crate::assignors::classic::movements::{self, Movements};
use crate::error::GroupError;
use crate::group::lists::Lists;
use crate::group::model::{MemberId, NOBODY, PartitionId, TopicId};

/// The number of the first pass whose state is saved. Most groups need fewer passes.
const FIRST_SAVED_PASS: usize = 8;

/// The state on which later passes depend. The order of a member's partitions is not part of it.
#[derive(PartialEq)]
struct State {
    owners: Vec<MemberId>,
    movements: movements::State,
}

/// Proof of imbalance (a witness): `gainer` could take `partition` of `topic`, because its owner
/// has at least two partitions more than `gainer`.
#[derive(Clone, Copy)]
pub struct Witness {
    pub(super) gainer: MemberId,
    pub(super) topic: TopicId,
    pub(super) partition: PartitionId,
}

/// Steps 6 and 7 and their state between passes.
pub struct Balance<'c, 'g, 'a> {
    pub(super) build: Build<'c, 'g, 'a>,
    movements: Movements,
    pub(super) spread: Spread,
    /// A tree of the subscribers of `of_topic`; `place` holds each member's index in the tree.
    smallest: Smallest,
    of_topic: Option<TopicId>,
    place: Vec<u32>,
    /// The witness from the last test that found the group unbalanced.
    pub(super) witness: Option<Witness>,
    /// Whether the present assignment is known to be unbalanced.
    pub(super) unbalanced: bool,
    /// A checksum of all partitions' owners. Unequal owners almost never have equal sums.
    sum: u64,
    /// Members that are not fixed, in the order of Kafka's map; empty unless `build.ghosts`.
    pub(super) order: Vec<MemberId>,
}

impl<'c, 'g, 'a> Balance<'c, 'g, 'a> {
    pub fn new(build: Build<'c, 'g, 'a>) -> Self {
        let sizes = build.current.sizes().iter().zip(&build.fixed);
        let spread = Spread::of(sizes.filter(|&(_, fixed)| !fixed).map(|(&size, _)| size));
        Self {
            movements: Movements::default(),
            spread,
            smallest: Smallest::default(),
            of_topic: None,
            place: vec![0; build.fixed.len()],
            witness: None,
            unbalanced: false,
            sum: 0,
            order: build.owners.as_ref().map_or_else(Vec::new, Owners::order),
            build,
        }
    }

    /// Runs both steps. Returns the answer, and the members in the order of the answer's map.
    pub fn balance(
        mut self,
        unassigned: Vec<Run>,
        initializing: bool,
    ) -> Result<(Lists, Vec<MemberId>), GroupError> {
        let build = &self.build;
        // Step 7 can undo the moves only if some member kept a partition in step 3.
        let before = (!initializing).then(|| build.current.lists());
        let contested = |run: &Run| build.is_contested(build.claims.topic(run.start));
        let all = build.topics.iter().map(|&t| build.claims.of_topic(t));
        let all: Vec<Run> = all.filter(contested).collect();
        if !build.revocation {
            let mut unassigned = unassigned;
            unassigned.retain(contested);
            self.reassign(&unassigned)?;
        }
        let moved = self.reassign(&all)?;
        let current = self.build.current.into_lists();
        let fixed = &self.build.fixed;
        let score = |lists: &Lists| {
            let members = (0..lists.members()).filter(|&m| !fixed[m]);
            score(
                members
                    .map(|m| lists.len_of(m as MemberId) as i64)
                    .collect(),
            )
        };
        let undone = before.filter(|before| moved && score(&current) >= score(before));
        let mut owners = self.build.owners;
        if let (Some(owners), Some(_)) = (&mut owners, &undone) {
            owners.copy_back();
        }
        let in_order = || self.build.claims.owners.to_vec();
        let order = owners.map_or_else(in_order, Owners::with_fixed);
        Ok((undone.unwrap_or(current), order))
    }

    fn reassign(&mut self, runs: &[Run]) -> Result<bool, GroupError> {
        let mut moved_any = false;
        let (mut passes, mut save_at) = (0, FIRST_SAVED_PASS);
        let mut saved: Option<(u64, State)> = None;
        while self.pass(runs)? {
            moved_any = true;
            // A pass depends only on the state, so the passes never end if a state occurs again.
            passes += 1;
            let known = saved.as_ref().filter(|(sum, _)| *sum == self.sum);
            if known.is_some_and(|(_, state)| *state == self.state()) {
                return Err(GroupError::assignor_never_ends(self.build.name));
            }
            if passes == save_at {
                saved = Some((self.sum, self.state()));
                save_at *= 2;
            }
        }
        Ok(moved_any)
    }

    fn state(&self) -> State {
        let hashes = self.build.claims.group.topic_hashes();
        State {
            owners: self.build.current.owners().to_vec(),
            movements: self.movements.state(hashes),
        }
    }

    /// Walks once over the partitions of `runs`. Returns whether any of them moved.
    fn pass(&mut self, runs: &[Run]) -> Result<bool, GroupError> {
        let mut moved = false;
        for run in runs {
            self.build.claims.go_on()?;
            if self.is_settled(run) {
                continue;
            }
            for id in run.clone() {
                if self.build.ghosts && self.is_balanced()? {
                    return Ok(moved);
                }
                let better = self.better_owner(id);
                if matches!(better, Ok(None)) {
                    continue;
                }
                if !self.shows_imbalance(id, &better) && self.is_balanced()? {
                    return Ok(moved);
                }
                if let Some(destination) = better? {
                    self.build.claims.go_on()?;
                    self.relocate(id, destination);
                    moved = true;
                }
            }
        }
        Ok(moved)
    }

    /// Whether Kafka's class certainly moves no partition of this run and does not throw.
    fn is_settled(&self, run: &Run) -> bool {
        let build = &self.build;
        let has_other_reasons = build.ghosts
            || !build.previous.is_empty()
            || build.meets_fixed[build.claims.topic(run.start) as usize];
        let current = &build.current;
        let owners = &current.owners()[run.start as usize..run.end as usize];
        let most = self.spread.least + 1;
        !has_other_reasons
            && (self.spread.most <= most || {
                let size = |&owner: &MemberId| current.size(owner);
                owners.iter().all(|owner| size(owner) <= most)
            })
    }

    fn better_owner(&mut self, id: PartitionId) -> Result<Option<MemberId>, GroupError> {
        let owner = self.build.current.owner(id);
        let size = self.size(owner)?;
        if let Some(&(previous, _)) = self.build.previous.get(id as usize)
            && previous != NOBODY
            && size > self.size(previous)? + 1
        {
            return Ok(Some(previous));
        }
        let topic = self.build.claims.topic(id);
        let smallest = self.smallest(topic);
        // If no subscriber is fixed, only the smallest one matters.
        let above = if self.build.meets_fixed[topic as usize] {
            self.is_above_other(id, owner, size)?
        } else {
            smallest.is_some_and(|(smallest, _)| size > smallest + 1)
        };
        Ok(smallest.filter(|_| above).map(|(_, member)| member))
    }

    /// Whether any subscriber has at least two partitions fewer than the owner. If the owner is
    /// near the partition (in a rack with a replica), subscribers near the partition come first.
    /// The order matters only for exceptions: Kafka's class throws if it meets a fixed subscriber
    /// before one with few enough partitions.
    fn is_above_other(
        &self,
        id: PartitionId,
        owner: MemberId,
        size: usize,
    ) -> Result<bool, GroupError> {
        let build = &self.build;
        let topic = build.claims.topic(id);
        // In the order of the leader's HashMap, as in Kafka.
        let members = build.claims.members.iter();
        let subscribers = members.filter(|&&m| build.subscribes(m, topic));
        let is_near = build.racks.near(owner, id);
        let near = subscribers.clone();
        let near = near.filter(|&&m| is_near && build.racks.near(m, id));
        for &other in near.chain(subscribers) {
            if size > self.size(other)? + 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns size and id of the smallest subscriber not fixed; of equal sizes, the first by id.
    fn smallest(&mut self, topic: TopicId) -> Option<(usize, MemberId)> {
        let build = &self.build;
        let members = build.subscribers.distinct(topic);
        if self.of_topic.replace(topic) != Some(topic) {
            let size = |m: MemberId| build.current.size(m) as u32;
            let takes_part = |m: MemberId| !build.fixed[m as usize];
            let sizes = members.iter().map(|&m| takes_part(m).then(|| size(m)));
            self.smallest.fill(sizes);
            for (place, &m) in members.iter().enumerate() {
                self.place[m as usize] = place as u32;
            }
        }
        let (size, place) = self.smallest.first()?;
        Some((size as usize, members[place]))
    }

    fn relocate(&mut self, id: PartitionId, destination: MemberId) {
        let claims = self.build.claims;
        let tp = claims.partition(id);
        let hash = claims.group.topic_hashes()[tp.topic as usize];
        let owner = self.build.current.owner(id);
        let tp = self.movements.actual(tp, hash, owner, destination);
        let Some(id) = claims.id(tp) else { return };
        let source = self.build.current.owner(id);
        self.movements.record(tp, hash, source, destination);
        self.sum ^= mixed(id, source) ^ mixed(id, destination);
        self.unbalanced = false;
        let size = self.build.current.size(source);
        self.build.current.take(source, id);
        self.resized(source, size);
        let size = self.build.current.size(destination);
        self.build.current.give(destination, id);
        self.resized(destination, size);
    }

    fn resized(&mut self, member: MemberId, before: usize) {
        let size = self.build.current.size(member) as u32;
        self.spread.resized(before as u32, size);
        if let Some(topic) = self.of_topic {
            let members = self.build.subscribers.distinct(topic);
            let place = self.place[member as usize] as usize;
            if members.get(place) == Some(&member) {
                self.smallest.set(place, size);
            }
        }
    }

    pub(super) fn size(&self, member: MemberId) -> Result<usize, GroupError> {
        if member == NOBODY || self.build.fixed[member as usize] {
            return Err(GroupError::assignor_throws(
                self.build.name,
                "NullPointerException",
                "a member that takes no part in balancing is still known as an owner",
            ));
        }
        Ok(self.build.current.size(member))
    }
}

/// Sums the size differences of all pairs of members; the sum overflows like a Java int.
pub fn score(mut sizes: Vec<i64>) -> i32 {
    sizes.sort_unstable();
    let n = sizes.len() as i64;
    // In ascending order, size i of n is the larger one in i pairs, the smaller one in n - 1 - i.
    let terms = (0..).zip(sizes).map(|(i, size)| size * (2 * i - n + 1));
    terms.fold(0i64, i64::wrapping_add) as i32
}

/// Returns one partition's summand in the checksum of all owners.
fn mixed(id: PartitionId, owner: MemberId) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault};
    BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one((id, owner))
}

/// The smallest and the largest number of partitions of a member that is not fixed; updated at
/// every move.
pub struct Spread {
    /// `members[n]` is the number of members with n partitions.
    members: Vec<u32>,
    pub least: usize,
    pub most: usize,
}

impl Spread {
    pub fn of(sizes: impl Iterator<Item = u32> + Clone) -> Self {
        let least = sizes.clone().min().unwrap_or(0) as usize;
        let most = sizes.clone().max().unwrap_or(0) as usize;
        let mut members = vec![0; most + 1];
        for size in sizes {
            members[size as usize] += 1;
        }
        Self {
            members,
            least,
            most,
        }
    }

    /// Records that one member has one partition more or less.
    pub fn resized(&mut self, before: u32, after: u32) {
        let (before, after) = (before as usize, after as usize);
        if after >= self.members.len() {
            self.members.resize(after + 1, 0);
        }
        self.members[before] -= 1;
        self.members[after] += 1;
        if self.members[before] == 0 {
            // The member's size changed by one. So a member that alone had the least (or most)
            // partitions before still has the least (or most).
            if self.least == before {
                self.least = after;
            }
            if self.most == before {
                self.most = after;
            }
        }
        self.least = self.least.min(after);
        self.most = self.most.max(after);
    }
}
