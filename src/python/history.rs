// SPDX-License-Identifier: Apache-2.0
//! Reads the records of one partition of `__consumer_offsets` for `history/all_groups.py`: nearly
//! all of them are commits, and Python sees only their sums.

use std::collections::hash_map::Entry;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use rustc_hash::FxHashMap;

use super::partitions::Maker;
use crate::wire::group_records::{Key, decode_key};

/// The first and last commit of a partition since the group's last record, and their number.
#[pyclass(get_all, module = "kafka_rebalance._core")]
pub struct CommitTimes {
    first_ms: i64,
    last_ms: i64,
    commits: u64,
}

#[pymethods]
impl CommitTimes {
    #[new]
    #[pyo3(signature = (first_ms, last_ms, commits=1))]
    fn new(first_ms: i64, last_ms: i64, commits: u64) -> Self {
        Self {
            first_ms,
            last_ms,
            commits,
        }
    }

    /// The mean ms between two commits; None if there are fewer than two.
    #[getter]
    fn distance_ms(&self) -> Option<f64> {
        let between = self.commits.checked_sub(1).filter(|&count| count > 0)?;
        Some((self.last_ms as f64 - self.first_ms as f64) / between as f64)
    }

    fn add(&mut self, other: &Self) {
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
        self.commits += other.commits;
    }
}

/// A committed partition of a group.
struct Place {
    group: usize,
    topic: usize,
    partition: i32,
    /// Where its last commit was counted: after how many records of the group, and in which sum.
    era: usize,
    sum: usize,
}

struct Sum {
    topic: usize,
    partition: i32,
    times: CommitTimes,
}

/// A record of a group, and the commits after it.
struct Era {
    record: Py<PyAny>,
    sums: Vec<Sum>,
}

/// Sums up the commits of groups between the groups' own records, in the order of the log.
///
/// `name_of(key)` returns the group of a record that is neither a classic group's nor a commit;
/// None if it is not wanted. If `group_id` is set, all other groups are left out.
#[pyclass(module = "kafka_rebalance._core")]
pub struct PartitionLog {
    name_of: Py<PyAny>,
    group_id: Option<String>,
    groups: Vec<(String, Vec<Era>)>,
    by_name: FxHashMap<String, usize>,
    topics: Vec<Py<PyString>>,
    by_topic: FxHashMap<String, usize>,
    /// By the bytes of a commit's key, without its version.
    places: FxHashMap<Box<[u8]>, Place>,
    /// Brokers of Kafka 4.4 write the topic's id at the end of a committed offset.
    topic_ids: FxHashMap<[u8; 16], usize>,
    last_offset: i64,
    /// From this offset to the last one, the partition has no hole. Compaction makes holes. A hole
    /// of one offset does not count: it may be a transaction's marker.
    #[pyo3(get)]
    whole_from: i64,
}

const WITH_ID: &[u8] = &[0, 4];

#[pymethods]
impl PartitionLog {
    #[new]
    fn new(name_of: Py<PyAny>, group_id: Option<String>) -> Self {
        Self {
            name_of,
            group_id,
            groups: Vec::new(),
            by_name: FxHashMap::default(),
            topics: Vec::new(),
            by_topic: FxHashMap::default(),
            places: FxHashMap::default(),
            topic_ids: FxHashMap::default(),
            last_offset: -3,
            whole_from: 0,
        }
    }

    /// Adds records (`OffsetsRecord`) with ascending offsets.
    fn add(&mut self, records: &Bound<'_, PyList>) -> PyResult<()> {
        for record in records {
            let fields = record.cast::<PyTuple>()?;
            let offset: i64 = fields.get_borrowed_item(1)?.extract()?;
            if offset.saturating_sub(self.last_offset) > 2 {
                self.whole_from = offset;
            }
            self.last_offset = offset;
            let (key, value) = (fields.get_item(3)?, fields.get_item(4)?);
            let key = key.cast::<PyBytes>()?.as_bytes();
            if let [0, 0 | 1, place @ ..] = key {
                // A commit before the group's first record shows nothing.
                if let Ok(value) = value.cast::<PyBytes>() {
                    let time_ms = fields.get_borrowed_item(2)?.extract()?;
                    self.commit(record.py(), key, place, value.as_bytes(), time_ms);
                }
            } else if let Some(name) = self.group_of(&fields.get_item(3)?)? {
                let next = self.groups.len();
                let group = *self.by_name.entry(name).or_insert_with_key(|name| {
                    self.groups.push((name.clone(), Vec::new()));
                    next
                });
                let (record, sums) = (record.unbind(), Vec::new());
                self.groups[group].1.push(Era { record, sums });
            }
        }
        Ok(())
    }

