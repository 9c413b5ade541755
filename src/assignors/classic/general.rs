//! Mirror of `general.py`, which explains the steps.
//!
//! Shortcuts that cannot change the answer:
//! - whether the group is balanced is asked again only after a move: nothing else changes it;
//! - the balance test looks at the largest owner of each topic in place of every partition: a
//!   member can gain if any owner in its topics has two more, and then the largest has. Only where
//!   a partition is owned twice does it matter which one, and there each is looked at;
//! - what unbalanced the group before does so still as long as the same member could take the same
//!   partition: then nothing else need be looked at (`still_holds`);
//! - whether a subscriber has at least two less than an owner is decided by the smallest of them,
//!   unless one of them was taken out, on which Kafka's class fails when it meets it first;
//! - the smallest subscriber is found by subscription classes (`by_size.rs`);
//! - subscriptions are looked up in bits.

use std::cell::Cell;

use super::claims::{Claims, NOBODY, PartitionId, Sent, user_generation};
use super::constrained::without_kept;
use super::movements::{self, Movements};
use super::racks::Racks;
use super::subscriptions::{Subscribers, Subscriptions};
use crate::by_size::BySize;
use crate::error::GroupError;
use crate::group::{MemberId, TopicId};
use crate::order::{java_hash_order, string_hash};

type Lists = Vec<Vec<PartitionId>>;

/// The answer, and the members in the order of its map.
pub fn assign(
    name: &str,
    claims: &Claims,
    sent: Sent,
) -> Result<(Lists, Vec<MemberId>), GroupError> {
    let mut build = Build::new(name, claims, sent);
    build.sort_partitions(); // 1.
    build.remember_previous(); // 2.
    let unassigned = build.keep_owned(); // 3.
    let initializing = build.current.iter().all(Vec::is_empty);
    build.assign_unassigned(&unassigned)?; // 4.
    build.take_out_fixed(); // 5.
    build.balance(&unassigned, initializing)?; // 6. 7.
    let order = build.in_hash_order();
    Ok((build.current, order))
}

/// Groups that settle do so in fewer passes.
const FIRST_SAVED_PASS: usize = 8;

type State = (Lists, Vec<MemberId>, movements::State);

/// `gainer` could take a partition of `topic` from `holder`, who has at least two more.
#[derive(Clone, Copy)]
struct Witness {
    gainer: MemberId,
    topic: TopicId,
    partition: PartitionId,
}

struct Build<'c, 'g, 'a> {
    name: &'c str,
    claims: &'c Claims<'g, 'a>,
    racks: Racks,
    /// By member; members that were taken out keep their lists, see `fixed`.
    current: Lists,
    fixed: Vec<bool>,
    owner: Vec<MemberId>,
    subscribers: Subscribers,
    subscriptions: Subscriptions,
    /// Believed previous owner and its generation.
    previous: Vec<(MemberId, i32)>,
    revocation: bool,
    movements: Movements,
    /// Topics by how few subscribers they have, then name.
    topics: Vec<TopicId>,
    /// The members that take part.
    by_size: BySize,
    /// Topics that somebody subscribes to who takes no part.
    meets_fixed: Vec<bool>,
    /// Who could take a partition from whom when the group was last found unbalanced.
    witness: Cell<Option<Witness>>,
    /// Whether a kept partition does not exist, so that some may be owned twice.
    ghosts: bool,
}

impl<'c, 'g, 'a> Build<'c, 'g, 'a> {
    fn new(name: &'c str, claims: &'c Claims<'g, 'a>, sent: Sent) -> Self {
        let group = claims.group;
        let members = group.members.len();
        let mut current = claims.owned.clone();
        let mut owner = vec![NOBODY; claims.numbered()];
        for (m, list) in current.iter_mut().enumerate() {
            sent(claims, list, m as MemberId);
            for &id in list.iter() {
                owner[id as usize] = m as MemberId;
            }
        }
        Self {
            name,
            claims,
            racks: Racks::of(claims),
            current,
            fixed: vec![false; members],
            owner,
            subscribers: Subscribers::of(group, claims.members),
            subscriptions: Subscriptions::of(group),
            previous: vec![(NOBODY, 0); claims.existing() as usize],
            revocation: false,
            movements: Movements::default(),
            topics: claims.topics.clone(),
            by_size: BySize::new(group, claims.member_ranks),
            meets_fixed: vec![false; group.topics.len()],
            witness: Cell::new(None),
            ghosts: false,
        }
    }

