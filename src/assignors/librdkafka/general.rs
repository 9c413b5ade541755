// SPDX-License-Identifier: Apache-2.0
//! Mirror of `general.py`: librdkafka's version of Kafka's general sticky algorithm, in the steps
//! that the Python module explains. Candidates (the members that can have a partition) are stored
//! by topic, because all partitions of a topic have equal candidates. As in Python, the test for
//! balance runs only at the start of a pass and after a move.

use std::collections::BTreeSet;

use super::claims::{Numbers, Settled};
use super::movements::{MoveRecords, NAME, dies};
use crate::assignors::classic::general::score;
use crate::assignors::classic::racks::racks_matter;
use crate::assignors::classic::subscriptions::Subscribers;
use crate::error::GroupError;
use crate::group::lists::ascending;
use crate::group::model::{MemberId, NOBODY, PartitionId, RackId, TopicId};
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;
use crate::java::order::by_rank;

/// The number of the first pass whose state is saved. Most groups need fewer passes.
const FIRST_SAVED_PASS: usize = 8;

type Lists = Vec<Vec<PartitionId>>;

/// Assigns partitions to `members` (those with topics). Returns the ids of the partitions, and the
/// list of each member.
pub fn assign(
    group: &GroupSpec,
    members: &[MemberId],
    claims: Settled,
    interrupt: &Interrupt,
) -> Result<(Numbers, Lists), GroupError> {
    let mut build = Build::new(group, members, claims, interrupt)?;
    build.sort_partitions(); // step 1
    let unassigned = build.keep_owned(); // step 2
    let initializing = build.by_size.last().is_some_and(|&(size, _)| size == 0);
    build.assign_unassigned(&unassigned); // step 3
    build.take_out_fixed(); // step 4
    build.balance(unassigned, initializing)?; // steps 5 and 6
    Ok((build.numbers, build.current))
}

/// The racks of members and partitions; both lists are empty if racks make no difference.
#[derive(Default)]
struct SentRacks {
    /// By member: None if its rack is null; Some(None) if its rack is the empty string and no
    /// replica's rack is; else Some(Some(rack)).
    of_member: Vec<Option<Option<RackId>>>,
    of_partition: Vec<Vec<RackId>>,
}

impl SentRacks {
    fn of(
        group: &GroupSpec,
        members: &[MemberId],
        existing: &[PartitionId],
        numbers: &Numbers,
    ) -> Result<Self, GroupError> {
        let member = |&m: &MemberId| &group.members[m as usize];
        if members.iter().all(|m| member(m).rack.is_none()) {
            return Ok(Self::default());
        }
        let mut of_partition = vec![Vec::new(); numbers.count()];
        for &id in existing {
            let racks = group.replica_racks(numbers.partition(id));
            of_partition[id as usize] = ascending(racks.iter().copied());
        }
        let of_members = members.iter().filter_map(|m| member(m).rack.as_ref());
        let of_partitions = existing.iter().map(|&id| &of_partition[id as usize]);
        if !racks_matter(of_members, of_partitions) {
            return Ok(Self::default());
        }
        if members.iter().any(|m| !member(m).as_sent.sends_rack()) {
            let reason = "a subscription has no rack, because its version is older than 3";
            return Err(dies(reason));
        }
        let empty = group.rack_names.iter().position(|name| name.is_empty());
        let empty = empty.map(|rack| rack as RackId);
        let of_member = group.members.iter().map(|member| match member.rack {
            Some(rack) => Some(Some(rack)),
            None => member.as_sent.empty_rack.then_some(empty),
        });
        Ok(Self {
            of_member: of_member.collect(),
            of_partition,
        })
    }

    fn active(&self) -> bool {
        !self.of_member.is_empty()
    }

    /// Whether the member has a rack (even an empty one) that holds no replica of the partition.
    fn mismatch(&self, member: MemberId, id: PartitionId) -> bool {
        let Some(Some(rack)) = self.of_member.get(member as usize) else {
            return false;
        };
        let racks = &self.of_partition[id as usize];
        rack.is_none_or(|rack| racks.binary_search(&rack).is_err())
    }
}

