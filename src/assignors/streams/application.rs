// SPDX-License-Identifier: Apache-2.0
//! Mirror of `application.py`: the input and the answer of the leader of a classic Kafka Streams
//! group. Topics, tasks and racks are numbers; numbers of topics and tasks sort as their names and
//! ids.

use rustc_hash::FxHashMap;

use crate::group::lists::ascending;
use crate::java::hash_map::HashMap;
use crate::java::order::compare_names;

/// The most and the least significant 64 bits, signed.
pub type Uuid = (i64, i64);
/// A subtopology and a partition number.
pub type TaskId = (i32, i32);
/// A topic and a partition number.
pub type Partition = (u32, u32);

pub const NO_RACK: u32 = u32::MAX;

pub struct TopicsInfo {
    pub subtopology_id: i32,
    /// Source topics, including repartition topics.
    pub source_topics: Vec<String>,
    pub changelog_topics: Vec<String>,
    pub source_changelog_topics: Vec<String>,
    pub unlogged_stores: u32,
}

pub struct Settings {
    pub acceptable_recovery_lag: i64,
    pub max_warmup_replicas: i64,
    pub num_standby_replicas: u32,
    pub probing_rebalance_interval_ms: i64,
    pub rack_aware_assignment_tags: Vec<String>,
    pub rack_aware_assignment_strategy: String,
    pub rack_aware_assignment_traffic_cost: Option<i64>,
    pub rack_aware_assignment_non_overlap_cost: Option<i64>,
}

/// A member of the group, with the fields of its `SubscriptionInfo`.
pub struct StreamThread {
    pub member_id: String,
    pub rack_id: Option<String>,
    pub owned_partitions: Vec<(String, i64)>,
    pub version: i32,
    pub latest_supported_version: i32,
    pub process_id: Uuid,
    pub error_code: i32,
    pub user_end_point: String,
    pub offset_sums: FxHashMap<TaskId, i64>,
    pub client_tags: Vec<(String, String)>,
}

pub struct Application {
    pub assignor: String,
    pub now_ms: i64,
    pub leader_process_id: Uuid,
    pub future_process_id: Uuid,
    pub settings: Settings,
    pub racks: FxHashMap<String, Vec<Vec<Option<String>>>>,
    pub subtopologies: Vec<TopicsInfo>,
    pub end_offsets: Option<FxHashMap<String, Vec<i64>>>,
    pub committed_offsets: FxHashMap<String, Vec<Option<i64>>>,
    pub new_changelog_topics: Vec<String>,
    pub threads: Vec<StreamThread>,
}

#[derive(Clone, Default)]
pub struct ThreadAssignment {
    pub partitions: Vec<(String, u32)>,
    pub active_tasks: Vec<TaskId>,
    pub standby_tasks: Vec<TaskId>,
    pub next_rebalance_ms: Option<i64>,
    pub error_code: i32,
    pub version: i32,
    pub commonly_supported_version: i32,
}

pub struct ProcessTasks {
    pub active: Vec<TaskId>,
    pub standby: Vec<TaskId>,
    pub lags: Vec<(TaskId, i64)>,
}

pub type ByHost = Vec<(String, Vec<(String, u32)>)>;

#[derive(Default)]
pub struct LeaderAnswer {
    pub members: Vec<(String, ThreadAssignment)>,
    pub stable: Option<bool>,
    pub probing_rebalance_needed: Option<bool>,
    pub processes: Option<Vec<(Uuid, ProcessTasks)>>,
    pub partitions_by_host: ByHost,
    pub standby_partitions_by_host: ByHost,
}

/// Computes the `TaskId.hashCode` of Kafka Streams.
pub fn task_hash((subtopology, partition): TaskId) -> u32 {
    let times_31 = |hash: u32, next: i32| hash.wrapping_add(next as u32).wrapping_mul(31);
    times_31(times_31(31, subtopology), partition)
}