    fn sort_partitions(&mut self) {
        let ranks = &self.claims.topic_ranks;
        let subscribers = &self.subscribers;
        self.topics
            .sort_unstable_by_key(|&t| (subscribers.to(t).len(), ranks[t as usize]));
    }

    fn remember_previous(&mut self) {
        for &m in self.claims.members {
            let generation = user_generation(&self.claims.group.members[m as usize]);
            if generation < self.claims.max_generation {
                for id in self.claims.sent(m) {
                    // Only partitions that exist are ever looked up.
                    if let Some(previous) = self.previous.get_mut(id as usize)
                        && (previous.0 == NOBODY || generation > previous.1)
                    {
                        *previous = (m, generation);
                    }
                }
            }
        }
    }

    fn keep_owned(&mut self) -> Vec<PartitionId> {
        for m in 0..self.current.len() {
            let owned = std::mem::take(&mut self.current[m]);
            let keeps = |&&id: &&PartitionId| {
                self.subscribes(m as MemberId, self.claims.topic(id))
                    && !self.racks.mismatch(m as MemberId, id)
            };
            let keep: Vec<PartitionId> = owned.iter().filter(keeps).copied().collect();
            self.revocation |= keep.len() < owned.len();
            self.ghosts |= keep.iter().any(|&id| id >= self.claims.existing());
            self.current[m] = keep;
        }
        for m in 0..self.current.len() as MemberId {
            self.by_size.insert(m, self.place(m));
        }
        without_kept(self.claims, &self.topics, &self.current)
    }

    fn assign_unassigned(&mut self, unassigned: &[PartitionId]) -> Result<(), GroupError> {
        let mut left = unassigned.to_vec();
        if self.racks.active() {
            left.retain(|&id| !self.assign_smallest(id, true));
        }
        for id in left {
            self.assign_smallest(id, false);
            self.go_on()?;
        }
        Ok(())
    }

    fn go_on(&self) -> Result<(), GroupError> {
        if self.claims.interrupt.is_requested() {
            return Err(GroupError::new("assignor", "interrupted"));
        }
        Ok(())
    }

    fn assign_smallest(&mut self, id: PartitionId, racks: bool) -> bool {
        let found = self.smallest(self.claims.topic(id), |member| {
            !(racks && self.racks.mismatch(member, id))
        });
        if let Some(member) = found {
            self.add(member, id);
        }
        found.is_some()
    }

    /// The first subscriber by size and id that fits.
    fn smallest(&self, topic: TopicId, fits: impl Fn(MemberId) -> bool) -> Option<MemberId> {
        let subscribes = |member| self.subscribes(member, topic);
        self.by_size.smallest(topic, subscribes, fits)
    }

    fn take_out_fixed(&mut self) {
        self.by_size.keep_whole();
        for m in 0..self.current.len() as MemberId {
            if !self.can_take_part(m) {
                self.by_size.remove(m, self.place(m));
                self.fixed[m as usize] = true;
                for &topic in self.claims.group.subscription(m) {
                    self.meets_fixed[topic as usize] = true;
                }
            }
        }
    }

    fn can_take_part(&self, member: MemberId) -> bool {
        let owned = &self.current[member as usize];
        owned.len() < self.possible(member)
            || owned
                .iter()
                .any(|&id| self.is_contested(self.claims.topic(id)))
    }

    fn is_contested(&self, topic: TopicId) -> bool {
        self.subscribers.to(topic).len() >= 2
    }

    /// The most partitions that a member can have; a topic listed twice counts twice, but for
    /// members that list as many as there are.
    fn possible(&self, member: MemberId) -> usize {
        let topics = self.topics_of(member);
        if topics.clone().count() == self.claims.topics.len() {
            return self.claims.existing() as usize;
        }
        topics.map(|topic| self.claims.of_topic(topic).len()).sum()
    }

