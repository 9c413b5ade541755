// SPDX-License-Identifier: Apache-2.0
//! The smallest and the largest number of partitions of a member, updated at every move. Fixed
//! members do not count.

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
