// SPDX-License-Identifier: Apache-2.0
//! Mirror of `java/priority_queue.py`: the order of `java.util.PriorityQueue`.

/// Entries with keys, smallest key first. Equal keys have the order of the heap.
pub struct PriorityQueue<K, T> {
    heap: Vec<(K, T)>,
}

impl<K, T> Default for PriorityQueue<K, T> {
    fn default() -> Self {
        Self { heap: Vec::new() }
    }
}

impl<K: PartialOrd + Copy, T: Copy> PriorityQueue<K, T> {
    /// Appends the entry, then moves it up while its key is smaller than that of its parent.
    pub fn add(&mut self, key: K, entry: T) {
        let mut at = self.heap.len();
        self.heap.push((key, entry));
        while at > 0 {
            let parent = (at - 1) / 2;
            if key >= self.heap[parent].0 {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = (key, entry);
    }

    /// Removes the first entry; the last one takes its place, and moves down.
    pub fn poll(&mut self) -> Option<T> {
        let last = self.heap.pop()?;
        let Some(&(_, first)) = self.heap.first() else {
            return Some(last.1);
        };
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child].0 > self.heap[child + 1].0 {
                child += 1;
            }
            if last.0 <= self.heap[child].0 {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = last;
        Some(first)
    }
}