    /// Subscribed topics that exist, repeats kept.
    fn topics_of(&self, member: MemberId) -> impl Iterator<Item = TopicId> + Clone + '_ {
        let topics = self.claims.group.subscription(member).iter().copied();
        topics.filter(|&topic| self.claims.group.topics[topic as usize].partitions > 0)
    }

    fn balance(
        &mut self,
        unassigned: &[PartitionId],
        initializing: bool,
    ) -> Result<(), GroupError> {
        let before = self.current.clone();
        let contested = |id: &PartitionId| self.is_contested(self.claims.topic(*id));
        let unassigned: Vec<_> = unassigned.iter().copied().filter(contested).collect();
        let all = self
            .topics
            .iter()
            .flat_map(|&topic| self.claims.of_topic(topic));
        let all: Vec<_> = all.filter(contested).collect();
        if !self.revocation {
            self.reassign(&unassigned)?;
        }
        let moved = self.reassign(&all)?;
        if !initializing && moved && self.score(&self.current) >= self.score(&before) {
            self.current = before;
        }
        Ok(())
    }

    fn reassign(&mut self, partitions: &[PartitionId]) -> Result<bool, GroupError> {
        let mut moved_any = false;
        let mut moved = !partitions.is_empty();
        let (mut passes, mut save_at) = (0, FIRST_SAVED_PASS);
        let mut saved = None;
        while moved {
            moved = false;
            let mut balanced = self.is_balanced()?;
            for &id in partitions {
                if balanced {
                    break;
                }
                self.go_on()?;
                if self.reassign_one(id)? {
                    moved = true;
                    balanced = self.is_balanced()?;
                }
            }
            moved_any |= moved;
            // A pass depends on nothing but the state: one that comes again comes again for ever.
            passes += 1;
            if moved && passes >= FIRST_SAVED_PASS {
                let state = Some(self.state());
                if state == saved {
                    return Err(GroupError::assignor_never_ends(self.name));
                }
                if passes == save_at {
                    (saved, save_at) = (state, 2 * save_at);
                }
            }
        }
        Ok(moved_any)
    }

    fn state(&self) -> State {
        (
            self.current.clone(),
            self.owner.clone(),
            self.movements.state(),
        )
    }

    fn reassign_one(&mut self, id: PartitionId) -> Result<bool, GroupError> {
        let owner = self.owner[id as usize];
        let size = self.size(owner)?;
        let (previous, _) = self.previous[id as usize];
        if previous != NOBODY && size > self.size(previous)? + 1 {
            self.relocate(id, previous);
            return Ok(true);
        }
        let topic = self.claims.topic(id);
        let smallest = self.smallest(topic, |_| true);
        // Nobody of its subscribers was taken out: then the smallest decides for all of them.
        let above = if self.meets_fixed[topic as usize] {
            self.is_above_other(id, owner, size)?
        } else {
            smallest.is_some_and(|member| size > self.current[member as usize].len() + 1)
        };
        match smallest {
            Some(member) if above => {
                self.relocate(id, member);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether a subscriber has at least two partitions less than the owner. If the owner is near
    /// the partition, those that are too come first: that only tells whether Kafka's class meets a
    /// member that was taken out before it finds one.
    fn is_above_other(
        &self,
        id: PartitionId,
        owner: MemberId,
        size: usize,
    ) -> Result<bool, GroupError> {
        let subscribers = self.subscribers.to(self.claims.topic(id));
        if self.racks.near(owner, id) {
            for &other in subscribers {
                if self.racks.near(other, id) && size > self.size(other)? + 1 {
                    return Ok(true);
                }
            }
        }
        for &other in subscribers {
            if size > self.size(other)? + 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn relocate(&mut self, id: PartitionId, destination: MemberId) {
        let tp = self.claims.partition(id);
        let tp = self
            .movements
            .actual(tp, self.owner[id as usize], destination);
        let Some(id) = self.claims.id(tp) else { return };
        let source = self.owner[id as usize];
        let topic_hash = string_hash(self.claims.group.topics[tp.topic as usize].name);
        self.movements.record(tp, topic_hash, source, destination);
        self.take(source, id);
        self.add(destination, id);
    }

    /// Whether no member could take a partition of its topics from one with two or more more.
    fn is_balanced(&self) -> Result<bool, GroupError> {
        let (Some(first), Some(last)) = (self.by_size.least(), self.by_size.most()) else {
            return Ok(true);
        };
        if first.0 + 1 >= last.0 {
            return Ok(true);
        }
        if self
            .witness
            .get()
            .is_some_and(|known| self.still_holds(known))
        {
            return Ok(false);
        }
        // Owners in hash order: where a partition is owned twice, the last one counts.
        let mut holder = vec![NOBODY; self.claims.numbered()];
        for &m in self
            .claims
            .owners
            .iter()
            .filter(|&&m| !self.fixed[m as usize])
        {
            for &id in &self.current[m as usize] {
                holder[id as usize] = m;
            }
        }
        let largest = self.largest_holders(&holder);
        for ((size, _), member) in self.by_size.iter() {
            let size = size as usize;
            if size == self.possible(member) {
                continue;
            }
            for topic in self.topics_of(member) {
                if self.ghosts {
                    if self.can_gain(&holder, member, size, topic)? {
                        return Ok(false);
                    }
                } else if size + 1 < largest[topic as usize].0 {
                    self.witness.set(Some(Witness {
                        gainer: member,
                        topic,
                        partition: largest[topic as usize].1,
                    }));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether what unbalanced the group still does: that is all that the test would find again.
    fn still_holds(&self, known: Witness) -> bool {
        let size = self.current[known.gainer as usize].len();
        let holder = self.owner[known.partition as usize];
        size != self.possible(known.gainer)
            && !self.fixed[holder as usize]
            && size + 1 < self.current[holder as usize].len()
            && self.claims.topic(known.partition) == known.topic
    }

    /// Of each topic the size of its largest holder, and a partition that it holds.
    fn largest_holders(&self, holder: &[MemberId]) -> Vec<(usize, PartitionId)> {
        let mut largest = vec![(0, 0); self.claims.group.topics.len()];
        for &topic in &self.claims.topics {
            for id in self.claims.of_topic(topic) {
                let m = holder[id as usize];
                if m != NOBODY && self.current[m as usize].len() > largest[topic as usize].0 {
                    largest[topic as usize] = (self.current[m as usize].len(), id);
                }
            }
        }
        largest
    }

    fn can_gain(
        &self,
        holder: &[MemberId],
        member: MemberId,
        size: usize,
        topic: TopicId,
    ) -> Result<bool, GroupError> {
        for id in self.claims.of_topic(topic) {
            if !self.current[member as usize].contains(&id)
                && size + 1 < self.size(holder[id as usize])?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn subscribes(&self, member: MemberId, topic: TopicId) -> bool {
        self.subscriptions.has(member, topic)
    }

    fn size(&self, member: MemberId) -> Result<usize, GroupError> {
        if member == NOBODY || self.fixed[member as usize] {
            return Err(GroupError::assignor_throws(
                self.name,
                "NullPointerException",
                "a member that takes no part in balancing is still known as an owner",
            ));
        }
        Ok(self.current[member as usize].len())
    }

    fn add(&mut self, member: MemberId, id: PartitionId) {
        self.by_size.remove(member, self.place(member));
        self.current[member as usize].push(id);
        self.owner[id as usize] = member;
        self.by_size.insert(member, self.place(member));
    }

    fn take(&mut self, member: MemberId, id: PartitionId) {
        self.by_size.remove(member, self.place(member));
        let list = &mut self.current[member as usize];
        if let Some(at) = list.iter().position(|&other| other == id) {
            list.remove(at);
        }
        self.by_size.insert(member, self.place(member));
    }

    fn place(&self, member: MemberId) -> (u32, u32) {
        let size = self.current[member as usize].len() as u32;
        (size, self.claims.member_ranks[member as usize])
    }

    /// Sum of the size differences of all pairs of members, as Java's 32-bit int has it.
    fn score(&self, lists: &Lists) -> i32 {
        let taking_part = (0..lists.len()).filter(|&m| !self.fixed[m]);
        let mut sizes: Vec<i64> = taking_part.map(|m| lists[m].len() as i64).collect();
        sizes.sort_unstable();
        // In ascending order, the i-th of n is the larger one in i pairs, the smaller in n - 1 - i.
        let n = sizes.len() as i64;
        let terms = sizes
            .iter()
            .zip(0i64..)
            .map(|(size, i)| size * (2 * i - n + 1));
        terms.fold(0i64, i64::wrapping_add) as i32
    }

    /// All members as the hash map has them after the fixed ones were taken out and put back.
    fn in_hash_order(&self) -> Vec<MemberId> {
        let owners = self.claims.owners.iter().copied();
        let (fixed, mut again): (Vec<_>, Vec<_>) = owners.partition(|&m| self.fixed[m as usize]);
        let hash_order = |members: &[MemberId]| -> Vec<MemberId> {
            let ids = members
                .iter()
                .map(|&m| self.claims.group.members[m as usize].member_id);
            let order = java_hash_order(&ids.collect::<Vec<_>>());
            order.iter().map(|&i| members[i as usize]).collect()
        };
        again.extend(hash_order(&fixed));
        hash_order(&again)
    }
}
