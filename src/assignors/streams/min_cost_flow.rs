// SPDX-License-Identifier: Apache-2.0
//! Mirror of `min_cost_flow.py`: a flow of minimum cost, by cancelling negative cycles in Kafka's
//! order. Nodes are numbers from 0 on; a node without edges is not in the graph.

use std::collections::VecDeque;

const NONE: usize = usize::MAX;

struct Edge {
    capacity: i64,
    cost: i64,
    flow: i64,
}

/// A way out of a node: where it ends, its edge's index, and whether it follows the edge or
/// returns.
#[derive(Clone, Copy)]
struct Way {
    end: usize,
    edge: usize,
    forward: bool,
}

pub struct Graph {
    edges: Vec<Edge>,
    ways: Vec<Vec<Way>>,
}

impl Graph {
    pub fn new(nodes: usize) -> Self {
        Self {
            edges: Vec::new(),
            ways: vec![Vec::new(); nodes],
        }
    }

    /// Adds an edge, and returns its index.
    pub fn add(&mut self, start: usize, end: usize, capacity: i64, cost: i64, flow: i64) -> usize {
        let edge = self.edges.len();
        self.edges.push(Edge {
            capacity,
            cost,
            flow,
        });
        let forward = true;
        self.ways[start].push(Way { end, edge, forward });
        self.ways[end].push(Way {
            end: start,
            edge,
            forward: false,
        });
        edge
    }

    pub fn has_flow(&self, edge: usize) -> bool {
        self.edges[edge].flow > 0
    }

    /// Finds a first flow: along shortest paths to the sink, which visit neighbours in ascending
    /// order.
    pub fn fill(&mut self, source: usize, sink: usize) {
        self.sort();
        loop {
            let mut parent: Vec<Option<(usize, Way)>> = vec![None; self.ways.len()];
            let mut queue = VecDeque::from([source]);
            while let Some(at) = queue.pop_front()
                && parent[sink].is_none()
            {
                for &way in &self.ways[at] {
                    if self.left(way) > 0 && way.end != source && parent[way.end].is_none() {
                        parent[way.end] = Some((at, way));
                        queue.push_back(way.end);
                    }
                }
            }
            let mut path = Vec::new();
            let mut at = sink;
            while let Some((before, way)) = parent[at] {
                path.push(way);
                at = before;
            }
            if path.is_empty() {
                return;
            }
            self.push(&path);
        }
    }

    /// Changes the flow into one of minimum cost.
    pub fn solve(&mut self) {
        self.sort();
        while let Some(cycle) = self.negative_cycle() {
            self.push(&cycle);
        }
    }

    fn sort(&mut self) {
        for ways in &mut self.ways {
            ways.sort_unstable_by_key(|way| way.end);
        }
    }

    fn negative_cycle(&self) -> Option<Vec<Way>> {
        // 1. Use only ways that have capacity left.
        let mut residual: Vec<(usize, usize, i64, Way)> = Vec::new();
        for (at, ways) in self.ways.iter().enumerate() {
            let open = ways.iter().filter(|&&way| self.left(way) > 0);
            residual.extend(open.map(|&way| (at, way.end, self.cost(way), way)));
        }
        // 2.
        let nodes = self.ways.iter().filter(|ways| !ways.is_empty()).count();
        let mut distance = vec![0i64; self.ways.len()];
        let mut parent: Vec<(usize, usize)> = vec![(NONE, NONE); self.ways.len()];
        for round in 0..=nodes {
            let mut relaxed = false;
            for (place, &(at, end, cost, _)) in residual.iter().enumerate() {
                let through = distance[at] + cost;
                if through < distance[end] {
                    distance[end] = through;
                    parent[end] = (at, place);
                    relaxed = true;
                    if round == nodes {
                        return Some(cycle(&parent, end, |place| residual[place].3));
                    }
                }
            }
            // If a round relaxes no edge, later rounds relax none either.
            if !relaxed {
                break;
            }
        }
        None
    }

    fn left(&self, way: Way) -> i64 {
        let edge = &self.edges[way.edge];
        if way.forward {
            edge.capacity - edge.flow
        } else {
            edge.flow
        }
    }

    fn cost(&self, way: Way) -> i64 {
        let cost = self.edges[way.edge].cost;
        if way.forward { cost } else { -cost }
    }

    /// Sends as much flow along a path as fits.
    fn push(&mut self, path: &[Way]) {
        let most = path.iter().map(|&way| self.left(way)).min().unwrap_or(0);
        for way in path {
            self.edges[way.edge].flow += if way.forward { most } else { -most };
        }
    }
}

fn cycle(parent: &[(usize, usize)], mut node: usize, way: impl Fn(usize) -> Way) -> Vec<Way> {
    // 3. Parents lead into the cycle.
    let mut met = vec![false; parent.len()];
    while !met[node] {
        met[node] = true;
        node = parent[node].0;
    }
    let mut path = Vec::new();
    let mut at = node;
    loop {
        path.push(way(parent[at].1));
        at = parent[at].0;
        if at == node {
            return path;
        }
    }
}
