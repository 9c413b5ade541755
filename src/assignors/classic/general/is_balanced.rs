// SPDX-License-Identifier: Apache-2.0
//! Tests whether a group is balanced: whether no member could take a partition from an owner with
//! at least two partitions more. Such a member and partition are a *witness*: they prove that the
//! group is not balanced. Before each partition, Kafka searches for a witness among all members,
//! all their topics and all partitions of these topics.
//!
//! Shortcuts that cannot change the answer:
//! - The gainer and the partition of the next move are a witness, unless the gainer does not
//!   subscribe to the topic or already has all partitions that it can have (`shows_imbalance`).
//! - The witness of an earlier test is still a proof if its member could still take the partition
//!   (`still_holds`).
//! - In a search for a new witness, only the largest owner of each topic (the one with the most
//!   partitions) is tested. If any owner has at least two partitions more than a member, then so
//!   does the largest (`find_witness`). The order of the members decides only which witness is
//!   found.
//! - If a partition may be owned twice, the test depends on the order of owners and may throw. Then
//!   it runs as in Kafka (`can_anybody_gain`).

use super::balance::{Balance, Witness};
use super::build::topics_of;
use crate::error::GroupError;
use crate::group::model::{MemberId, NOBODY, PartitionId};

impl Balance<'_, '_, '_> {
    /// Whether the move of partition `id` to `better` already proves that the group is unbalanced.
    pub(super) fn shows_imbalance(
        &self,
        id: PartitionId,
        better: &Result<Option<MemberId>, GroupError>,
    ) -> bool {
        let &Ok(Some(gainer)) = better else {
            return false;
        };
        let build = &self.build;
        !build.ghosts
            && build.subscribes(gainer, build.claims.topic(id))
            && build.current.size(gainer) != build.possible[gainer as usize]
    }

    pub(super) fn is_balanced(&mut self) -> Result<bool, GroupError> {
        if self.unbalanced {
            return Ok(false);
        }
        if self.spread.least + 1 >= self.spread.most {
            return Ok(true);
        }
        self.unbalanced = if self.build.ghosts {
            self.can_anybody_gain()?
        } else {
            self.witness = self.witness.filter(|&known| self.still_holds(known));
            self.witness = self.witness.or_else(|| self.find_witness());
            self.witness.is_some()
        };
        Ok(!self.unbalanced)
    }

    fn still_holds(&self, known: Witness) -> bool {
        let build = &self.build;
        let size = build.current.size(known.gainer);
        let holder = build.current.owner(known.partition);
        size != build.possible[known.gainer as usize]
            && !build.fixed[holder as usize]
            && size + 1 < build.current.size(holder)
            && build.claims.topic(known.partition) == known.topic
    }

    fn find_witness(&self) -> Option<Witness> {
        let build = &self.build;
        let largest = self.largest_holders();
        let taking_part = (0..build.fixed.len() as MemberId).filter(|&m| !build.fixed[m as usize]);
        for gainer in taking_part {
            let size = build.current.size(gainer);
            if size == build.possible[gainer as usize] {
                continue;
            }
            for topic in topics_of(build.claims, gainer) {
                let (most, partition) = largest[topic as usize];
                if size + 1 < most {
                    return Some(Witness {
                        gainer,
                        topic,
                        partition,
                    });
                }
            }
        }
        None
    }

    /// Returns, by topic, the number of partitions (of all topics) of the fullest of the topic's
    /// owners that are not fixed, and a partition of the topic that this member owns.
    fn largest_holders(&self) -> Vec<(usize, PartitionId)> {
        let build = &self.build;
        let mut largest = vec![(0, 0); build.claims.group.topics.len()];
        for &topic in &build.claims.topics {
            for id in build.claims.of_topic(topic) {
                let m = build.current.owner(id);
                if m != NOBODY && !build.fixed[m as usize] {
                    let size = build.current.size(m);
                    if size > largest[topic as usize].0 {
                        largest[topic as usize] = (size, id);
                    }
                }
            }
        }
        largest
    }

    /// Whether the group has a witness. This runs Kafka's own test, for groups in which a partition
    /// may be owned twice.
    fn can_anybody_gain(&self) -> Result<bool, GroupError> {
        let build = &self.build;
        let lists = build.current.lists();
        // If a partition is owned twice, its last owner in `order` counts.
        let mut holder = vec![NOBODY; build.claims.numbered()];
        for &m in &self.order {
            for &id in lists.of(m) {
                holder[id as usize] = m;
            }
        }
        let mut members: Vec<MemberId> = build.claims.group.members_by_name().to_vec();
        members.retain(|&m| !build.fixed[m as usize]);
        members.sort_by_key(|&m| build.current.size(m));
        for member in members {
            let size = build.current.size(member);
            if size == build.possible[member as usize] {
                continue;
            }
            for topic in topics_of(build.claims, member) {
                for id in build.claims.of_topic(topic) {
                    if !lists.of(member).contains(&id)
                        && size + 1 < self.size(holder[id as usize])?
                    {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}