struct Build<'g> {
    members: &'g [MemberId],
    interrupt: &'g Interrupt,
    numbers: Numbers,
    /// By member: its partitions. The lists of `fixed` members do not change.
    current: Lists,
    fixed: Vec<bool>,
    holder: Vec<MemberId>,
    previous: Vec<MemberId>,
    movements: MoveRecords,
    /// By topic: its subscribers in the group's order; none for a topic without partitions.
    candidates: Vec<Vec<MemberId>>,
    /// By member: its topics that have partitions, in the group's order.
    topics: Vec<Vec<TopicId>>,
    /// By member: the largest number of partitions that it could have.
    possible: Vec<usize>,
    racks: SentRacks,
    /// All partitions that have a candidate, in the order of step 1.
    order: Vec<PartitionId>,
    /// Members that are not fixed, sorted by the number of partitions owned, then by the id's rank.
    by_size: BTreeSet<(usize, u32)>,
    rank: Vec<u32>,
    of_rank: Vec<MemberId>,
    topic_rank: Vec<u32>,
    revocation: bool,
}

impl<'g> Build<'g> {
    fn new(
        group: &GroupSpec,
        members: &'g [MemberId],
        claims: Settled,
        interrupt: &'g Interrupt,
    ) -> Result<Self, GroupError> {
        let in_order: Vec<MemberId> = (0..group.members.len() as MemberId).collect();
        let subscribers = Subscribers::of(group, &in_order);
        let mut topics = vec![Vec::new(); group.members.len()];
        let mut possible = vec![0; group.members.len()];
        let mut candidates = vec![Vec::new(); group.topics.len()];
        let mut order = Vec::new();
        for topic in 0..group.topics.len() as TopicId {
            let partitions = claims.numbers.of_topic(topic);
            if partitions.is_empty() {
                continue;
            }
            let of_topic = subscribers.distinct(topic).into_owned();
            for &m in &of_topic {
                topics[m as usize].push(topic);
                possible[m as usize] += partitions.len();
            }
            if !of_topic.is_empty() {
                order.extend(partitions);
            }
            candidates[topic as usize] = of_topic;
        }
        let racks = SentRacks::of(group, members, &order, &claims.numbers)?;
        let (of_rank, rank) = ranked(&group.member_ids());
        Ok(Self {
            members,
            interrupt,
            numbers: claims.numbers,
            current: claims.owned,
            fixed: vec![false; group.members.len()],
            holder: claims.holder,
            previous: claims.previous,
            movements: MoveRecords::default(),
            candidates,
            topics,
            possible,
            racks,
            order,
            by_size: BTreeSet::new(),
            rank,
            of_rank,
            topic_rank: ranked(&group.topic_names()).1,
            revocation: false,
        })
    }

    fn sort_partitions(&mut self) {
        let mut topics = self.candidates.iter().filter(|list| !list.is_empty());
        let first = topics.next();
        let equal = first.is_none_or(|first| {
            first.len() == self.members.len() && topics.all(|list| list == first)
        });
        if equal {
            self.order = self.by_load();
            return;
        }
        let mut order = std::mem::take(&mut self.order);
        order.sort_unstable_by_key(|&id| (self.of_topic(id).len(), self.place(id)));
        self.order = order;
    }

    /// Orders the partitions: the next one always comes from the member that has the most
    /// partitions left. Partitions without an owner come last.
    fn by_load(&mut self) -> Vec<PartitionId> {
        let mut current = std::mem::take(&mut self.current);
        let mut left = vec![Vec::new(); current.len()];
        let mut by_left = BTreeSet::new();
        for &m in self.members {
            let owned = &mut current[m as usize];
            owned.sort_unstable_by_key(|&id| self.place(id));
            let existing = owned.iter().copied().filter(|&id| self.exists(id));
            // Partitions with a previous owner go first; the list is consumed from its end.
            let (first, last): (Vec<_>, Vec<_>) =
                existing.partition(|&id| self.previous[id as usize] != NOBODY);
            let list = &mut left[m as usize];
            list.extend(last.into_iter().rev());
            list.extend(first.into_iter().rev());
            by_left.insert((list.len(), self.rank[m as usize]));
        }
        self.current = current;
        let mut order = Vec::with_capacity(self.order.len());
        let mut ordered = vec![false; self.numbers.count()];
        while let Some((_, rank)) = by_left.pop_last() {
            let list = &mut left[self.of_rank[rank as usize] as usize];
            if let Some(id) = list.pop() {
                order.push(id);
                ordered[id as usize] = true;
                by_left.insert((list.len(), rank));
            }
        }
        let rest = self.order.iter().copied();
        if order.is_empty() {
            order.extend(rest);
            order.sort_unstable_by_key(|&id| self.place(id));
        } else {
            order.extend(rest.rev().filter(|&id| !ordered[id as usize]));
        }
        order
    }

