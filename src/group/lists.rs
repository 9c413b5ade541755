// SPDX-License-Identifier: Apache-2.0
//! A list of partition ids for each member. All lists share one buffer with reserved space, because
//! an allocation for each member would cost more than a small assignment.

use crate::group::model::{MemberId, PartitionId};

/// Returns the entries in ascending order, each once.
pub fn ascending<T: Ord>(entries: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut sorted: Vec<T> = entries.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

#[derive(Clone, Default)]
pub struct Lists {
    ids: Vec<PartitionId>,
    /// By member: start and length within `ids`.
    spans: Vec<(u32, u32)>,
}

impl Lists {
    pub fn with_room(rooms: impl Iterator<Item = u32>) -> Self {
        let mut end = 0;
        let span = |room| {
            end += room;
            (end - room, 0)
        };
        let spans = rooms.map(span).collect();
        let ids = vec![0; end as usize];
        Self { ids, spans }
    }

    pub fn of(&self, member: MemberId) -> &[PartitionId] {
        let (start, len) = self.spans[member as usize];
        &self.ids[start as usize..(start + len) as usize]
    }

    pub fn of_mut(&mut self, member: MemberId) -> &mut [PartitionId] {
        let (start, len) = self.spans[member as usize];
        &mut self.ids[start as usize..(start + len) as usize]
    }

    pub fn members(&self) -> usize {
        self.spans.len()
    }

    pub fn len_of(&self, member: MemberId) -> usize {
        self.spans[member as usize].1 as usize
    }

    pub fn iter(&self) -> impl Iterator<Item = &[PartitionId]> {
        (0..self.spans.len() as MemberId).map(|m| self.of(m))
    }

    /// Appends an id. Returns the new length of the member's list.
    pub fn push(&mut self, member: MemberId, id: PartitionId) -> usize {
        let (start, len) = &mut self.spans[member as usize];
        self.ids[(*start + *len) as usize] = id;
        *len += 1;
        *len as usize
    }

    pub fn extend(&mut self, member: MemberId, more: impl Iterator<Item = PartitionId>) -> usize {
        let (start, len) = &mut self.spans[member as usize];
        let end = (*start + *len) as usize;
        for (place, id) in self.ids[end..].iter_mut().zip(more) {
            *place = id;
            *len += 1;
        }
        *len as usize
    }

    /// Removes the first occurrence of an id, if there is one.
    pub fn remove(&mut self, member: MemberId, id: PartitionId) {
        let list = self.of_mut(member);
        if let Some(at) = list.iter().position(|&other| other == id) {
            list.copy_within(at + 1.., at);
            self.spans[member as usize].1 -= 1;
        }
    }

    pub fn retain(&mut self, member: MemberId, mut keep: impl FnMut(PartitionId) -> bool) {
        let list = self.of_mut(member);
        let mut kept = 0;
        for i in 0..list.len() {
            let id = list[i];
            if keep(id) {
                list[kept] = id;
                kept += 1;
            }
        }
        self.spans[member as usize].1 = kept as u32;
    }
}
