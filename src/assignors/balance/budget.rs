// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/budget.py`: the best loads for each number of taken partitions, in
//! the steps that the Python module explains.

use std::collections::{BTreeMap, VecDeque};

use super::classes::{Classes, counted};
use super::flow::{Flow, UNLIMITED};
use crate::group::model::{MemberId, NOBODY};
use crate::java::order::by_rank;

const START: u32 = 0;
const SINK: u32 = 1;
const MOST_ARCS: i64 = 30_000_000;
/// Marks the states of a search that no path has reached, and the states in which a path begins.
const UNSEEN: u32 = u32::MAX;
const FIRST: u32 = u32::MAX - 1;

pub struct CurvePoint {
    pub taken_at_most: i64,
    pub taken: i64,
    pub greatest: i64,
    pub squares: i64,
    pub bound: i64,
}

/// Returns a point for each K (the number of partitions that may be taken) up to `most`; above it,
/// only the least K of each cap.
pub fn curve_points(classes: &Classes, most: i64) -> Vec<CurvePoint> {
    let mut found = Vec::new();
    let mut at = Loads::of(classes);
    loop {
        let mut lower = at.clone();
        let end = if lower.lower() {
            lower.taken()
        } else {
            UNLIMITED
        };
        if at.taken() < end {
            if at.taken() <= most {
                at.window(end.min(most + 1), &mut |point, _| found.push(point));
            } else {
                found.push(at.point());
            }
        }
        if end == UNLIMITED {
            return found;
        }
        at = lower;
    }
}

/// Returns the best loads by member if at most K (`taken_at_most`) partitions may be taken.
pub fn best_within(classes: &Classes, taken_at_most: i64) -> Vec<i64> {
    let mut at = Loads::of(classes);
    loop {
        let mut lower = at.clone();
        if !lower.lower() || lower.taken() > taken_at_most {
            break;
        }
        at = lower;
    }
    let most_steps = 1 + MOST_ARCS / (1 + i64::from(at.inner));
    let end = taken_at_most.min(at.taken() + most_steps) + 1;
    let mut last = Vec::new();
    at.window(end, &mut |_, loads| last = loads.to_vec());
    last
}

struct Step {
    gain: i64,
    taken: i64,
    giver: MemberId,
    arcs: Vec<u32>,
    gainer: MemberId,
}

#[derive(Clone)]
struct Loads {
    flow: Flow,
    /// Steps use only the arcs before this index.
    inner: u32,
    first_member: u32,
    loads: Vec<i64>,
    /// By member: its index in `Classes::order`.
    place: Vec<u32>,
    order: Vec<MemberId>,
    classes: i64,
    cap: i64,
    taken_arcs: Vec<usize>,
    release: Vec<usize>,
    gain: Vec<usize>,
}

impl Loads {
    fn of(classes: &Classes) -> Self {
        let (hubs, members) = (classes.members.len(), classes.class_of_member.len());
        let place = by_rank(&classes.order);
        let first_hub = (2 + 2 * classes.topics.len()) as u32;
        let first_member = first_hub + hubs as u32;
        let held: Vec<Vec<(MemberId, i64)>> = (0..classes.topics.len())
            .map(|c| held(classes, c, &place))
            .collect();
        let mut loads = vec![0; members];
        for &(m, count) in held.iter().flatten() {
            loads[m as usize] += count;
        }
        let potential = |m: MemberId| -2 * loads[m as usize];
        let mut flow = Flow::new(first_member as usize + members);
        let dear = 2 * classes.supply.iter().sum::<i64>() + 4;
        let mut taken_arcs = Vec::new();
        for (c, held) in held.iter().enumerate() {
            let node = 2 + 2 * c as u32;
            for &(m, count) in held {
                let arc = flow.add(node, first_member + m, count, 0);
                flow.preset(arc);
            }
            let least = held.iter().map(|&(m, _)| potential(m)).min();
            flow.potential[node as usize] = least.unwrap_or(0);
            for k in &classes.subscribers[c] {
                taken_arcs.push(flow.add(node, first_hub + k, UNLIMITED, dear));
                flow.add(node + 1, first_hub + k, UNLIMITED, 0);
            }
        }
        for (hub, sharers) in (first_hub..).zip(&classes.members) {
            let most = sharers.iter().map(|&m| potential(m)).max();
            flow.potential[hub as usize] = most.unwrap_or(0);
            for &m in sharers {
                flow.add(hub, first_member + m, UNLIMITED, 0);
                flow.potential[(first_member + m) as usize] = potential(m);
            }
        }
        let inner = flow.head.len() as u32;
        for (c, held) in held.iter().enumerate() {
            let kept: i64 = held.iter().map(|&(_, count)| count).sum();
            flow.add(START, 3 + 2 * c as u32, classes.supply[c] - kept, 0);
        }
        let nodes = first_member..first_member + members as u32;
        let mut release = vec![0; members];
        for &m in &classes.order {
            release[m as usize] = flow.add(START, first_member + m, 0, 0);
        }
        let gain = nodes.zip(&loads);
        let gain = gain.map(|(node, x)| flow.add(node, SINK, 1, 2 * x + 1));
        let gain = gain.collect();
        let mut found = Self {
            flow,
            inner,
            first_member,
            loads,
            place,
            order: classes.order.clone(),
            classes: classes.topics.len() as i64,
            cap: UNLIMITED,
            taken_arcs,
            release,
            gain,
        };
        // 1. Owners keep their partitions; the others go where the sum of squares grows least.
        found.send();
        found.cap = found.greatest();
        found
    }

