// SPDX-License-Identifier: Apache-2.0
//! Steps 1 to 5 of the general algorithm: members keep partitions, and the others are assigned.

use std::ops::Range;

use super::holdings::Holdings;
use super::smallest::Smallest;
use crate::assignors::classic::claims::{Claims, Scratch};
use crate::assignors::classic::constrained::without_kept;
use crate::assignors::classic::racks::Racks;
use crate::assignors::classic::subscriptions::{Subscribers, Subscriptions};
use crate::error::GroupError;
use crate::group::lists::{Lists, ascending};
use crate::group::model::{MemberId, NOBODY, PartitionId, TopicId};
use crate::group::spec::GroupSpec;
use crate::java::hash_table::{DEFAULT_SLOTS, HashTable};
use crate::java::order::{compare_names, string_hash};

/// A range of partition ids within one topic.
pub type Run = Range<PartitionId>;

pub struct Build<'c, 'g, 'a> {
    pub(super) name: &'c str,
    pub(super) claims: &'c Claims<'g, 'a>,
    pub(super) racks: Racks,
    /// The partitions of each member; `fixed` members keep their partitions to the end.
    pub(super) current: Holdings,
    /// By member: whether step 5 took the member out of balancing.
    pub(super) fixed: Vec<bool>,
    /// The order of members in Kafka's map `currentAssignment`; needed only if two members may hold
    /// one partition.
    pub(super) owners: Option<Owners<'g, 'a>>,
    /// The subscribers of each topic, sorted by member id.
    pub(super) subscribers: Subscribers,
    pub(super) subscriptions: Subscriptions,
    /// By partition: member and generation of the newest claim (believed or not) among those that
    /// are older than `max_generation`. Empty if there are none.
    pub(super) previous: Vec<(MemberId, i32)>,
    /// Whether a member lost a claimed partition in step 3.
    pub(super) revocation: bool,
    /// Topics sorted by number of subscribers, then by name.
    pub(super) topics: Vec<TopicId>,
    /// By topic: whether a `fixed` member subscribes to it.
    pub(super) meets_fixed: Vec<bool>,
    /// By member: the largest number of partitions that it could have.
    pub(super) possible: Vec<usize>,
    /// Whether some kept partition does not exist; then an existing partition may be owned twice.
    pub(super) ghosts: bool,
}

impl<'c, 'g, 'a> Build<'c, 'g, 'a> {
    pub(super) fn new(name: &'c str, claims: &'c Claims<'g, 'a>) -> Self {
        let group = claims.group;
        let members = group.members.len();
        Self {
            name,
            claims,
            racks: Racks::of(claims),
            current: Holdings::new(members, 0, false),
            fixed: vec![false; members],
            owners: None,
            subscribers: Subscribers::of(group, group.members_by_name()),
            subscriptions: Subscriptions::of(group),
            previous: Vec::new(),
            revocation: false,
            topics: claims.topics.clone(),
            meets_fixed: vec![false; group.topics.len()],
            possible: possible(claims),
            ghosts: false,
        }
    }

    pub(super) fn sort_partitions(&mut self) {
        let subscribers = &self.subscribers;
        // The sort is stable and `topics` are sorted by name, so ties stay in name order.
        self.topics.sort_by_key(|&t| subscribers.to(t).len());
    }

    pub(super) fn remember_previous(&mut self) {
        for &m in self.claims.members {
            let generation = self.claims.generation(m);
            if generation < self.claims.max_generation {
                let existing = self.claims.existing as usize;
                for id in self.claims.sent(m) {
                    self.previous.resize(existing, (NOBODY, 0));
                    // Ghosts are left out, because later code looks up existing partitions only.
                    if let Some(previous) = self.previous.get_mut(id as usize)
                        && (previous.0 == NOBODY || generation > previous.1)
                    {
                        *previous = (m, generation);
                    }
                }
            }
        }
    }

