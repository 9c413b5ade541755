// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/possible/moves.py`: finds the least number of moves that leads to a level's
//! balance, as the cost of a cheapest flow.

use rustc_hash::FxHashMap;

use super::classes::{Classes, NO_CLASS};
use super::flow::{Flow, UNLIMITED};
use super::levels::ClassLevel;
use crate::group::model::{MemberId, NOBODY};

pub struct LevelMoves {
    pub moves: i64,
    /// A topic class, a member, and the number of the class's partitions that stay with the member.
    pub keep: Vec<(u32, MemberId, i64)>,
    /// A member, a topic class, and the number of the class's partitions that the member gains.
    pub more: Vec<(MemberId, u32, i64)>,
    pub topic_prices: Vec<(u32, i64)>,
    pub member_prices: Vec<(MemberId, i64)>,
}

/// The number of held partitions, by topic class and member; sorted by both.
pub struct Holdings(Vec<(u32, MemberId, i64)>);

impl Holdings {
    pub fn of(classes: &Classes) -> Self {
        let mut counts: FxHashMap<(u32, MemberId), i64> = FxHashMap::default();
        for (topic, &c) in classes.class_of_topic.iter().enumerate() {
            if c == NO_CLASS {
                continue;
            }
            let (start, end) = (classes.base[topic], classes.base[topic + 1]);
            for &m in &classes.owner[start as usize..end as usize] {
                if m != NOBODY {
                    *counts.entry((c, m)).or_default() += 1;
                }
            }
        }
        let mut held: Vec<_> = counts.into_iter().map(|((c, m), n)| (c, m, n)).collect();
        held.sort_unstable();
        Self(held)
    }
}

pub fn least_moves(classes: &Classes, held: &Holdings, level: &ClassLevel) -> LevelMoves {
    let of_class = |&k: &u32| classes.members[k as usize].iter().copied();
    let members: Vec<MemberId> = level.members.iter().flat_map(of_class).collect();
    let (source, sink, extras) = (0, 1, 2);
    let topic_node = |i: usize| 3 + i as u32;
    let hub_node = |i: usize| (3 + level.topics.len() + i) as u32;
    let member_node = |i: usize| (3 + level.topics.len() + level.members.len() + i) as u32;
    let mut place = vec![usize::MAX; classes.class_of_member.len()];
    for (i, &m) in members.iter().enumerate() {
        place[m as usize] = i;
    }
    let mut flow = Flow::new(member_node(members.len()) as usize);
    for (i, &c) in level.topics.iter().enumerate() {
        flow.add(source, topic_node(i), classes.supply[c as usize], 0);
    }
    let mut kept = Vec::new();
    for &(c, m, count) in &held.0 {
        let topic = level.topics.binary_search(&c);
        let at = place[m as usize];
        if let Ok(i) = topic
            && at != usize::MAX
        {
            kept.push((c, m, flow.add(topic_node(i), member_node(at), count, 0)));
        }
    }
    let mut to_hub: Vec<Vec<(u32, usize)>> = vec![Vec::new(); level.members.len()];
    for (i, &c) in level.topics.iter().enumerate() {
        for k in &classes.subscribers[c as usize] {
            if let Ok(hub) = level.members.binary_search(k) {
                to_hub[hub].push((c, flow.add(topic_node(i), hub_node(hub), UNLIMITED, 1)));
            }
        }
    }
    let mut from_hub: Vec<usize> = Vec::with_capacity(members.len());
    for (hub, k) in level.members.iter().enumerate() {
        for _ in &classes.members[*k as usize] {
            let node = member_node(from_hub.len());
            from_hub.push(flow.add(hub_node(hub), node, UNLIMITED, 0));
        }
    }
    for i in 0..members.len() {
        flow.add(member_node(i), sink, (level.load - 1).max(0), 0);
        flow.add(member_node(i), extras, 1, 0);
    }
    flow.add(extras, sink, level.extra, 0);
    let moves = flow.cheapest(source, sink);
    let price = |node: u32| -flow.potential[node as usize];
    let topics = level.topics.iter().enumerate();
    let numbered = members.iter().enumerate();
    LevelMoves {
        moves,
        keep: kept
            .into_iter()
            .map(|(c, m, arc)| (c, m, flow.sent(arc)))
            .collect(),
        more: through_hubs(classes, level, &flow, &to_hub, &from_hub),
        topic_prices: topics.map(|(i, &c)| (c, price(topic_node(i)))).collect(),
        member_prices: numbered.map(|(i, &m)| (m, price(member_node(i)))).collect(),
    }
}

/// Returns how many partitions of each topic class each member gains. Partitions flow through hubs:
/// nodes, one for each subscription class, that pass partitions on in the order of their arrival.
fn through_hubs(
    classes: &Classes,
    level: &ClassLevel,
    flow: &Flow,
    to_hub: &[Vec<(u32, usize)>],
    from_hub: &[usize],
) -> Vec<(MemberId, u32, i64)> {
    let mut more = Vec::new();
    let mut out = from_hub.iter();
    for (hub, &k) in level.members.iter().enumerate() {
        let into = to_hub[hub].iter().map(|&(c, arc)| (c, flow.sent(arc)));
        let mut into: Vec<(u32, i64)> = into.rev().collect();
        for (&m, &arc) in classes.members[k as usize].iter().zip(&mut out) {
            let mut wanted = flow.sent(arc);
            while wanted > 0
                && let Some((c, run)) = into.last_mut()
            {
                let taken = wanted.min(*run);
                if taken > 0 {
                    more.push((m, *c, taken));
                }
                *run -= taken;
                wanted -= taken;
                if *run == 0 {
                    into.pop();
                }
            }
        }
    }
    more
}
