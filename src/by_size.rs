//! Members by (partitions held, rank of the id): who has the fewest of those that may have a
//! topic's partitions? Kept twice, whole and by subscription class, as long as the classes are few.
//!
//! Members with the same topics are one class. The first member of the whole set that subscribes to
//! a topic is the least of the first ones of the topic's classes: both orders are the same, and a
//! class either subscribes as a whole or not at all. With many classes the whole set is walked
//! instead: then many members subscribe to something that others do not, and the walk is short.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::group::{GroupSpec, MemberId, TopicId};

/// (partitions held, rank of the id)
pub type Place = (u32, u32);

const MOST_CLASSES: usize = 64;

pub struct BySize {
    all: BTreeSet<Place>,
    /// While only the smallest of a topic are asked for, the whole set need not be kept.
    whole: bool,
    /// Empty when there are too many.
    classes: Vec<BTreeSet<Place>>,
    class_of_member: Vec<u32>,
    classes_of_topic: Vec<Vec<u32>>,
    by_rank: Vec<MemberId>,
}

impl BySize {
    /// Nobody is in it yet. `ranks` are those of the members' ids.
    pub fn new(group: &GroupSpec, ranks: &[u32]) -> Self {
        let mut by_rank = vec![0; ranks.len()];
        for (m, &rank) in ranks.iter().enumerate() {
            by_rank[rank as usize] = m as MemberId;
        }
        let (class_of_member, subscriptions) = classes(group);
        let mut classes_of_topic = vec![Vec::new(); group.topics.len()];
        for (k, topics) in subscriptions.iter().enumerate() {
            for &topic in topics {
                classes_of_topic[topic as usize].push(k as u32);
            }
        }
        Self {
            all: BTreeSet::new(),
            whole: subscriptions.is_empty(),
            classes: vec![BTreeSet::new(); subscriptions.len()],
            class_of_member,
            classes_of_topic,
            by_rank,
        }
    }

    /// From here on the whole set is kept, too: `least`, `most` and `iter` may be asked for.
    pub fn keep_whole(&mut self) {
        if !std::mem::replace(&mut self.whole, true) {
            self.all = self.classes.iter().flatten().copied().collect();
        }
    }

    pub fn insert(&mut self, member: MemberId, place: Place) {
        if self.whole {
            self.all.insert(place);
        }
        if let Some(class) = self.class_of(member) {
            class.insert(place);
        }
    }

    pub fn remove(&mut self, member: MemberId, place: Place) {
        if self.whole {
            self.all.remove(&place);
        }
        if let Some(class) = self.class_of(member) {
            class.remove(&place);
        }
    }

    fn class_of(&mut self, member: MemberId) -> Option<&mut BTreeSet<Place>> {
        let class = self.class_of_member.get(member as usize)?;
        self.classes.get_mut(*class as usize)
    }

    pub fn least(&self) -> Option<Place> {
        self.all.first().copied()
    }

    pub fn most(&self) -> Option<Place> {
        self.all.last().copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Place, MemberId)> + '_ {
        let member = |&place: &Place| (place, self.by_rank[place.1 as usize]);
        self.all.iter().map(member)
    }

    /// The first one that subscribes to a topic and fits; `subscribes` is asked where there are no
    /// classes.
    pub fn smallest(
        &self,
        topic: TopicId,
        subscribes: impl Fn(MemberId) -> bool,
        fits: impl Fn(MemberId) -> bool,
    ) -> Option<MemberId> {
        if self.classes.is_empty() {
            let mut members = self.iter().map(|(_, member)| member);
            return members.find(|&member| subscribes(member) && fits(member));
        }
        let classes = self.classes_of_topic[topic as usize].iter();
        let first = |&class: &u32| {
            let mut places = self.classes[class as usize].iter();
            places.find(|place| fits(self.by_rank[place.1 as usize]))
        };
        let place = classes.filter_map(first).min()?;
        Some(self.by_rank[place.1 as usize])
    }
}

/// The class of each member, and the topics of each class; both empty when there are too many.
fn classes(group: &GroupSpec) -> (Vec<u32>, Vec<Vec<TopicId>>) {
    let mut numbers: FxHashMap<Vec<TopicId>, u32> = FxHashMap::default();
    let mut class_of_member = Vec::with_capacity(group.members.len());
    for m in 0..group.members.len() as MemberId {
        let mut topics = group.subscription(m).to_vec();
        topics.sort_unstable();
        topics.dedup();
        let next = numbers.len() as u32;
        class_of_member.push(*numbers.entry(topics).or_insert(next));
        if numbers.len() > MOST_CLASSES {
            return (Vec::new(), Vec::new());
        }
    }
    let mut subscriptions = vec![Vec::new(); numbers.len()];
    for (topics, class) in numbers {
        subscriptions[class as usize] = topics;
    }
    (class_of_member, subscriptions)
}
