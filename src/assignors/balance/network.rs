// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/network.py`: the best way to a level's loads, as a cheapest flow. A
//! level is a set of members and topics (`levels.rs`).

use rustc_hash::FxHashMap;

use super::classes::{Classes, counted};
use super::flow::{Flow, UNLIMITED};
use super::levels::ClassLevel;
use crate::group::lists::ascending;
use crate::group::model::{MemberId, NOBODY, TopicPartition};
use crate::group::spec::GroupSpec;
use crate::java::order::{by_rank, compare_names};

/// A criterion of `balanced` after the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    Rack,
    Moves,
    Topics,
}

/// A rack's index in the order of names; `NO_RACK` stands for no rack.
type Rack = i64;
const NO_RACK: Rack = -1;

pub struct Lot {
    pub topic_class: u32,
    /// The index of the first lot of the same topic.
    pub first: u32,
    racks: Vec<Rack>,
    pub partitions: Vec<TopicPartition>,
    /// Owners, in the order of `Classes::order`, and how many of the partitions each one owns.
    pub held: Vec<(MemberId, i64)>,
}

pub struct Lots {
    pub lots: Vec<Lot>,
    pub of_class: Vec<Vec<u32>>,
    rack: Vec<Rack>,
    by_topic: bool,
}

impl Lots {
    pub fn of(group: &GroupSpec, classes: &Classes, racks: bool, by_topic: bool) -> Self {
        let (number, rack) = numbered_racks(group, racks);
        let place = by_rank(&classes.order);
        let mut lots: Vec<Lot> = Vec::new();
        let mut of_class = Vec::new();
        for (c, topics) in classes.topics.iter().enumerate() {
            // The key is the topic's index (0 if topics do not count), then the racks, ascending.
            let mut found: FxHashMap<Vec<Rack>, Vec<TopicPartition>> = FxHashMap::default();
            let mut key = Vec::new();
            for (t, &topic) in topics.iter().enumerate() {
                for partition in 0..group.topics[topic as usize].partitions {
                    let tp = TopicPartition { topic, partition };
                    let near = group.replica_racks(tp).iter();
                    let near = near.map(|&id| number[id as usize]);
                    key.clear();
                    key.extend(near.filter(|&rack| rack != NO_RACK));
                    key.sort_unstable();
                    key.dedup();
                    key.insert(0, if by_topic { t as Rack } else { 0 });
                    match found.get_mut(&key) {
                        Some(partitions) => partitions.push(tp),
                        None => drop(found.insert(key.clone(), vec![tp])),
                    }
                }
            }
            let mut found: Vec<_> = found.into_iter().collect();
            found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            let start = lots.len();
            for (key, partitions) in found {
                let last = lots[start..].last();
                let same = |lot: &&Lot| lot.partitions[0].topic == partitions[0].topic;
                lots.push(Lot {
                    topic_class: c as u32,
                    first: last.filter(same).map_or(lots.len() as u32, |lot| lot.first),
                    racks: key[1..].to_vec(),
                    held: counted(partitions.iter().map(|&tp| classes.owner(tp)), &place),
                    partitions,
                });
            }
            of_class.push((start as u32..lots.len() as u32).collect());
        }
        Self {
            lots,
            of_class,
            rack,
            by_topic,
        }
    }

    /// Returns the lots of a level, ascending.
    pub fn of_level(&self, level: &ClassLevel) -> Vec<u32> {
        let of_class = |&c: &u32| self.of_class[c as usize].iter().copied();
        level.topics.iter().flat_map(of_class).collect()
    }
}

/// Returns the numbers of the racks by rack id, and by member. A rack without a member gets
/// `NO_RACK`; so do all racks if `racks` is false.
fn numbered_racks(group: &GroupSpec, racks: bool) -> (Vec<Rack>, Vec<Rack>) {
    let mut ids = ascending(group.members.iter().filter_map(|m| m.rack));
    ids.sort_by(|&a, &b| compare_names(group.rack_names[a as usize], group.rack_names[b as usize]));
    let mut number = vec![NO_RACK; group.rack_names.len()];
    for (n, &id) in ids.iter().enumerate().filter(|_| racks) {
        number[id as usize] = n as Rack;
    }
    let of = |rack: Option<u32>| rack.map_or(NO_RACK, |id| number[id as usize]);
    let rack = group.members.iter().map(|member| of(member.rack)).collect();
    (number, rack)
}

pub struct HandedOut {
    /// Members, and the number of partitions that each one gains.
    pub wanted: Vec<(MemberId, i64)>,
    /// Lots, and the number of each one's partitions that the hub hands out.
    pub lots: Vec<(u32, i64)>,
}

