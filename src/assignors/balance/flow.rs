// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/flow.py`: Dinic's algorithm for the largest flow, the primal-dual
//! algorithm for the cheapest one. After all arcs are added, an array lists the arcs of each node.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub const UNLIMITED: i64 = 1 << 62;
const UNREACHED: i64 = i64::MAX;

/// Nodes are numbers. Arc `2i` is the i-th arc that was added, and arc `2i + 1` is its reverse.
#[derive(Clone, Default)]
pub struct Flow {
    tail: Vec<u32>,
    pub head: Vec<u32>,
    pub room: Vec<i64>,
    pub cost: Vec<i64>,
    pub potential: Vec<i64>,
    /// `by_tail[start[n]..start[n + 1]]` are the arcs that leave n, in the order of their addition.
    start: Vec<u32>,
    by_tail: Vec<u32>,
}

impl Flow {
    pub fn new(nodes: usize) -> Self {
        Self {
            potential: vec![0; nodes],
            ..Self::default()
        }
    }

    /// Adds an arc, whose cost must not be negative. Returns the arc's number, for `sent`.
    pub fn add(&mut self, tail: u32, head: u32, capacity: i64, cost: i64) -> usize {
        let arc = self.head.len();
        self.tail.extend([tail, head]);
        self.head.extend([head, tail]);
        self.room.extend([capacity, 0]);
        self.cost.extend([cost, -cost]);
        arc
    }

    /// Fills a new arc. The caller must set potentials with which no arc has a negative reduced
    /// cost.
    pub fn preset(&mut self, arc: usize) {
        self.push(arc as u32, self.room[arc]);
    }

    /// Resets an arc to a new room and cost. The flow that it has sent stays at its head.
    pub fn set_room(&mut self, arc: usize, room: i64, cost: i64) {
        (self.room[arc], self.room[arc + 1]) = (room, 0);
        (self.cost[arc], self.cost[arc + 1]) = (cost, -cost);
    }

    pub fn sent(&self, arc: usize) -> i64 {
        self.room[arc + 1]
    }

    pub fn push(&mut self, arc: u32, amount: i64) {
        self.room[arc as usize] -= amount;
        self.room[arc as usize ^ 1] += amount;
    }

    /// Sends as much flow as possible along tight arcs: those whose reduced cost is 0. If all costs
    /// and potentials are 0, all arcs are tight.
    pub fn largest(&mut self, source: u32, sink: u32) -> i64 {
        self.list_by_tail();
        let mut total = 0;
        loop {
            let level = self.levels(source);
            if level[sink as usize] == UNREACHED {
                return total;
            }
            let mut unused = self.start.clone();
            loop {
                let sent = self.augment(source, sink, &level, &mut unused);
                if sent == 0 {
                    break;
                }
                total += sent;
            }
        }
    }

    /// Sends as much flow as possible at the least cost; returns the cost.
    pub fn cheapest(&mut self, source: u32, sink: u32) -> i64 {
        let mut total = 0;
        while self.tighten(source, sink) {
            let sent = self.largest(source, sink);
            total += sent * (self.potential[sink as usize] - self.potential[source as usize]);
        }
        total
    }

    /// Makes the arcs of all cheapest paths tight. Returns false if no path is left.
    pub fn tighten(&mut self, source: u32, sink: u32) -> bool {
        self.list_by_tail();
        let distance = self.distances(source);
        let farthest = distance[sink as usize];
        if farthest != UNREACHED {
            for (potential, far) in self.potential.iter_mut().zip(distance) {
                *potential += far.min(farthest);
            }
        }
        farthest != UNREACHED
    }

    /// Returns, by node, whether more flow can reach it from `source` along tight arcs.
    pub fn reachable(&self, source: u32) -> Vec<bool> {
        let level = self.levels(source);
        level.into_iter().map(|level| level != UNREACHED).collect()
    }

    fn list_by_tail(&mut self) {
        if self.by_tail.len() == self.tail.len() {
            return;
        }
        self.start = vec![0; self.potential.len() + 1];
        for &tail in &self.tail {
            self.start[tail as usize + 1] += 1;
        }
        for n in 0..self.potential.len() {
            self.start[n + 1] += self.start[n];
        }
        let mut next = self.start.clone();
        self.by_tail = vec![0; self.tail.len()];
        for (arc, &tail) in self.tail.iter().enumerate() {
            self.by_tail[next[tail as usize] as usize] = arc as u32;
            next[tail as usize] += 1;
        }
    }

    pub fn leaving(&self, node: u32) -> &[u32] {
        let (start, end) = (self.start[node as usize], self.start[node as usize + 1]);
        &self.by_tail[start as usize..end as usize]
    }

    fn reduced(&self, arc: usize) -> i64 {
        let (tail, head) = (self.tail[arc] as usize, self.head[arc] as usize);
        self.cost[arc] + self.potential[tail] - self.potential[head]
    }

    fn is_open(&self, arc: usize) -> bool {
        self.room[arc] > 0 && self.reduced(arc) == 0
    }

    /// Returns each node's distance from the source, in tight arcs that have room.
    fn levels(&self, source: u32) -> Vec<i64> {
        let mut level = vec![UNREACHED; self.potential.len()];
        level[source as usize] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for &arc in self.leaving(node) {
                let head = self.head[arc as usize];
                if level[head as usize] == UNREACHED && self.is_open(arc as usize) {
                    level[head as usize] = level[node as usize] + 1;
                    queue.push_back(head);
                }
            }
        }
        level
    }

    /// Sends flow along one path of ascending levels; returns the amount. `unused[n]` is an index
    /// in `by_tail`: the arcs of node n before it are dead ends.
    fn augment(&mut self, source: u32, sink: u32, level: &[i64], unused: &mut [u32]) -> i64 {
        let mut path: Vec<usize> = Vec::new();
        let mut node = source;
        while node != sink {
            let deeper = level[node as usize] + 1;
            let end = self.start[node as usize + 1];
            let found = (unused[node as usize]..end).find(|&at| {
                let arc = self.by_tail[at as usize] as usize;
                level[self.head[arc] as usize] == deeper && self.is_open(arc)
            });
            unused[node as usize] = found.unwrap_or(end);
            match (found, path.pop()) {
                (Some(at), last) => {
                    path.extend(last);
                    let arc = self.by_tail[at as usize] as usize;
                    path.push(arc);
                    node = self.head[arc];
                }
                (None, Some(last)) => {
                    node = self.tail[last];
                    unused[node as usize] += 1;
                }
                (None, None) => return 0,
            }
        }
        let sent = path.iter().map(|&arc| self.room[arc]).min().unwrap_or(0);
        for arc in path {
            self.push(arc as u32, sent);
        }
        sent
    }

    /// Returns each node's distance by Dijkstra's algorithm on reduced costs, which are never
    /// negative along arcs with room.
    fn distances(&self, source: u32) -> Vec<i64> {
        let mut distance = vec![UNREACHED; self.potential.len()];
        let mut heap = BinaryHeap::from([(Reverse(0), source)]);
        while let Some((Reverse(far), node)) = heap.pop() {
            if distance[node as usize] != UNREACHED {
                continue;
            }
            distance[node as usize] = far;
            for &arc in self.leaving(node) {
                let head = self.head[arc as usize];
                if self.room[arc as usize] > 0 && distance[head as usize] == UNREACHED {
                    heap.push((Reverse(far + self.reduced(arc as usize)), head));
                }
            }
        }
        distance
    }
}
