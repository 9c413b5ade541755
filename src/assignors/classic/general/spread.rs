// SPDX-License-Identifier: Apache-2.0
//! The least and the most partitions of a member, kept up to date while partitions move.

/// By number of partitions: how many members have it. Only members that take part count.
pub struct Spread {
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
            // A member that was alone at an end stays at this end.
            self.least = if self.least == before {
                after
            } else {
                self.least
            };
            self.most = if self.most == before {
                after
            } else {
                self.most
            };
        }
        self.least = self.least.min(after);
        self.most = self.most.max(after);
    }
}