/// The tasks of an application, with the partitions of each. `ids` also contains tasks that only
/// members know.
#[derive(Default)]
pub struct Topology<'a> {
    pub topics: Vec<&'a str>,
    numbers: FxHashMap<&'a str, u32>,
    rack_numbers: FxHashMap<&'a str, u32>,
    /// By topic and partition: the racks of the replicas.
    pub racks: Vec<Vec<Vec<u32>>>,
    pub subtopologies: FxHashMap<i32, &'a TopicsInfo>,
    /// The ids of the tasks, sorted.
    pub ids: Vec<TaskId>,
    pub tasks: Vec<u32>,
    pub stateful: Vec<u32>,
    pub stateless: Vec<u32>,
    pub is_stateful: Vec<bool>,
    pub inputs: Vec<Vec<Partition>>,
    pub changelogs: Vec<Vec<Partition>>,
    task_of: FxHashMap<Partition, u32>,
}

impl<'a> Topology<'a> {
    pub fn new(application: &'a Application) -> Self {
        let mut new = Self::of_topics(application);
        let mut of_ids: Vec<(TaskId, Vec<Partition>, Vec<Partition>)> = Vec::new();
        for one in &application.subtopologies {
            let sources = || {
                one.source_topics
                    .iter()
                    .map(|topic| new.numbers[topic.as_str()])
            };
            let count = |topic: u32| new.racks[topic as usize].len() as u32;
            for p in 0..sources().map(count).max().unwrap_or(0) {
                let inputs: Vec<Partition> = sources()
                    .filter(|&topic| p < count(topic))
                    .map(|topic| (topic, p))
                    .collect();
                let copies = &one.source_changelog_topics;
                let is_copy =
                    |tp: &&Partition| copies.iter().any(|name| name == new.topics[tp.0 as usize]);
                let own = one.changelog_topics.iter();
                let own = own.filter_map(|topic| Some((*new.numbers.get(topic.as_str())?, p)));
                let changelogs = own.chain(inputs.iter().filter(is_copy).copied()).collect();
                of_ids.push(((one.subtopology_id, p as i32), inputs, changelogs));
            }
        }
        let known: FxHashMap<TaskId, usize> = (0..of_ids.len()).map(|i| (of_ids[i].0, i)).collect();
        let reported = application.threads.iter();
        let reported = reported.flat_map(|one| one.offset_sums.keys().copied());
        new.ids = ascending(known.keys().copied().chain(reported));
        for (n, id) in (0..).zip(&new.ids) {
            let found = known.get(id).map(|&i| &mut of_ids[i]);
            let one = found.is_some().then(|| new.subtopologies[&id.0]);
            let (inputs, changelogs) = found.map_or_else(Default::default, |one| {
                (std::mem::take(&mut one.1), std::mem::take(&mut one.2))
            });
            for &tp in &inputs {
                new.task_of.insert(tp, n);
            }
            new.inputs.push(inputs);
            new.changelogs.push(changelogs);
            let stateful = one.is_some_and(|one| {
                !one.changelog_topics.is_empty() || !one.source_changelog_topics.is_empty()
            });
            new.is_stateful.push(stateful);
            if one.is_some() {
                new.tasks.push(n);
                let list = if stateful {
                    &mut new.stateful
                } else {
                    &mut new.stateless
                };
                list.push(n);
            }
        }
        new
    }

