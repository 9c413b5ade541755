// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/levels.py`: finds the levels (sets of members and topics) of the
//! best balance, in the steps that the Python module explains.

use super::classes::Classes;
use super::flow::{Flow, UNLIMITED};

/// A level of the best balance: `extra` members have `load` partitions, the others one fewer.
#[derive(Default)]
pub struct ClassLevel {
    pub load: i64,
    pub extra: i64,
    /// Topic classes, ascending.
    pub topics: Vec<u32>,
    /// Subscription classes, ascending.
    pub members: Vec<u32>,
    /// By member: its number of partitions, if a budget has set it; else empty.
    pub loads: Vec<i64>,
}

/// Finds the levels, from the highest load to the lowest.
pub fn levels(classes: &Classes) -> Vec<ClassLevel> {
    let mut topics: Vec<u32> = (0..classes.topics.len() as u32).collect();
    let mut members: Vec<u32> = (0..classes.members.len() as u32).collect();
    let mut found = Vec::new();
    while !members.is_empty() {
        // 1. Find the smallest possible load of the member with the most partitions.
        let load = least_load(classes, &topics, &members);
        if load == 0 {
            found.push(ClassLevel {
                topics,
                members,
                ..ClassLevel::default()
            });
            break;
        }
        // 2. If each member has room for one fewer, some partitions do not fit. The classes of
        // these partitions and of the full members are the level.
        let cut = load_cut(classes, &topics, &members, load - 1);
        // 3. Continue with the other classes.
        topics.retain(|c| cut.topics.binary_search(c).is_err());
        members.retain(|k| cut.members.binary_search(k).is_err());
        found.push(ClassLevel {
            load,
            extra: cut.left,
            topics: cut.topics,
            members: cut.members,
            loads: Vec::new(),
        });
    }
    found
}

fn least_load(classes: &Classes, topics: &[u32], members: &[u32]) -> i64 {
    let mut load = mean_up(classes, topics, members);
    loop {
        let cut = load_cut(classes, topics, members, load);
        if cut.left == 0 {
            return load;
        }
        load = mean_up(classes, &cut.topics, &cut.members);
    }
}

fn mean_up(classes: &Classes, topics: &[u32], members: &[u32]) -> i64 {
    let supply: i64 = topics.iter().map(|&c| classes.supply[c as usize]).sum();
    let members = members.iter().map(|&k| classes.members[k as usize].len());
    let members = members.sum::<usize>() as i64;
    (supply + members - 1) / members
}

/// The amount of supply that does not fit, the topic classes that it belongs to, and the
/// subscription classes of the members that are full.
pub struct Cut {
    pub left: i64,
    pub topics: Vec<u32>,
    pub members: Vec<u32>,
}

fn load_cut(classes: &Classes, topics: &[u32], members: &[u32], load: i64) -> Cut {
    let room = |k: u32| load * classes.members[k as usize].len() as i64;
    cut(classes, topics, members, &classes.supply, room)
}

/// Finds the topics whose `supply` does not fit in the room of their subscribers; `room(k)` is that
/// of all members of class k together.
pub fn cut(
    classes: &Classes,
    topics: &[u32],
    members: &[u32],
    supply: &[i64],
    room: impl Fn(u32) -> i64,
) -> Cut {
    let (source, sink) = (0, 1);
    let topic_node = |i: usize| 2 + i as u32;
    let member_node = |i: usize| (2 + topics.len() + i) as u32;
    let mut flow = Flow::new(2 + topics.len() + members.len());
    for (i, &c) in topics.iter().enumerate() {
        flow.add(source, topic_node(i), supply[c as usize], 0);
        for k in &classes.subscribers[c as usize] {
            if let Ok(at) = members.binary_search(k) {
                flow.add(topic_node(i), member_node(at), UNLIMITED, 0);
            }
        }
    }
    for (i, &k) in members.iter().enumerate() {
        flow.add(member_node(i), sink, room(k), 0);
    }
    let total: i64 = topics.iter().map(|&c| supply[c as usize]).sum();
    let left = total - flow.largest(source, sink);
    let stuck = flow.reachable(source);
    let of = |all: &[u32], node: &dyn Fn(usize) -> u32| {
        let numbered = all.iter().enumerate();
        let stuck = numbered.filter(|&(i, _)| stuck[node(i) as usize]);
        stuck.map(|(_, &number)| number).collect()
    };
    Cut {
        left,
        topics: of(topics, &topic_node),
        members: of(members, &member_node),
    }
}
