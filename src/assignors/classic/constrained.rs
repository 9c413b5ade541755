// SPDX-License-Identifier: Apache-2.0
//! Mirror of `constrained.py`: the sticky algorithm for members with equal subscriptions, in the
//! steps that the Python module explains.

use std::collections::VecDeque;
use std::ops::Range;

use super::claims::Claims;
use super::racks::Racks;
use crate::error::GroupError;
use crate::group::lists::Lists;
use crate::group::model::{MemberId, NOBODY, PartitionId, TopicId};

/// The answer. `transferring` lists partitions with their new owners: those that another member has
/// to revoke first, and those that two members claim in one generation.
pub struct Constrained {
    pub assignment: Lists,
    pub transferring: Vec<(PartitionId, MemberId)>,
}

/// Assigns all partitions. `name` is the assignor's name in errors; `owned` holds the believed
/// claims.
pub fn assign(name: &str, claims: &Claims, owned: Lists) -> Result<Constrained, GroupError> {
    let mut build = Build::new(name, claims);
    build.keep_owned(owned); // step 1
    let mut unassigned = build.unassigned(); // step 2
    build.sort(&mut unassigned); // step 3
    if build.racks.active() {
        build.assign_near(&mut unassigned)?; // step 4
    }
    build.assign_round_robin(&unassigned)?; // step 5
    Ok(Constrained {
        assignment: build.assignment,
        transferring: build.transferring,
    })
}

struct Build<'c, 'g, 'a> {
    name: &'c str,
    claims: &'c Claims<'g, 'a>,
    racks: Racks,
    least: usize,
    most: usize,
    extras: usize,
    extras_used: usize,
    /// Members with fewer than `least` partitions.
    short: Vec<MemberId>,
    /// Members that have exactly `least` partitions and may get one more.
    at_least: VecDeque<MemberId>,
    assignment: Lists,
    /// By partition: the member that must revoke it, or NOBODY. Empty until the first revocation.
    revoked_from: Vec<MemberId>,
    transferring: Vec<(PartitionId, MemberId)>,
}

impl<'c, 'g, 'a> Build<'c, 'g, 'a> {
    fn new(name: &'c str, claims: &'c Claims<'g, 'a>) -> Self {
        let members = claims.group.members.len();
        let partitions = claims.existing as usize;
        let (least, extras) = (partitions / members, partitions % members);
        // No member gets more than `least` + 1 partitions.
        let room = least as u32 + 1;
        Self {
            name,
            claims,
            racks: Racks::of(claims),
            least,
            most: least + usize::from(extras > 0),
            extras,
            extras_used: 0,
            short: Vec::new(),
            at_least: VecDeque::new(),
            assignment: Lists::with_room((0..members).map(|_| room)),
            revoked_from: Vec::new(),
            transferring: Vec::new(),
        }
    }

    fn keep_owned(&mut self, owned: Lists) {
        let claims = self.claims;
        let mut mismatched: Vec<PartitionId> = Vec::new();
        let mut sorted: Vec<(u64, PartitionId)> = Vec::new();
        for &member in claims.owners {
            mismatched.clear();
            sorted.clear();
            for &id in owned.of(member) {
                if self.racks.mismatch(member, id) {
                    mismatched.push(id);
                } else if !claims.is_multiply_owned(id) {
                    let tp = claims.partition(id);
                    // A single number sorts faster than a pair.
                    let rank = u64::from(claims.topic_ranks[tp.topic as usize]);
                    sorted.push((u64::from(tp.partition) << 32 | rank, id));
                }
            }
            sorted.sort_unstable_by_key(|&(key, _)| key);
            let keep = if sorted.len() < self.least {
                self.short.push(member);
                sorted.len()
            } else if sorted.len() >= self.most && self.extras_used < self.extras {
                self.use_extra();
                self.most
            } else {
                if self.extras_used < self.extras {
                    self.at_least.push_back(member);
                }
                self.least
            };
            let owned = sorted.iter().map(|&(_, id)| id);
            self.assignment.extend(member, owned.clone().take(keep));
            for id in mismatched.drain(..).chain(owned.skip(keep)) {
                if self.revoked_from.is_empty() {
                    self.revoked_from = vec![NOBODY; claims.numbered()];
                }
                self.revoked_from[id as usize] = member;
            }
        }
    }

    fn unassigned(&self) -> Vec<PartitionId> {
        let runs = without_kept(self.claims, &self.claims.topics, &self.assignment);
        let mut unassigned = Vec::with_capacity(runs.iter().map(ExactSizeIterator::len).sum());
        runs.into_iter().for_each(|run| unassigned.extend(run));
        unassigned
    }

    fn sort(&mut self, unassigned: &mut [PartitionId]) {
        // `members_by_name` is sorted by id, so the members that are taken from it are sorted, too.
        let mut is_short = vec![false; self.assignment.members()];
        for &member in &self.short {
            is_short[member as usize] = true;
        }
        let by_name = self.claims.group.members_by_name().iter().copied();
        self.short.clear();
        self.short
            .extend(by_name.filter(|&member| is_short[member as usize]));
        let ranks = self.claims.member_ranks;
        let at_least = self.at_least.make_contiguous();
        at_least.sort_unstable_by_key(|&member| ranks[member as usize]);
        if self.racks.active() {
            unassigned.sort_by_key(|&id| self.racks.members_near(id));
        }
    }

