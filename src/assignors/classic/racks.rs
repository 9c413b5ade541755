// SPDX-License-Identifier: Apache-2.0
//! Mirror of `racks.py`: racks of members and replicas, as the sticky assignors use them.

use super::claims::Claims;
use crate::group::lists::ascending;
use crate::group::model::{MemberId, PartitionId, RackId};

/// The racks of members and partitions; empty if racks are not active. Racks are active if a member
/// is in a rack with a replica, unless all partitions have replicas in the same racks. The racks of
/// each partition are sorted and distinct.
#[derive(Default)]
pub struct Racks {
    of_member: Vec<Option<RackId>>,
    of_partition: Vec<Vec<RackId>>,
    members_near: Vec<u32>,
}

/// Whether racks affect the assignment. Takes the members' racks and, for each partition, the list
/// of its racks, ascending.
pub fn racks_matter<'r>(
    mut of_members: impl Iterator<Item = &'r RackId>,
    mut of_partitions: impl Iterator<Item = &'r Vec<RackId>> + Clone,
) -> bool {
    let everywhere = ascending(of_partitions.clone().flatten().copied());
    of_members.any(|rack| everywhere.binary_search(rack).is_ok())
        && of_partitions.any(|racks| *racks != everywhere)
}

impl Racks {
    pub fn of(claims: &Claims) -> Self {
        let group = claims.group;
        let of_member: Vec<Option<RackId>> = group.members.iter().map(|m| m.rack).collect();
        if of_member.iter().all(Option::is_none) {
            return Self::default();
        }
        let of_partition: Vec<Vec<RackId>> = (0..claims.existing)
            .map(|id| ascending(group.replica_racks(claims.partition(id)).iter().copied()))
            .collect();
        if !racks_matter(of_member.iter().flatten(), of_partition.iter()) {
            return Self::default();
        }
        let mut sizes = vec![0u32; group.rack_names.len()];
        for &rack in of_member.iter().flatten() {
            sizes[rack as usize] += 1;
        }
        let near = |racks: &Vec<RackId>| racks.iter().map(|&rack| sizes[rack as usize]).sum();
        Self {
            members_near: of_partition.iter().map(near).collect(),
            of_member,
            of_partition,
        }
    }

    pub fn active(&self) -> bool {
        !self.of_member.is_empty()
    }

    /// Returns the member's rack; None if it has none, or if racks are not active.
    pub fn of_member(&self, member: MemberId) -> Option<RackId> {
        self.of_member.get(member as usize).copied().flatten()
    }

    pub fn of_partition(&self, id: PartitionId) -> &[RackId] {
        self.of_partition
            .get(id as usize)
            .map_or(&[], Vec::as_slice)
    }

    pub fn members_near(&self, id: PartitionId) -> u32 {
        self.members_near[id as usize]
    }

    /// Whether the member is in a rack with a replica of the partition.
    pub fn near(&self, member: MemberId, id: PartitionId) -> bool {
        let rack = self.of_member(member);
        rack.is_some_and(|rack| self.of_partition(id).binary_search(&rack).is_ok())
    }

    /// Whether the member has a rack but no replica of the partition is in that rack.
    pub fn mismatch(&self, member: MemberId, id: PartitionId) -> bool {
        self.of_member(member).is_some() && !self.near(member, id)
    }

    /// Returns the index of the first member near the partition. The search begins at index `start`
    /// and, after the last member, continues with the first.
    pub fn next_near<'m>(
        &self,
        id: PartitionId,
        members: impl ExactSizeIterator<Item = &'m MemberId> + Clone,
        start: usize,
    ) -> Option<usize> {
        let circle = members.clone().enumerate().skip(start);
        let mut circle = circle.chain(members.enumerate().take(start));
        circle
            .find(|&(_, &member)| self.near(member, id))
            .map(|(at, _)| at)
    }
}