pub struct LevelFlow {
    pub moves: i64,
    /// By lot and member: how many of the lot's partitions stay with the member.
    pub keep: FxHashMap<(u32, MemberId), i64>,
    pub hubs: Vec<HandedOut>,
    pub topic_prices: Vec<(u32, i64)>,
    pub member_prices: Vec<(MemberId, i64)>,
}

pub struct HubMembers {
    cell: u32,
    pub members: Vec<MemberId>,
    rack: Rack,
    lots: Vec<u32>,
}

/// Returns the hubs of a level's lots, in the order in which they hand out partitions.
pub fn hub_members(
    classes: &Classes,
    lots: &Lots,
    level: &ClassLevel,
    here: &[u32],
) -> Vec<HubMembers> {
    let mut hubs: Vec<HubMembers> = Vec::new();
    let place = |k: &u32| level.members.binary_search(k).ok();
    let subscribers = |n: u32| &classes.subscribers[lots.lots[n as usize].topic_class as usize];
    if lots.by_topic {
        let first = |n: &u32| lots.lots[*n as usize].first;
        for of_topic in here.chunk_by(|a, b| first(a) == first(b)) {
            for &k in subscribers(of_topic[0])
                .iter()
                .filter(|k| place(k).is_some())
            {
                for &m in &classes.members[k as usize] {
                    hubs.push(HubMembers {
                        cell: first(&of_topic[0]),
                        members: vec![m],
                        rack: lots.rack[m as usize],
                        lots: of_topic.to_vec(),
                    });
                }
            }
        }
        return hubs;
    }
    let mut fitting = vec![Vec::new(); level.members.len()];
    for &n in here {
        for at in subscribers(n).iter().filter_map(place) {
            fitting[at].push(n);
        }
    }
    for (fitting, &k) in fitting.into_iter().zip(&level.members) {
        let mut members = classes.members[k as usize].clone();
        members.sort_by_key(|&m| lots.rack[m as usize]);
        for members in members.chunk_by(|&a, &b| lots.rack[a as usize] == lots.rack[b as usize]) {
            hubs.push(HubMembers {
                cell: 0,
                members: members.to_vec(),
                rack: lots.rack[members[0] as usize],
                lots: fitting.clone(),
            });
        }
    }
    hubs
}