    pub(super) fn keep_owned(&mut self, mut owned: Lists) -> Vec<Run> {
        let mut scratch = Scratch::default();
        for m in 0..owned.members() as MemberId {
            let before = owned.len_of(m);
            owned.retain(m, |id| {
                self.subscribes(m, self.claims.topic(id)) && !self.racks.mismatch(m, id)
            });
            self.revocation |= owned.len_of(m) < before;
            self.ghosts |= owned.of(m).iter().any(|&id| id >= self.claims.existing);
            if owned.len_of(m) > 0 {
                self.claims.put_in_order(&mut scratch, owned.of_mut(m), m);
            }
        }
        self.current = Holdings::new(owned.members(), self.claims.numbered(), self.ghosts);
        for m in 0..owned.members() as MemberId {
            for &id in owned.of(m) {
                self.current.give(m, id);
            }
        }
        without_kept(self.claims, &self.topics, &owned)
    }

    /// Assigns topic by topic. Only the topic's subscribers are compared by size (their number of
    /// partitions), because other members cannot get the topic's partitions.
    pub(super) fn assign_unassigned(&mut self, unassigned: &[Run]) -> Result<(), GroupError> {
        let left = self.assign_near(unassigned)?;
        let left = left.as_deref().unwrap_or(unassigned);
        let mut smallest = Smallest::default();
        for runs in left.chunk_by(|a, b| self.claims.topic(a.start) == self.claims.topic(b.start)) {
            self.claims.go_on()?;
            let members = self.subscribers.distinct(self.claims.topic(runs[0].start));
            smallest.fill(members.iter().map(|&m| Some(self.current.size(m) as u32)));
            for id in runs.iter().cloned().flatten() {
                if let Some((size, place)) = smallest.first() {
                    self.current.give(members[place], id);
                    smallest.set(place, size + 1);
                }
            }
        }
        Ok(())
    }

    /// Runs the pass of step 4 with racks: only members near a partition or without a rack get it.
    /// Returns the partitions that remain; None if racks are not active. All members of a rack are
    /// near the same partitions, so only the rack's member with the fewest partitions is compared.
    pub(super) fn assign_near(
        &mut self,
        unassigned: &[Run],
    ) -> Result<Option<Vec<Run>>, GroupError> {
        if !self.racks.active() {
            return Ok(None);
        }
        let mut left: Vec<Run> = Vec::new();
        let topic = |run: &Run| self.claims.topic(run.start);
        for runs in unassigned.chunk_by(|a, b| topic(a) == topic(b)) {
            self.claims.go_on()?;
            let members = self.subscribers.distinct(topic(&runs[0]));
            // The racks of the members, None (no rack) first. `in_rack` lists the members of each
            // rack, sorted by id.
            let racks = ascending(members.iter().map(|&m| self.racks.of_member(m)));
            let mut in_rack = vec![Vec::new(); racks.len()];
            for &m in members.iter() {
                if let Ok(rack) = racks.binary_search(&self.racks.of_member(m)) {
                    in_rack[rack].push(m);
                }
            }
            let fill = |members: &Vec<MemberId>| {
                let mut smallest = Smallest::default();
                smallest.fill(members.iter().map(|&m| Some(self.current.size(m) as u32)));
                smallest
            };
            let mut smallest: Vec<Smallest> = in_rack.iter().map(fill).collect();
            let mut last: Option<Run> = None;
            for id in runs.iter().cloned().flatten() {
                let near = self.racks.of_partition(id).iter().copied().map(Some);
                let fits = near.chain([None]);
                let fits = fits.filter_map(|rack| racks.binary_search(&rack).ok());
                let first = fits.filter_map(|rack| {
                    let (size, place) = smallest[rack].first()?;
                    let member = in_rack[rack][place];
                    let rank = self.claims.member_ranks[member as usize];
                    Some((size, rank, rack, place))
                });
                if let Some((size, _, rack, place)) = first.min() {
                    self.current.give(in_rack[rack][place], id);
                    smallest[rack].set(place, size + 1);
                } else if let Some(run) = last.as_mut().filter(|run| run.end == id) {
                    run.end = id + 1;
                } else {
                    left.extend(last.replace(id..id + 1));
                }
            }
            left.extend(last);
        }
        Ok(Some(left))
    }

