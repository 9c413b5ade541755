// SPDX-License-Identifier: Apache-2.0
//! The partitions that each member holds, in the order in which it got them.
//!
//! While partitions move, one log records which member got which partition. A member's list is made
//! from the log: the partitions that the member still holds, in log order.

use crate::group::lists::Lists;
use crate::group::model::{MemberId, NOBODY, PartitionId};

/// Stands in the log for a partition that was taken away.
const GONE: PartitionId = PartitionId::MAX;

/// Returns the length at which the log's gaps are closed, if the members hold `held` partitions.
fn with_gaps(held: usize) -> usize {
    held + held / 8 + 1024
}

pub struct Holdings {
    /// By partition: the member that got it last.
    owner: Vec<MemberId>,
    sizes: Vec<u32>,
    held: usize,
    /// Partitions in the order in which members got them, or `GONE`.
    log: Vec<PartitionId>,
    /// By partition: its last index in the log.
    place: Vec<u32>,
    /// By entry of the log: the member that got it. Needed only if a partition may be held twice.
    holder: Option<Vec<MemberId>>,
}

impl Holdings {
    /// Creates holdings without partitions; `twice` means that a partition may be held twice.
    pub fn new(members: usize, partitions: usize, twice: bool) -> Self {
        Self {
            owner: vec![NOBODY; partitions],
            sizes: vec![0; members],
            held: 0,
            log: Vec::with_capacity(with_gaps(partitions)),
            place: vec![0; partitions],
            holder: twice.then(Vec::new),
        }
    }

    /// Returns the member that got a partition last, or NOBODY.
    pub fn owner(&self, id: PartitionId) -> MemberId {
        self.owner[id as usize]
    }

    pub fn owners(&self) -> &[MemberId] {
        &self.owner
    }

    pub fn size(&self, member: MemberId) -> usize {
        self.sizes[member as usize] as usize
    }

    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    pub fn give(&mut self, member: MemberId, id: PartitionId) {
        if self.log.len() >= with_gaps(self.held) {
            self.close_gaps();
        }
        self.owner[id as usize] = member;
        self.place[id as usize] = self.log.len() as u32;
        self.log.push(id);
        if let Some(holder) = &mut self.holder {
            holder.push(member);
        }
        self.sizes[member as usize] += 1;
        self.held += 1;
    }

    /// Takes a partition from a member (only the first entry, if the member holds it twice).
    pub fn take(&mut self, member: MemberId, id: PartitionId) {
        let place = match &self.holder {
            None => Some(self.place[id as usize] as usize),
            Some(holder) => {
                let mut entries = self.log.iter().zip(holder);
                entries.position(|(&other, &of)| other == id && of == member)
            }
        };
        if let Some(place) = place {
            self.log[place] = GONE;
            self.sizes[member as usize] -= 1;
            self.held -= 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (MemberId, PartitionId)> {
        let entries = self.log.iter().enumerate().filter(|&(_, &id)| id != GONE);
        entries.map(|(place, &id)| match &self.holder {
            None => (self.owner[id as usize], id),
            Some(holder) => (holder[place], id),
        })
    }

    pub fn lists(&self) -> Lists {
        let mut lists = Lists::with_room(self.sizes.iter().copied());
        for (member, id) in self.iter() {
            lists.push(member, id);
        }
        lists
    }

    /// Returns the result of `lists`. Memory that the lists do not need is freed first.
    pub fn into_lists(mut self) -> Lists {
        self.place = Vec::new();
        self.lists()
    }

    fn close_gaps(&mut self) {
        let mut kept = 0;
        for place in 0..self.log.len() {
            let id = self.log[place];
            if id != GONE {
                self.log[kept] = id;
                self.place[id as usize] = kept as u32;
                if let Some(holder) = &mut self.holder {
                    holder[kept] = holder[place];
                }
                kept += 1;
            }
        }
        self.log.truncate(kept);
        if let Some(holder) = &mut self.holder {
            holder.truncate(kept);
        }
    }
}