    fn keep_owned(&mut self) -> Vec<PartitionId> {
        let mut kept = vec![false; self.numbers.count()];
        for &m in self.members {
            let mut owned = std::mem::take(&mut self.current[m as usize]);
            owned.retain(|&id| {
                if !self.exists(id) {
                    self.holder[id as usize] = NOBODY;
                    return false;
                }
                let stays = self.can_have(m, id) && !self.racks.mismatch(m, id);
                self.revocation |= !stays;
                kept[id as usize] |= stays;
                stays
            });
            self.by_size.insert((owned.len(), self.rank[m as usize]));
            self.current[m as usize] = owned;
        }
        let order = self.order.iter().copied();
        order.filter(|&id| !kept[id as usize]).collect()
    }

    fn assign_unassigned(&mut self, unassigned: &[PartitionId]) {
        let mut left = unassigned.to_vec();
        if self.racks.active() {
            left.retain(|&id| !self.assign_smallest(id, true));
        }
        for id in left {
            self.assign_smallest(id, false);
        }
    }

    fn assign_smallest(&mut self, id: PartitionId, by_racks: bool) -> bool {
        let fits =
            |&m: &MemberId| self.can_have(m, id) && !(by_racks && self.racks.mismatch(m, id));
        let found = self.smallest_first().find(fits);
        if let Some(m) = found {
            self.append(m, id);
        }
        found.is_some()
    }

    fn smallest_first(&self) -> impl Iterator<Item = MemberId> {
        let ranks = self.by_size.iter().map(|&(_, rank)| rank);
        ranks.map(|rank| self.of_rank[rank as usize])
    }

    fn take_out_fixed(&mut self) {
        for &m in self.members {
            let owned = &self.current[m as usize];
            let contested = owned.iter().any(|&id| self.of_topic(id).len() >= 2);
            if owned.len() >= self.possible[m as usize] && !contested {
                self.fixed[m as usize] = true;
                self.by_size.remove(&(owned.len(), self.rank[m as usize]));
            }
        }
    }

    fn balance(
        &mut self,
        mut unassigned: Vec<PartitionId>,
        initializing: bool,
    ) -> Result<(), GroupError> {
        let before = (!initializing).then(|| self.current.clone());
        let mut order = std::mem::take(&mut self.order);
        order.retain(|&id| self.of_topic(id).len() >= 2);
        if !self.revocation {
            unassigned.retain(|&id| self.of_topic(id).len() >= 2);
            self.reassign(&unassigned)?;
        }
        let moved = self.reassign(&order)?;
        if let Some(before) = before
            && moved
            && self.score(&self.current) >= self.score(&before)
        {
            self.current = before;
        }
        Ok(())
    }

    fn reassign(&mut self, partitions: &[PartitionId]) -> Result<bool, GroupError> {
        let mut moved_any = false;
        let (mut passes, mut save_at) = (0, FIRST_SAVED_PASS);
        let mut saved = None;
        while !partitions.is_empty() && self.pass(partitions)? {
            moved_any = true;
            // A pass depends only on the state, so the passes never end if a state occurs again.
            passes += 1;
            if passes >= FIRST_SAVED_PASS {
                let state = (
                    self.current.clone(),
                    self.holder.clone(),
                    self.movements.clone(),
                );
                if saved.as_ref() == Some(&state) {
                    return Err(GroupError::assignor_never_ends(NAME));
                }
                if passes == save_at {
                    (saved, save_at) = (Some(state), 2 * save_at);
                }
            }
        }
        Ok(moved_any)
    }

    fn pass(&mut self, partitions: &[PartitionId]) -> Result<bool, GroupError> {
        let mut moved = false;
        let mut balanced = self.is_balanced()?;
        for &id in partitions {
            if balanced {
                break;
            }
            if self.reassign_one(id)? {
                moved = true;
                balanced = self.is_balanced()?; // only a move changes this result
            }
        }
        Ok(moved)
    }