    fn of_topics(application: &'a Application) -> Self {
        let mut topics: Vec<&str> = application.racks.keys().map(String::as_str).collect();
        topics.sort_unstable_by(|a, b| compare_names(a, b));
        let mut rack_numbers = FxHashMap::default();
        let mut number = |rack: &'a Option<String>| match rack.as_deref() {
            None | Some("") => NO_RACK,
            Some(name) => {
                let next = rack_numbers.len() as u32;
                *rack_numbers.entry(name).or_insert(next)
            }
        };
        let mut racks = Vec::new();
        for &topic in &topics {
            let partitions = application.racks[topic].iter();
            let numbered = partitions.map(|replicas| replicas.iter().map(&mut number).collect());
            racks.push(numbered.collect());
        }
        for one in &application.threads {
            number(&one.rack_id);
        }
        Self {
            numbers: topics.iter().copied().zip(0..).collect(),
            topics,
            racks,
            rack_numbers,
            subtopologies: application
                .subtopologies
                .iter()
                .map(|one| (one.subtopology_id, one))
                .collect(),
            ..Self::default()
        }
    }

    pub fn rack(&self, name: &Option<String>) -> u32 {
        let number = name.as_deref().and_then(|name| self.rack_numbers.get(name));
        number.copied().unwrap_or(NO_RACK)
    }

    /// Returns the number of a task; the id must be in `ids`.
    pub fn number(&self, id: TaskId) -> u32 {
        self.ids.partition_point(|&one| one < id) as u32
    }

    pub fn partition(&self, topic: &str, partition: i64) -> Option<Partition> {
        Some((*self.numbers.get(topic)?, u32::try_from(partition).ok()?))
    }

    pub fn task_of(&self, tp: Partition) -> Option<u32> {
        self.task_of.get(&tp).copied()
    }

    pub fn hash(&self, task: u32) -> u32 {
        task_hash(self.ids[task as usize])
    }

    pub fn put<V>(&self, map: &mut HashMap<V>, task: u32, value: V) {
        map.put(task, self.hash(task), &|a, b| a.cmp(&b), value);
    }

    /// Returns a set of `slots` slots to which the tasks are added one after another.
    pub fn set(&self, tasks: impl IntoIterator<Item = u32>, slots: usize) -> HashMap<()> {
        let mut set = HashMap::with_slots(slots);
        for task in tasks {
            self.put(&mut set, task, ());
        }
        set
    }

    pub fn named(&self, (topic, p): Partition) -> (String, u32) {
        (self.topics[topic as usize].to_owned(), p)
    }

    /// Sorts tasks into the order in which Java adds them to a set.
    pub fn in_java_order(&self, tasks: &[u32]) -> Vec<u32> {
        let mut order: HashMap<Vec<u32>> = HashMap::default();
        for &task in tasks {
            let number = self.ids[task as usize].0 as u32;
            let hash = number.wrapping_add(31).wrapping_mul(31);
            let of_one = order.compute_if_absent(number, hash, &|a, b| a.cmp(&b), Vec::new);
            of_one.push(task);
        }
        order.items().flat_map(|(_, tasks)| tasks.clone()).collect()
    }
}

pub fn missing_sources(application: &Application) -> bool {
    let mut sources = application
        .subtopologies
        .iter()
        .flat_map(|one| &one.source_topics);
    sources.any(|topic| !application.racks.contains_key(topic))
}

/// Returns, by task, the sum of its changelogs' end offsets; None if needed ones are unknown.
pub fn end_offset_sums(application: &Application, topology: &Topology) -> Option<Vec<i64>> {
    let mut sums = vec![0; topology.ids.len()];
    for &task in &topology.stateful {
        let one = topology.subtopologies[&topology.ids[task as usize].0];
        let p = topology.ids[task as usize].1 as usize;
        let mut total: i64 = 0;
        for topic in &one.changelog_topics {
            if !application.new_changelog_topics.contains(topic) {
                let ends = application.end_offsets.as_ref()?;
                let end = ends.get(topic).and_then(|ends| ends.get(p));
                total = total.saturating_add(end.copied().unwrap_or(0));
            }
        }
        for &(topic, p) in &topology.inputs[task as usize] {
            let topic = topology.topics[topic as usize];
            if one.source_changelog_topics.iter().any(|name| name == topic) {
                let offsets = application.committed_offsets.get(topic);
                let offset = offsets.and_then(|offsets| *offsets.get(p as usize)?);
                total = total.saturating_add(offset.unwrap_or(0));
            }
        }
        sums[task as usize] = total;
    }
    Some(sums)
}
