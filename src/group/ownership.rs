// SPDX-License-Identifier: Apache-2.0
//! Mirror of the parts of `group/ownership.py` that must be fast: an assignment in columns, and the
//! search for its anomalies.

use crate::group::model::{MemberId, TopicId, TopicPartition};
use crate::group::spec::GroupSpec;

/// A kind of fault of an assignment; `group/ownership.py` describes each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnomalyKind {
    Duplicate,
    Unsubscribed,
    Nonexistent,
    Unassigned,
}

impl AnomalyKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Unsubscribed => "unsubscribed",
            Self::Nonexistent => "nonexistent",
            Self::Unassigned => "unassigned",
        }
    }
}

/// One partition that is wrongly assigned to `member`, or unassigned (then `member` is None).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: AnomalyKind,
    pub partition: TopicPartition,
    pub member: Option<MemberId>,
}

/// Returns the index at which each list begins in one array of all lists, then that array's length.
pub fn offsets(lengths: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Member m has `partitions[offsets[m]..offsets[m + 1]]`, in the order of Kafka's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    pub offsets: Vec<u32>,
    pub partitions: Vec<TopicPartition>,
    pub anomalies: Vec<Anomaly>,
    /// The standby tasks of a streams group, whose active tasks are the partitions.
    pub standby: Option<Box<Assignment>>,
    /// The topics of a member's target, if one of them has no partitions: by member, in order.
    pub owned_topics: Vec<(MemberId, Vec<TopicId>)>,
}

impl Assignment {
    pub fn of_lists(lists: &[Vec<TopicPartition>]) -> Self {
        Self {
            offsets: offsets(lists.iter().map(|list| list.len() as u32)),
            partitions: lists.concat(),
            ..Self::default()
        }
    }

    /// Makes an assignment of `counts[m]` partitions for each member m; `give` must fill in all of
    /// them.
    pub fn of_counts(counts: &[u32], give: impl FnOnce(&mut Places)) -> Self {
        let offsets = offsets(counts.iter().copied());
        let nothing = TopicPartition {
            topic: 0,
            partition: 0,
        };
        let mut places = Places {
            next: offsets[..counts.len()].to_vec(),
            partitions: vec![nothing; offsets[counts.len()] as usize],
        };
        give(&mut places);
        Self {
            offsets,
            partitions: places.partitions,
            ..Self::default()
        }
    }

    pub fn of(&self, member: MemberId) -> &[TopicPartition] {
        let m = member as usize;
        &self.partitions[self.offsets[m] as usize..self.offsets[m + 1] as usize]
    }

    /// Sets `anomalies`. If the assignor `withholds`, a claimed partition counts as assigned.
    pub fn find_anomalies(&mut self, group: &GroupSpec, withholds: bool) {
        self.find(group, withholds, false);
    }

    /// Sets `anomalies` for a share group: members share partitions, and only the initialised ones
    /// are assigned.
    pub fn find_anomalies_of_shared(&mut self, group: &GroupSpec) {
        self.find(group, false, true);
    }

    fn find(&mut self, group: &GroupSpec, withholds: bool, shares: bool) {
        let mut found = Vec::new();
        let mut given = PartitionSet::new(group);
        let mut subscribed = vec![false; group.topics.len()];
        // By topic: the last member found that subscribes to it. The array need not be cleared for
        // each member, because a member looks only for its own number.
        let mut subscriber = vec![MemberId::MAX; group.topics.len()];
        for m in 0..group.members.len() as MemberId {
            for &topic in group.subscription(m) {
                subscribed[topic as usize] = true;
                subscriber[topic as usize] = m;
            }
            for &partition in self.of(m) {
                let mut report = |kind| {
                    found.push(Anomaly {
                        kind,
                        partition,
                        member: Some(m),
                    });
                };
                if partition.partition >= group.topics[partition.topic as usize].partitions {
                    report(AnomalyKind::Nonexistent);
                }
                if subscriber[partition.topic as usize] != m {
                    report(AnomalyKind::Unsubscribed);
                }
                if !given.insert(partition) && !shares {
                    report(AnomalyKind::Duplicate);
                }
            }
        }
        if withholds {
            // A claimed partition does not count as unassigned: the member that claims it may still
            // read it, however old the claim is.
            for m in 0..group.members.len() as MemberId {
                for &partition in group.owned(m) {
                    given.insert(partition);
                }
            }
        }
        for (t, topic) in group.topics.iter().enumerate() {
            for p in 0..topic.partitions * u32::from(subscribed[t]) {
                let partition = TopicPartition {
                    topic: t as u32,
                    partition: p,
                };
                let waits = shares
                    && topic
                        .initialized
                        .as_ref()
                        .is_some_and(|all| !all.contains(&p));
                if !given.contains(partition) && !waits {
                    found.push(Anomaly {
                        kind: AnomalyKind::Unassigned,
                        partition,
                        member: None,
                    });
                }
            }
        }
        self.anomalies = found;
    }
}

/// The partitions of an assignment that is being filled.
pub struct Places {
    next: Vec<u32>,
    partitions: Vec<TopicPartition>,
}

impl Places {
    pub fn give(&mut self, member: MemberId, partition: TopicPartition) {
        let next = &mut self.next[member as usize];
        self.partitions[*next as usize] = partition;
        *next += 1;
    }

    /// Appends a run of partitions of one topic to a member's list.
    pub fn give_run(&mut self, member: MemberId, topic: TopicId, run: std::ops::Range<u32>) {
        let next = &mut self.next[member as usize];
        let places = &mut self.partitions[*next as usize..*next as usize + run.len()];
        *next += run.len() as u32;
        for (place, partition) in places.iter_mut().zip(run) {
            *place = TopicPartition { topic, partition };
        }
    }
}

/// A set of partitions: a flag for each existing partition, and a hash set for the others.
pub struct PartitionSet {
    base: Vec<u32>,
    existing: Vec<bool>,
    others: rustc_hash::FxHashSet<TopicPartition>,
}

impl PartitionSet {
    pub fn new(group: &GroupSpec) -> Self {
        let base = offsets(group.topics.iter().map(|topic| topic.partitions));
        let total = base[group.topics.len()] as usize;
        Self {
            base,
            existing: vec![false; total],
            others: rustc_hash::FxHashSet::default(),
        }
    }

    fn place(&self, tp: TopicPartition) -> Option<usize> {
        let start = self.base[tp.topic as usize];
        let at = u64::from(start) + u64::from(tp.partition);
        (at < u64::from(self.base[tp.topic as usize + 1])).then_some(at as usize)
    }

    pub fn insert(&mut self, tp: TopicPartition) -> bool {
        match self.place(tp) {
            Some(at) => !std::mem::replace(&mut self.existing[at], true),
            None => self.others.insert(tp),
        }
    }

    pub fn contains(&self, tp: TopicPartition) -> bool {
        match self.place(tp) {
            Some(at) => self.existing[at],
            None => self.others.contains(&tp),
        }
    }
}
