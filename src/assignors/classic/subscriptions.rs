// SPDX-License-Identifier: Apache-2.0
//! Mirror of `subscriptions.py`: the order in which a leader visits topics; also the subscribers of
//! each topic, and a table of who subscribes to what.

use std::borrow::Cow;

use crate::group::model::{MemberId, TopicId};
use crate::group::spec::GroupSpec;
use crate::java::order::hash_order;

/// Returns the subscribed topics with partitions, in the order of the leader's HashMap.
pub fn topics_in_order(group: &GroupSpec) -> Vec<TopicId> {
    let ranks = group.topic_ranks();
    let mut seen = vec![false; group.topics.len()];
    let mut subscribed: Vec<TopicId> = Vec::new();
    let mut before = None;
    for &member in group.members_in_order() {
        if before
            .replace(member)
            .is_some_and(|m| group.same_subscription(m, member))
        {
            continue;
        }
        let new = subscribed.len();
        for &topic in group.subscription(member) {
            if !std::mem::replace(&mut seen[topic as usize], true) {
                subscribed.push(topic);
            }
        }
        // The newest Java client sends its topics sorted by name. Only the topics that no earlier
        // member lists are still to be sorted.
        let as_sent = group.members[member as usize].as_sent;
        if as_sent.subscription_version.is_none() {
            subscribed[new..].sort_unstable_by_key(|&topic| ranks[topic as usize]);
        }
    }
    let mut topics = in_hash_order(group, &subscribed);
    topics.retain(|&topic| group.topics[topic as usize].partitions > 0);
    in_hash_order(group, &topics)
}

/// Sorts topics into the iteration order of a default HashMap to which they are added one by one.
fn in_hash_order(group: &GroupSpec, topics: &[TopicId]) -> Vec<TopicId> {
    let hashes = topics.iter().map(|&t| group.topic_hashes()[t as usize]);
    let order = hash_order(&hashes.collect::<Vec<_>>(), |i| {
        group.topics[topics[i as usize] as usize].name
    });
    order.iter().map(|&i| topics[i as usize]).collect()
}

/// The runs of a group: sequences of neighbouring members with equal subscriptions.
struct Runs {
    /// By member: the number of its run, ascending.
    of_member: Vec<u32>,
    /// By run: its first member.
    first: Vec<MemberId>,
}

impl Runs {
    fn of(group: &GroupSpec) -> Self {
        let mut of_member = Vec::with_capacity(group.members.len());
        let mut first = Vec::new();
        for m in 0..group.members.len() as MemberId {
            if m == 0 || !group.same_subscription(m - 1, m) {
                first.push(m);
            }
            of_member.push(first.len() as u32 - 1);
        }
        Self { of_member, first }
    }
}

/// The subscribers of each topic: `members[of_topic[t].0..of_topic[t].1]`. If only one run lists a
/// topic, and lists it once, the topic's range in `members` is the run's range.
pub struct Subscribers {
    of_topic: Vec<(u32, u32)>,
    members: Vec<MemberId>,
    /// By topic: whether any member lists it twice.
    doubled: Vec<bool>,
}

