// SPDX-License-Identifier: Apache-2.0
//! A tournament tree that finds the member with the fewest partitions; of equal members, the first.
//! Each node holds the smaller of its two children, so a change updates one path to the root.

/// A member's size and index in one integer, which sorts by size, then by index. `NONE` stands for
/// a member that takes no part in balancing.
type Key = u64;
const NONE: Key = Key::MAX;

#[derive(Default)]
pub struct Smallest {
    /// The root is at 1, the children of n are at 2n and 2n + 1; members are in the second half.
    tree: Vec<Key>,
}

impl Smallest {
    pub fn fill(&mut self, sizes: impl ExactSizeIterator<Item = Option<u32>>) {
        let leaves = sizes.len().next_power_of_two();
        self.tree.clear();
        self.tree.resize(leaves, NONE);
        let keys = sizes.enumerate();
        self.tree
            .extend(keys.map(|(place, size)| size.map_or(NONE, |size| key(size, place))));
        self.tree.resize(2 * leaves, NONE);
        for n in (1..leaves).rev() {
            self.tree[n] = self.tree[2 * n].min(self.tree[2 * n + 1]);
        }
    }

    /// Returns size and index of the smallest member; None if no member takes part.
    pub fn first(&self) -> Option<(u32, usize)> {
        let &first = self.tree.get(1).filter(|&&first| first != NONE)?;
        Some(((first >> 32) as u32, first as u32 as usize))
    }

    pub fn set(&mut self, place: usize, size: u32) {
        let mut n = self.tree.len() / 2 + place;
        self.tree[n] = key(size, place);
        while n > 1 {
            self.tree[n / 2] = self.tree[n].min(self.tree[n ^ 1]);
            n /= 2;
        }
    }
}

fn key(size: u32, place: usize) -> Key {
    Key::from(size) << 32 | place as Key
}