    fn reassign_one(&mut self, id: PartitionId) -> Result<bool, GroupError> {
        let holder = self.holder[id as usize];
        let size = self.size(holder)?;
        let previous = self.previous[id as usize];
        if previous != NOBODY && size > self.size(previous)? + 1 {
            self.relocate(id, previous)?;
            return Ok(true);
        }
        for &other in self.of_topic(id) {
            if other != holder && size > self.size(other)? + 1 {
                let smallest = self.smallest_first().find(|&m| self.can_have(m, id));
                self.relocate(id, smallest.unwrap_or(other))?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn relocate(&mut self, id: PartitionId, destination: MemberId) -> Result<(), GroupError> {
        let topic = self.numbers.partition(id).topic;
        let holder = self.holder[id as usize];
        let (id, moves_back) = self.movements.actual((topic, id), holder, destination)?;
        let source = self.holder[id as usize];
        let moves = (topic, id);
        let id = self
            .movements
            .record(moves, source, destination, moves_back)?;
        self.append(destination, id);
        let owned = &mut self.current[source as usize];
        if let Some(at) = owned.iter().position(|&other| other == id) {
            let rank = self.rank[source as usize];
            self.by_size.remove(&(owned.len(), rank));
            owned.remove(at);
            self.by_size.insert((owned.len(), rank));
        }
        Ok(())
    }

    /// Whether loads differ by at most 1, or no member can take a partition from a fuller one.
    fn is_balanced(&self) -> Result<bool, GroupError> {
        self.interrupt.check()?;
        let sizes = (self.by_size.first(), self.by_size.last());
        let (Some(&(least, _)), Some(&(most, _))) = sizes else {
            return Ok(true);
        };
        if least + 1 >= most {
            return Ok(true);
        }
        let mut owner = vec![NOBODY; self.numbers.count()];
        let taking_part = self.members.iter().filter(|&&m| !self.fixed[m as usize]);
        for &m in taking_part.rev() {
            for &id in &self.current[m as usize] {
                owner[id as usize] = m;
            }
        }
        // By partition: the last member whose list contains it. The array need not be cleared for
        // each member, because a member looks only for its own number.
        let mut owned_by = vec![NOBODY; self.numbers.count()];
        for &(size, rank) in &self.by_size {
            let m = self.of_rank[rank as usize];
            if size == self.possible[m as usize] {
                continue;
            }
            for &id in &self.current[m as usize] {
                owned_by[id as usize] = m;
            }
            let topics = self.topics[m as usize].iter();
            for id in topics.flat_map(|&topic| self.numbers.of_topic(topic)) {
                if owned_by[id as usize] != m && size < self.size(owner[id as usize])? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn score(&self, lists: &Lists) -> i32 {
        let members = self.members.iter().filter(|&&m| !self.fixed[m as usize]);
        score(members.map(|&m| lists[m as usize].len() as i64).collect())
    }

    fn size(&self, member: MemberId) -> Result<usize, GroupError> {
        if self.fixed.get(member as usize) == Some(&false) {
            return Ok(self.current[member as usize].len());
        }
        Err(dies(
            "a partition has no holder that takes part in balancing",
        ))
    }

    fn append(&mut self, member: MemberId, id: PartitionId) {
        let owned = &mut self.current[member as usize];
        let rank = self.rank[member as usize];
        self.by_size.remove(&(owned.len(), rank));
        owned.push(id);
        self.by_size.insert((owned.len(), rank));
        self.holder[id as usize] = member;
    }

    /// Returns the candidates of the partition's topic; none if the topic has no partitions.
    fn of_topic(&self, id: PartitionId) -> &[MemberId] {
        &self.candidates[self.numbers.partition(id).topic as usize]
    }

    /// Whether the partition exists and has a candidate.
    fn exists(&self, id: PartitionId) -> bool {
        let topic = self.numbers.partition(id).topic;
        self.numbers.of_topic(topic).contains(&id) && !self.of_topic(id).is_empty()
    }

    fn can_have(&self, member: MemberId, id: PartitionId) -> bool {
        self.of_topic(id).binary_search(&member).is_ok()
    }

    fn place(&self, id: PartitionId) -> (u32, u32) {
        let tp = self.numbers.partition(id);
        (self.topic_rank[tp.topic as usize], tp.partition)
    }
}

/// Returns the names' indices, sorted by the names' bytes, and each name's rank in this order.
fn ranked(names: &[&str]) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_by_key(|&i| names[i as usize]);
    let ranks = by_rank(&order);
    (order, ranks)
}