impl Subscribers {
    /// Finds the subscribers, in the given `order`; a member appears as often as it lists a topic.
    pub fn of(group: &GroupSpec, order: &[MemberId]) -> Self {
        let runs = Runs::of(group);
        let (spans, mut members) = members_of_runs(&runs, order);
        // `listings`, by topic: how often runs have listed it so far, and the last run that did.
        // `of_topic`, by topic: after the first listing, the span of the run's members; from the
        // second on, 0 and the number of subscribers so far.
        let mut of_topic = vec![(0, 0); group.topics.len()];
        let mut listings = vec![(0u32, u32::MAX); group.topics.len()];
        let mut doubled = vec![false; group.topics.len()];
        for (run, &first) in runs.first.iter().enumerate() {
            let (start, end) = spans[run];
            for &topic in group.subscription(first) {
                let t = topic as usize;
                doubled[t] |= listings[t].1 == run as u32;
                listings[t] = (listings[t].0 + 1, run as u32);
                of_topic[t] = if listings[t].0 == 1 {
                    (start, end)
                } else {
                    (0, of_topic[t].1 - of_topic[t].0 + end - start)
                };
            }
        }
        // A topic that is listed more than once gets its own range, after the ranges of all runs.
        let shared = |t: usize| listings[t].0 < 2;
        let mut end = members.len() as u32;
        for t in (0..of_topic.len()).filter(|&t| !shared(t)) {
            let count = of_topic[t].1 - of_topic[t].0;
            of_topic[t] = (end, end);
            end += count;
        }
        if end as usize > members.len() {
            members.resize(end as usize, 0);
            for &member in order {
                for &topic in group.subscription(member) {
                    if !shared(topic as usize) {
                        let at = &mut of_topic[topic as usize].1;
                        members[*at as usize] = member;
                        *at += 1;
                    }
                }
            }
        }
        Self {
            of_topic,
            members,
            doubled,
        }
    }

    /// Returns the subscribers of a topic; a member that lists the topic twice appears twice.
    pub fn to(&self, topic: TopicId) -> &[MemberId] {
        let (start, end) = self.of_topic[topic as usize];
        &self.members[start as usize..end as usize]
    }

    /// Returns the subscribers of a topic; each appears once.
    pub fn distinct(&self, topic: TopicId) -> Cow<'_, [MemberId]> {
        let members = self.to(topic);
        if !self.doubled[topic as usize] {
            return Cow::Borrowed(members);
        }
        let mut members = members.to_vec();
        members.dedup();
        Cow::Owned(members)
    }
}

/// Returns the span of each run, and the members sorted by run and then by the given `order`.
fn members_of_runs(runs: &Runs, order: &[MemberId]) -> (Vec<(u32, u32)>, Vec<MemberId>) {
    // The members of a run are neighbours in the group, so its span starts at its first member.
    let mut spans: Vec<_> = runs.first.iter().map(|&first| (first, first)).collect();
    let mut members = vec![0; order.len()];
    for &member in order {
        let at = &mut spans[runs.of_member[member as usize] as usize].1;
        members[*at as usize] = member;
        *at += 1;
    }
    (spans, members)
}

/// Reports whether a member subscribes to a topic, from a table of bits. If the table would be too
/// large (many members with unequal lists of many topics), a binary search replaces it.
pub struct Subscriptions {
    runs: Runs,
    topics: usize,
    bits: Vec<u64>,
    /// By run: its sorted topics; empty if the table of bits exists.
    sorted: Vec<Vec<TopicId>>,
}

const MOST_BITS: usize = 1 << 30;

impl Subscriptions {
    pub fn of(group: &GroupSpec) -> Self {
        let runs = Runs::of(group);
        let topics = group.topics.len();
        let mut bits = Vec::new();
        let mut sorted = Vec::new();
        let of_run = runs.first.iter().map(|&first| group.subscription(first));
        if runs.first.len().saturating_mul(topics) <= MOST_BITS {
            bits.resize((runs.first.len() * topics).div_ceil(64), 0u64);
            for (run, listed) in of_run.enumerate() {
                for &topic in listed {
                    let bit = run * topics + topic as usize;
                    bits[bit / 64] |= 1 << (bit % 64);
                }
            }
        } else {
            sorted.extend(of_run.map(|listed| {
                let mut own = listed.to_vec();
                own.sort_unstable();
                own
            }));
        }
        Self {
            runs,
            topics,
            bits,
            sorted,
        }
    }

    pub fn has(&self, member: MemberId, topic: TopicId) -> bool {
        let run = self.runs.of_member[member as usize] as usize;
        if let Some(topics) = self.sorted.get(run) {
            return topics.binary_search(&topic).is_ok();
        }
        let bit = run * self.topics + topic as usize;
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }
}