    /// Returns each group's name with its records and, between them, its commits by partition.
    fn groups<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<(String, Vec<Bound<'py, PyAny>>)>> {
        let maker = Maker::new(py)?;
        let groups = std::mem::take(&mut self.groups);
        let read = groups.into_iter().map(|(name, eras)| {
            let mut entries = Vec::with_capacity(2 * eras.len());
            for era in eras {
                entries.push(era.record.into_bound(py));
                if !era.sums.is_empty() {
                    let commits = PyDict::new(py);
                    for sum in era.sums {
                        let tp = maker.make(self.topics[sum.topic].bind(py), sum.partition)?;
                        commits.set_item(tp, Bound::new(py, sum.times)?)?;
                    }
                    entries.push(commits.into_any());
                }
            }
            Ok((name, entries))
        });
        read.collect()
    }

    /// Returns the names of topics by their ids, each two signed numbers.
    fn topic_names(&self, py: Python<'_>) -> FxHashMap<(i64, i64), Py<PyString>> {
        let half = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        let ids = self.topic_ids.iter();
        ids.map(|(id, &topic)| {
            let name = self.topics[topic].clone_ref(py);
            ((half(&id[..8]), half(&id[8..])), name)
        })
        .collect()
    }
}

impl PartitionLog {
    /// The group of a record that is not a commit; None if it has none, or if it is not wanted.
    fn group_of(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let name = match decode_key(key.cast::<PyBytes>()?.as_bytes()) {
            Ok(Key::GroupMetadata { group_id }) => Some(group_id.to_owned()),
            Ok(Key::Other) => self.name_of.bind(key.py()).call1((key,))?.extract()?,
            _ => None,
        };
        let is_wanted = |name: &String| self.group_id.as_ref().is_none_or(|only| only == name);
        Ok(name.filter(is_wanted))
    }

    fn commit(&mut self, py: Python<'_>, key: &[u8], place: &[u8], value: &[u8], time_ms: i64) {
        if !self.places.contains_key(place) && self.add_place(py, key, place).is_none() {
            return;
        }
        let place = self.places.get_mut(place).expect("it was added");
        let eras = &mut self.groups[place.group].1;
        let count = eras.len();
        let sums = &mut eras[count - 1].sums;
        let times = CommitTimes::new(time_ms, time_ms, 1);
        if place.era == count {
            sums[place.sum].times.add(&times);
        } else {
            (place.era, place.sum) = (count, sums.len());
            let (topic, partition) = (place.topic, place.partition);
            sums.push(Sum {
                topic,
                partition,
                times,
            });
        }
        if value.starts_with(WITH_ID)
            && let Some(id) = value[1..].last_chunk()
        {
            self.topic_ids.insert(*id, place.topic);
        }
    }

    /// Adds the partition of a commit; None if the key is wrong or the group has no record yet.
    fn add_place(&mut self, py: Python<'_>, key: &[u8], place: &[u8]) -> Option<()> {
        let Ok(Key::OffsetCommit {
            group_id,
            topic,
            partition,
        }) = decode_key(key)
        else {
            return None;
        };
        let group = *self.by_name.get(group_id)?;
        let topic = match self.by_topic.entry(topic.to_owned()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.topics.push(PyString::new(py, topic).unbind());
                *new.insert(self.topics.len() - 1)
            }
        };
        let (era, sum) = (0, 0);
        let added = Place {
            group,
            topic,
            partition,
            era,
            sum,
        };
        self.places.insert(place.into(), added);
        Some(())
    }
}