    fn greatest(&self) -> i64 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    fn taken(&self) -> i64 {
        self.taken_arcs.iter().map(|&arc| self.flow.sent(arc)).sum()
    }

    fn squares(&self) -> i64 {
        self.loads.iter().map(|x| x * x).sum()
    }

    /// Lowers the cap by 1. Returns false if the partitions do not fit; `self` is then of no use.
    fn lower(&mut self) -> bool {
        // 2. Members above the new cap release one partition each, on the cheapest paths.
        if self.cap == 0 {
            return false;
        }
        self.cap -= 1;
        let mut wanted = 0;
        for m in 0..self.loads.len() {
            let above = (self.loads[m] - self.cap).max(0);
            wanted += above;
            self.flow.set_room(self.release[m], above, 0);
            self.set_load(m, self.loads[m].min(self.cap));
        }
        self.send() == wanted
    }

    /// Calls `found` with the point and the loads of each K, from the present K to `end` - 1.
    fn window(&mut self, end: i64, found: &mut dyn FnMut(CurvePoint, &[i64])) {
        loop {
            found(self.point(), &self.loads);
            // 3. Take the step with the largest gain per taken partition.
            let taken = self.taken();
            let Some(step) = self.steepest().filter(|_| taken + 1 < end) else {
                return;
            };
            // 4. For a K inside a step, take the smaller step with the largest gain.
            let squares = self.squares();
            let steps = self.steps(step.taken - 1);
            let mut small: Option<&Step> = None;
            for k in 1..step.taken.min(end - taken) {
                if let Some(next) = steps.get(&k) {
                    small = small.filter(|one| one.gain >= next.gain).or(Some(next));
                }
                let line = squares - 2 * step.gain * k / step.taken;
                // A load and its square are both odd or both even, and so are the sums of loads and
                // squares: so the bound is rounded up to a number of the parity of `squares`.
                let (point, loads) = self.after(small, taken + k, line + (line + squares) % 2);
                found(point, &loads);
            }
            if taken + step.taken >= end {
                return;
            }
            for &arc in &step.arcs {
                self.flow.push(arc, 1);
            }
            self.loads[step.giver as usize] -= 1;
            self.loads[step.gainer as usize] += 1;
        }
    }

    fn point(&self) -> CurvePoint {
        self.after(None, self.taken(), self.squares()).0
    }

    /// Returns the curve's point at `k`, with this bound, and the point's loads: those after
    /// `step`, or the present ones.
    fn after(&self, step: Option<&Step>, k: i64, bound: i64) -> (CurvePoint, Vec<i64>) {
        let mut loads = self.loads.clone();
        if let Some(step) = step {
            loads[step.giver as usize] -= 1;
            loads[step.gainer as usize] += 1;
        }
        let point = CurvePoint {
            taken_at_most: k,
            taken: self.taken() + step.map_or(0, |step| step.taken),
            greatest: loads.iter().copied().max().unwrap_or(0),
            squares: loads.iter().map(|x| x * x).sum(),
            bound,
        };
        (point, loads)
    }

    /// Returns the step with the largest gain per taken partition; of equal steps, one that takes
    /// few partitions.
    fn steepest(&self) -> Option<Step> {
        let open = self.loads.iter().filter(|&&x| x < self.cap);
        let most_gain = self.greatest() - open.min()? - 1;
        if most_gain <= 0 {
            return None;
        }
        let mut best: Option<Step> = None;
        let mut most = 1;
        loop {
            for (_, step) in self.steps(most) {
                let is_steeper = |best: &Step| step.gain * best.taken > best.gain * step.taken;
                if best.as_ref().is_none_or(is_steeper) {
                    best = Some(step);
                }
            }
            let reached = |best: &Step| best.gain * (most + 1) >= most_gain * best.taken;
            // A path leaves each topic class at most once, so longer steps need not be searched.
            if most >= self.classes || best.as_ref().is_some_and(reached) {
                return best;
            }
            most = (2 * most).min(self.classes);
        }
    }