/// Returns the cheapest flow of a level. Costs fit in 64 bits: the spread of topics is a criterion
/// only up to `MOST_PARTITIONS`.
pub fn level_flow(
    classes: &Classes,
    lots: &Lots,
    level: &ClassLevel,
    criteria: &[Criterion],
) -> LevelFlow {
    let here = lots.of_level(level);
    let of_class = |&k: &u32| classes.members[k as usize].iter().copied();
    let members: Vec<MemberId> = level.members.iter().flat_map(of_class).collect();
    let hubs = hub_members(classes, lots, level, &here);
    let (source, sink, extras) = (0, 1, 2);
    let mut lot_node = vec![0; lots.lots.len()];
    for (i, &n) in here.iter().enumerate() {
        lot_node[n as usize] = 3 + i as u32;
    }
    let hub_node = |i: usize| (3 + here.len() + i) as u32;
    let mut member_node = vec![0; classes.class_of_member.len()];
    for (i, &m) in members.iter().enumerate() {
        member_node[m as usize] = hub_node(hubs.len() + i);
    }
    let price = prices(classes, level, criteria);
    let mut flow = Flow::new(hub_node(hubs.len() + members.len()) as usize);
    for &n in &here {
        let size = lots.lots[n as usize].partitions.len();
        flow.add(source, lot_node[n as usize], size as i64, 0);
    }
    let away = |n: u32, rack: Rack| match lots.lots[n as usize].racks.contains(&rack) {
        true => 0,
        false => price.rack,
    };
    let places = hubs.iter().enumerate();
    let cells: FxHashMap<(u32, MemberId), u32> = places
        .filter(|_| lots.by_topic)
        .map(|(i, hub)| ((hub.cell, hub.members[0]), hub_node(i)))
        .collect();
    let mut kept = Vec::new();
    for &n in &here {
        let lot = &lots.lots[n as usize];
        for &(m, count) in lot
            .held
            .iter()
            .filter(|(m, _)| member_node[*m as usize] > 0)
        {
            let to = if lots.by_topic {
                cells[&(lot.first, m)]
            } else {
                member_node[m as usize]
            };
            let cost = away(n, lots.rack[m as usize]);
            kept.push(((n, m), flow.add(lot_node[n as usize], to, count, cost)));
        }
    }
    let mut to_hub: Vec<Vec<(u32, usize)>> = Vec::with_capacity(hubs.len());
    for (i, hub) in hubs.iter().enumerate() {
        let into = hub.lots.iter().map(|&n| {
            let cost = price.moves + away(n, hub.rack);
            (
                n,
                flow.add(lot_node[n as usize], hub_node(i), UNLIMITED, cost),
            )
        });
        to_hub.push(into.collect());
    }
    let mut from_hub: Vec<Vec<usize>> = Vec::with_capacity(hubs.len());
    for (i, hub) in hubs.iter().enumerate() {
        if lots.by_topic {
            let sizes = hub
                .lots
                .iter()
                .map(|&n| lots.lots[n as usize].partitions.len());
            let m = member_node[hub.members[0] as usize];
            for x in 0..level.load.min(sizes.sum::<usize>() as i64) {
                flow.add(hub_node(i), m, 1, x * price.topics);
            }
            from_hub.push(Vec::new());
            continue;
        }
        let out = hub.members.iter();
        let out = out.map(|&m| flow.add(hub_node(i), member_node[m as usize], UNLIMITED, 0));
        from_hub.push(out.collect());
    }
    for &m in &members {
        let node = member_node[m as usize];
        let most = level.loads.get(m as usize);
        flow.add(
            node,
            sink,
            most.copied().unwrap_or((level.load - 1).max(0)),
            0,
        );
        flow.add(node, extras, 1, 0);
    }
    flow.add(extras, sink, level.extra, 0);
    flow.cheapest(source, sink);
    let found = hubs.iter().zip(to_hub).zip(from_hub);
    let found = found.map(|((hub, into), out)| handed(&flow, hub, &into, &out));
    let hubs: Vec<HandedOut> = found.collect();
    let potential = |node: u32| -flow.potential[node as usize];
    let class = |n: u32| lots.lots[n as usize].topic_class;
    LevelFlow {
        moves: hubs
            .iter()
            .flat_map(|hub| &hub.lots)
            .map(|&(_, count)| count)
            .sum(),
        keep: kept
            .into_iter()
            .map(|(place, arc)| (place, flow.sent(arc)))
            .collect(),
        topic_prices: here
            .iter()
            .map(|&n| (class(n), potential(lot_node[n as usize])))
            .collect(),
        member_prices: members
            .iter()
            .map(|&m| (m, potential(member_node[m as usize])))
            .collect(),
        hubs,
    }
}

/// Returns a hub with the amounts that flow through it. If the hub has one member, `out` is empty.
fn handed(flow: &Flow, hub: &HubMembers, into: &[(u32, usize)], out: &[usize]) -> HandedOut {
    let lots: Vec<(u32, i64)> = into
        .iter()
        .map(|&(n, arc)| (n, flow.sent(arc)))
        .filter(|&(_, count)| count > 0)
        .collect();
    let members = hub.members.iter().copied();
    let wanted = match out {
        [] => members
            .map(|m| (m, lots.iter().map(|&(_, count)| count).sum()))
            .collect(),
        _ => members.zip(out.iter().map(|&arc| flow.sent(arc))).collect(),
    };
    HandedOut { wanted, lots }
}

/// Returns the smallest number of partitions that their owners lose if all levels are reached.
pub fn fewest_taken(group: &GroupSpec, classes: &Classes, best: &[ClassLevel]) -> i64 {
    let lots = Lots::of(group, classes, false, false);
    let moves = best
        .iter()
        .map(|level| level_flow(classes, &lots, level, &[Criterion::Moves]).moves);
    let owned = classes.owner.iter().filter(|&&m| m != NOBODY).count() as i64;
    moves.sum::<i64>() - (classes.supply.iter().sum::<i64>() - owned)
}

#[derive(Default)]
struct Prices {
    rack: i64,
    moves: i64,
    topics: i64,
}

fn prices(classes: &Classes, level: &ClassLevel, criteria: &[Criterion]) -> Prices {
    let supply = level.topics.iter().map(|&c| classes.supply[c as usize]);
    let partitions: i64 = supply.sum();
    let mut found = Prices::default();
    let mut unit = 1;
    for criterion in criteria.iter().rev() {
        let (price, most) = match criterion {
            Criterion::Rack => (&mut found.rack, partitions),
            Criterion::Moves => (&mut found.moves, partitions),
            Criterion::Topics => (&mut found.topics, partitions * (partitions - 1) / 2),
        };
        *price = unit;
        unit *= 1 + most;
    }
    found
}
