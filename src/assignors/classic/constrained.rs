//! Mirror of `constrained.py`, which explains the steps.

use std::collections::VecDeque;

use super::claims::{Claims, NOBODY, PartitionId};
use super::racks::Racks;
use crate::error::GroupError;
use crate::group::{MemberId, TopicId};

/// The answer, and to whom each partition goes that somebody else had, or `NOBODY`.
pub struct Constrained {
    pub assignment: Vec<Vec<PartitionId>>,
    pub transferring: Vec<MemberId>,
}

pub fn assign(name: &str, claims: &Claims) -> Result<Constrained, GroupError> {
    let mut build = Build::new(name, claims);
    build.keep_owned(); // 1.
    let mut unassigned = build.unassigned(); // 2.
    build.sort(&mut unassigned); // 3.
    if build.racks.active() {
        build.assign_near(&mut unassigned); // 4.
    }
    build.assign_round_robin(&unassigned)?; // 5.
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
    /// Members below `least`.
    short: Vec<MemberId>,
    /// Members at `least` that may have one more.
    at_least: VecDeque<MemberId>,
    assignment: Vec<Vec<PartitionId>>,
    revoked_from: Vec<MemberId>,
    transferring: Vec<MemberId>,
}

impl<'c, 'g, 'a> Build<'c, 'g, 'a> {
    fn new(name: &'c str, claims: &'c Claims<'g, 'a>) -> Self {
        let members = claims.owned.len();
        let partitions = claims.existing() as usize;
        let extras = partitions % members;
        Self {
            name,
            claims,
            racks: Racks::of(claims),
            least: partitions / members,
            most: partitions.div_ceil(members),
            extras,
            extras_used: 0,
            short: Vec::new(),
            at_least: VecDeque::new(),
            assignment: vec![Vec::new(); members],
            revoked_from: vec![NOBODY; claims.numbered()],
            transferring: vec![NOBODY; claims.numbered()],
        }
    }

    fn keep_owned(&mut self) {
        let claims = self.claims;
        for &member in claims.owners {
            let claimed = &claims.owned[member as usize];
            let mismatch = |&id: &PartitionId| self.racks.mismatch(member, id);
            let (mismatched, mut owned): (Vec<_>, Vec<_>) =
                claimed.iter().partition(|id| mismatch(id));
            owned.retain(|&id| !claims.multiply_owned[id as usize]);
            owned.sort_unstable_by_key(|&id| {
                let tp = claims.partition(id);
                // One number compares faster than two.
                u64::from(tp.partition) << 32 | u64::from(claims.topic_ranks[tp.topic as usize])
            });
            let keep = if owned.len() < self.least {
                self.short.push(member);
                owned.len()
            } else if owned.len() >= self.most && self.extras_used < self.extras {
                self.use_extra();
                self.most
            } else {
                if self.extras_used < self.extras {
                    self.at_least.push_back(member);
                }
                self.least
            };
            for &id in mismatched.iter().chain(&owned[keep..]) {
                self.revoked_from[id as usize] = member;
            }
            owned.truncate(keep);
            owned.reserve_exact(self.most - keep);
            self.assignment[member as usize] = owned;
        }
    }

    fn unassigned(&self) -> Vec<PartitionId> {
        let mut topics = self.claims.topics.clone();
        topics.sort_unstable_by_key(|&topic| self.claims.topic_ranks[topic as usize]);
        without_kept(self.claims, &topics, &self.assignment)
    }

    fn sort(&mut self, unassigned: &mut [PartitionId]) {
        // By id: all members are there in that order already.
        let mut is_short = vec![false; self.assignment.len()];
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

    fn assign_near(&mut self, unassigned: &mut Vec<PartitionId>) {
        let mut left = Vec::new();
        let mut start = 0;
        for &id in unassigned.iter() {
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
    }

    fn assign_round_robin(&mut self, unassigned: &[PartitionId]) -> Result<(), GroupError> {
        let mut unassigned = unassigned.iter();
        // A round over the short members at a time; those that have enough drop out of the next.
        // The walk is a circle that keeps its order, so that the rounds are the same walk.
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

    fn give(&mut self, id: PartitionId, member: MemberId) -> usize {
        let list = &mut self.assignment[member as usize];
        list.push(id);
        let from = self.revoked_from[id as usize];
        if (from != NOBODY && from != member) || self.claims.multiply_owned[id as usize] {
            self.transferring[id as usize] = member;
        }
        list.len()
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

/// What is not kept, walking `topics` in order.
///
/// Kafka walks the kept partitions in the same order beside it, and a kept one that does not exist
/// stops that walk: everything behind it counts as not kept. A ghost sorts behind all partitions of
/// its topic that exist, so the walk stops at the end of the first topic that has a kept ghost, and
/// up to there "kept" can be looked up.
pub fn without_kept(
    claims: &Claims,
    topics: &[TopicId],
    kept: &[Vec<PartitionId>],
) -> Vec<PartitionId> {
    let mut is_kept = vec![false; claims.numbered()];
    let mut has_ghost = vec![false; claims.group.topics.len()];
    for &id in kept.iter().flatten() {
        is_kept[id as usize] = true;
        has_ghost[claims.topic(id) as usize] |= id >= claims.existing();
    }
    let mut unassigned = Vec::new();
    let mut stopped = false;
    for &topic in topics {
        unassigned.extend(
            claims
                .of_topic(topic)
                .filter(|&id| stopped || !is_kept[id as usize]),
        );
        stopped |= has_ghost[topic as usize];
    }
    unassigned
}