    pub(super) fn take_out_fixed(&mut self) {
        let mut contested = vec![false; self.fixed.len()];
        for (m, id) in self.current.iter() {
            contested[m as usize] |= self.is_contested(self.claims.topic(id));
        }
        for m in 0..self.fixed.len() as MemberId {
            let can_have_more = self.current.size(m) < self.possible[m as usize];
            if !can_have_more && !contested[m as usize] {
                self.fixed[m as usize] = true;
                for &topic in self.claims.group.subscription(m) {
                    self.meets_fixed[topic as usize] = true;
                }
            }
        }
        self.owners = self
            .ghosts
            .then(|| Owners::without_fixed(self.claims, &self.fixed));
    }

    pub(super) fn is_contested(&self, topic: TopicId) -> bool {
        self.subscribers.to(topic).len() >= 2
    }

    pub(super) fn subscribes(&self, member: MemberId, topic: TopicId) -> bool {
        self.subscriptions.has(member, topic)
    }
}

/// Returns, by member, the largest number of partitions that it could have. A topic listed twice
/// counts twice, unless the member's list is as long as the list of all subscribed topics.
fn possible(claims: &Claims) -> Vec<usize> {
    let mut possible: Vec<usize> = Vec::with_capacity(claims.group.members.len());
    for m in 0..claims.group.members.len() as MemberId {
        let topics = topics_of(claims, m);
        let partitions = match possible.last() {
            Some(&same) if claims.group.same_subscription(m - 1, m) => same,
            _ if topics.clone().count() == claims.topics.len() => claims.existing as usize,
            _ => topics.map(|topic| claims.of_topic(topic).len()).sum(),
        };
        possible.push(partitions);
    }
    possible
}

/// Returns the existing topics of a member's subscription; a topic listed twice appears twice.
pub fn topics_of<'c>(
    claims: &'c Claims,
    member: MemberId,
) -> impl Iterator<Item = TopicId> + Clone + 'c {
    let topics = claims.group.subscription(member).iter().copied();
    topics.filter(|&topic| claims.group.topics[topic as usize].partitions > 0)
}

/// Mirror of `Owners` in `general.py`: the members, without the fixed ones, in the order of Kafka's
/// map `currentAssignment`. The order matters only if two members may hold one partition, so only
/// such groups have an `Owners`.
pub struct Owners<'g, 'a> {
    group: &'g GroupSpec<'a>,
    table: HashTable,
    /// Members that step 5 took out, in the order in which Kafka visits them.
    fixed: Vec<MemberId>,
}

impl<'g, 'a> Owners<'g, 'a> {
    /// Builds the map as it is after step 5. Step 5 visits the members in the order of another map,
    /// which was created with a capacity for all of them.
    pub fn without_fixed(claims: &Claims<'g, 'a>, is_fixed: &[bool]) -> Self {
        let group = claims.group;
        let walked = claims.members.iter().copied();
        let slots = claims.members.len().next_power_of_two();
        let mut fixed = table(group, walked.clone(), slots).keys();
        fixed.retain(|&m| is_fixed[m as usize]);
        let mut table = table(group, walked, DEFAULT_SLOTS);
        for &member in &fixed {
            table.remove(member);
        }
        Self {
            group,
            table,
            fixed,
        }
    }

    pub fn order(&self) -> Vec<MemberId> {
        self.table.keys()
    }

    /// Clears the map and refills it from a copy, as Kafka does; the number of slots stays.
    pub fn copy_back(&mut self) {
        let copy = table(self.group, self.order().into_iter(), DEFAULT_SLOTS);
        let slots = self.table.slots();
        self.table = table(self.group, copy.keys().into_iter(), slots);
    }

    /// Returns all members in the map's order, after the fixed members are put back into it.
    pub fn with_fixed(mut self) -> Vec<MemberId> {
        let fixed = table(self.group, self.fixed.iter().copied(), DEFAULT_SLOTS);
        put_all(&mut self.table, self.group, fixed.keys().into_iter());
        self.table.keys()
    }
}

fn table(group: &GroupSpec, members: impl Iterator<Item = MemberId>, slots: usize) -> HashTable {
    let mut table = HashTable::with_slots(slots);
    put_all(&mut table, group, members);
    table
}

fn put_all(table: &mut HashTable, group: &GroupSpec, members: impl Iterator<Item = MemberId>) {
    let id = |m: MemberId| group.members[m as usize].member_id;
    for member in members {
        table.put(member, string_hash(id(member)), &|a, b| {
            compare_names(id(a), id(b))
        });
    }
}