    /// Returns, for each t up to `most`, the step with the largest gain that takes t partitions.
    fn steps(&self, most: i64) -> BTreeMap<i64, Step> {
        if most < 1 {
            return BTreeMap::new();
        }
        let below = self.most_home();
        let width = most + 2 * below + 1;
        let states = self.flow.potential.len() * width as usize;
        let mut came = vec![UNSEEN; states];
        let mut giver: Vec<MemberId> = vec![NOBODY; states];
        let mut queue = VecDeque::new();
        let state = |m: MemberId, t: i64| (i64::from(self.first_member + m) * width + t) as usize;
        let mut order = self.order.clone();
        order.sort_by_key(|&m| (-self.loads[m as usize], self.place[m as usize]));
        for m in order {
            let first = state(m, below);
            if came[first] != UNSEEN || self.loads[m as usize] == 0 {
                continue;
            }
            (came[first], giver[first]) = (FIRST, m);
            queue.push_back(first);
            while let Some(at) = queue.pop_front() {
                let (node, t) = (at as i64 / width, at as i64 % width);
                for &arc in self.flow.leaving(node as u32) {
                    if arc >= self.inner || self.flow.room[arc as usize] == 0 {
                        continue;
                    }
                    let far = t + self.takes(arc);
                    if !(0..width).contains(&far) {
                        continue;
                    }
                    let other = (i64::from(self.flow.head[arc as usize]) * width + far) as usize;
                    if came[other] == UNSEEN {
                        (came[other], giver[other]) = (arc, m);
                        queue.push_back(other);
                    }
                }
            }
        }
        let mut order = self.order.clone();
        order.sort_by_key(|&m| (self.loads[m as usize], self.place[m as usize]));
        let mut best: BTreeMap<i64, (i64, MemberId)> = BTreeMap::new();
        for m in order {
            for t in 1..=most {
                let from = giver[state(m, below + t)];
                if self.loads[m as usize] >= self.cap || from == NOBODY {
                    continue;
                }
                let gain = self.loads[from as usize] - self.loads[m as usize] - 1;
                if gain > 0 && best.get(&t).is_none_or(|&(most, _)| gain > most) {
                    best.insert(t, (gain, m));
                }
            }
        }
        let found = best.into_iter().map(|(taken, (gain, gainer))| {
            let last = state(gainer, below + taken);
            let arcs = self.path(&came, last, width);
            let giver = giver[last];
            (
                taken,
                Step {
                    gain,
                    taken,
                    giver,
                    arcs,
                    gainer,
                },
            )
        });
        found.collect()
    }

    fn path(&self, came: &[u32], last: usize, width: i64) -> Vec<u32> {
        let mut arcs = Vec::new();
        let mut at = last as i64;
        while came[at as usize] != FIRST {
            let arc = came[at as usize];
            arcs.push(arc);
            let t = at % width - self.takes(arc);
            at = i64::from(self.flow.head[arc as usize ^ 1]) * width + t;
        }
        arcs
    }

    fn takes(&self, arc: u32) -> i64 {
        self.flow.cost[arc as usize].signum()
    }

    /// Returns the largest number of partitions that a path can return to their owners (Bellman,
    /// Ford).
    fn most_home(&self) -> i64 {
        let mut least = vec![0; self.flow.potential.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for arc in (0..self.inner).filter(|&arc| self.flow.room[arc as usize] > 0) {
                let far = least[self.flow.head[arc as usize ^ 1] as usize] + self.takes(arc);
                let head = &mut least[self.flow.head[arc as usize] as usize];
                if far < *head {
                    *head = far;
                    changed = true;
                }
            }
        }
        -least.into_iter().min().unwrap_or(0)
    }

    fn set_load(&mut self, m: usize, load: i64) {
        self.loads[m] = load;
        let room = i64::from(load < self.cap);
        self.flow.set_room(self.gain[m], room, 2 * load + 1);
    }

    /// Sends as much of the flow at the start as fits, raises the loads, and returns the amount.
    fn send(&mut self) -> i64 {
        let most = self.flow.potential.iter().copied().max();
        self.flow.potential[START as usize] = most.unwrap_or(0);
        let mut total = 0;
        while self.flow.tighten(START, SINK) {
            total += self.flow.largest(START, SINK);
            for m in 0..self.loads.len() {
                if self.flow.sent(self.gain[m]) > 0 {
                    self.set_load(m, self.loads[m] + 1);
                }
            }
        }
        total
    }
}

/// Returns the owners of a topic class's partitions, in order, each with the number that it owns.
fn held(classes: &Classes, class: usize, place: &[u32]) -> Vec<(MemberId, i64)> {
    let of_topic = |&t: &u32| {
        let (start, end) = (classes.base[t as usize], classes.base[t as usize + 1]);
        classes.owner[start as usize..end as usize].iter().copied()
    };
    counted(classes.topics[class].iter().flat_map(of_topic), place)
}