    fn assign_near(&mut self, unassigned: &mut Vec<PartitionId>) -> Result<(), GroupError> {
        let mut left = Vec::new();
        let mut start = 0;
        for &id in unassigned.iter() {
            self.claims.go_on()?;
            if let Some(mut at) = self.racks.next_near(id, self.short.iter(), start) {
                let member = self.short[at];
                let count = self.give(id, member);
                if count >= self.least {
                    self.short.remove(at);
                    if count < self.most && self.extras_used < self.extras {
                        self.at_least.push_back(member);
                    }
                } else {
                    at += 1;
                }
                start = if self.short.is_empty() {
                    0
                } else {
                    at % self.short.len()
                };
            } else if let Some(at) = self.racks.next_near(id, self.at_least.iter(), 0) {
                let member = self.at_least[at];
                if self.give(id, member) == self.most {
                    self.at_least.remove(at);
                    self.use_extra();
                }
            } else {
                left.push(id);
            }
        }
        *unassigned = left;
        Ok(())
    }

    fn assign_round_robin(&mut self, unassigned: &[PartitionId]) -> Result<(), GroupError> {
        let mut unassigned = self.assign_whole_rounds(unassigned).iter();
        // Kafka gives one partition to each short member in turn, again and again; a member that
        // reaches `least` leaves the circle. Other members keep their order, so whole rounds over a
        // list of the members that are still short lead to the same result.
        while !self.short.is_empty() {
            let mut still_short = Vec::with_capacity(self.short.len());
            for member in std::mem::take(&mut self.short) {
                let Some(&id) = unassigned.next() else {
                    return Err(self.throws("no partition is left for members that have too few"));
                };
                if self.give(id, member) == self.least {
                    self.at_least.push_back(member);
                } else {
                    still_short.push(member);
                }
            }
            self.short = still_short;
        }
        for &id in unassigned {
            let Some(member) = self.at_least.pop_front() else {
                return Err(self.throws("no member may take another partition"));
            };
            self.give(id, member);
        }
        Ok(())
    }

    /// Assigns in one step the partitions of all rounds in which no member of `short` reaches
    /// `least`. Does nothing if a partition may be transferring, because only `give` records such a
    /// partition. Returns the partitions that remain.
    fn assign_whole_rounds<'u>(&mut self, unassigned: &'u [PartitionId]) -> &'u [PartitionId] {
        let longest = self.short.iter().map(|&m| self.assignment.len_of(m)).max();
        let rounds = match longest {
            Some(longest) if self.revoked_from.is_empty() && !self.claims.any_multiply_owned() => {
                (self.least - longest - 1).min(unassigned.len() / self.short.len())
            }
            _ => return unassigned,
        };
        let (dealt, left) = unassigned.split_at(rounds * self.short.len());
        for (place, &member) in self.short.iter().enumerate() {
            let share = dealt.iter().skip(place).step_by(self.short.len());
            self.assignment.extend(member, share.copied());
        }
        left
    }

    fn give(&mut self, id: PartitionId, member: MemberId) -> usize {
        let from = self.revoked_from.get(id as usize).copied();
        let taken_from_other = from.is_some_and(|from| from != NOBODY && from != member);
        if taken_from_other || self.claims.is_multiply_owned(id) {
            self.transferring.push((id, member));
        }
        self.assignment.push(member, id)
    }

    fn use_extra(&mut self) {
        self.extras_used += 1;
        if self.extras_used == self.extras {
            self.at_least.clear();
        }
    }

    fn throws(&self, reason: &str) -> GroupError {
        let reason = format!("{reason}; owned partitions do not fit the topics");
        GroupError::assignor_throws(self.name, "IllegalStateException", &reason)
    }
}

/// Returns the partitions that are not kept, in the order of `topics`, as runs of ids.
///
/// Kafka walks through all partitions and the sorted kept ones together. A kept partition that does
/// not exist (a ghost) stops the walk, and all partitions after it count as not kept. A ghost sorts
/// after its topic's existing partitions, so the walk stops at the end of the first topic that has
/// a kept ghost. Up to there, a partition counts as kept if a member kept it.
pub fn without_kept(claims: &Claims, topics: &[TopicId], kept: &Lists) -> Vec<Range<PartitionId>> {
    let mut is_kept = vec![false; claims.numbered()];
    let mut has_ghost = vec![false; claims.group.topics.len()];
    for &id in kept.iter().flatten() {
        is_kept[id as usize] = true;
        has_ghost[claims.topic(id) as usize] |= id >= claims.existing;
    }
    let mut runs = Vec::new();
    let mut stopped = false;
    for &topic in topics {
        let mut of_topic = claims.of_topic(topic);
        if stopped {
            runs.push(of_topic);
            continue;
        }
        let is_kept = |&id: &PartitionId| is_kept[id as usize];
        while let Some(start) = of_topic.find(|id| !is_kept(id)) {
            let end = of_topic.find(is_kept).unwrap_or(of_topic.end);
            runs.push(start..end);
        }
        stopped |= has_ghost[topic as usize];
    }
    runs
}
