// SPDX-License-Identifier: Apache-2.0
//! Mirror of `java/priority_queue.py`: the order of `java.util.PriorityQueue`.

/// Entries with keys, smallest key first; Java's heap decides the order of equal keys.
pub struct PriorityQueue<K, T> {
    heap: Vec<(K, T)>,
}

impl<K, T> Default for PriorityQueue<K, T> {
    fn default() -> Self {
        Self { heap: Vec::new() }
    }
}

impl<K: PartialOrd + Copy, T: Copy + PartialEq> PriorityQueue<K, T> {
    /// Moves entries down as `new PriorityQueue(collection)` does, from the last parent to the
    /// root.
    pub fn of(heap: Vec<(K, T)>) -> Self {
        let mut new = Self { heap };
        for at in (0..new.heap.len() / 2).rev() {
            new.down(at, new.heap[at]);
        }
        new
    }

    /// Returns the entries in the order of the heap's array.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.heap.iter().map(|&(_, entry)| entry)
    }

    pub fn contains(&self, entry: T) -> bool {
        self.iter().any(|one| one == entry)
    }

    /// Removes an entry, if present; the heap's last entry moves into its place.
    pub fn remove(&mut self, entry: T) {
        let Some(at) = self.iter().position(|one| one == entry) else {
            return;
        };
        if let Some(last) = self.heap.pop()
            && at < self.heap.len()
            && self.down(at, last) == at
        {
            self.up(at, last);
        }
    }

    /// Appends the entry, then moves it up while its key is smaller than its parent's key.
    pub fn add(&mut self, key: K, entry: T) {
        self.heap.push((key, entry));
        self.up(self.heap.len() - 1, (key, entry));
    }

    /// Removes and returns the first entry; the heap's last entry moves into its place, then down.
    pub fn poll(&mut self) -> Option<T> {
        let last = self.heap.pop()?;
        let Some(&(_, first)) = self.heap.first() else {
            return Some(last.1);
        };
        self.down(0, last);
        Some(first)
    }

    fn up(&mut self, mut at: usize, moving: (K, T)) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if moving.0 >= self.heap[parent].0 {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = moving;
    }

    /// Moves an entry down from a place. Returns the place where it stays.
    fn down(&mut self, mut at: usize, moving: (K, T)) -> usize {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child].0 > self.heap[child + 1].0 {
                child += 1;
            }
            if moving.0 <= self.heap[child].0 {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = moving;
        at
    }
}
