// SPDX-License-Identifier: Apache-2.0
//! Reads the records of one partition of `__consumer_offsets` for `history/all_groups.py`. Nearly
//! all of them are commits, of which Python gets only counts and times.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use rustc_hash::FxHashMap;

use crate::wire::group_records::{Key, decode_key, decode_offset};

/// The times of a partition's first and last commit since the group's last own record, and the
/// number of commits.
#[derive(Clone, Copy)]
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

    fn __add__(&self, other: &Self) -> Self {
        Self {
            first_ms: self.first_ms.min(other.first_ms),
            last_ms: self.last_ms.max(other.last_ms),
            commits: self.commits + other.commits,
        }
    }
}

struct Group {
    /// The group's own records; between two of them, a dict of the commits by partition.
    entries: Py<PyList>,
    records: usize,
    commits: Option<Py<PyDict>>,
}

impl Group {
    fn new(py: Python<'_>) -> Self {
        let (entries, records, commits) = (PyList::empty(py).unbind(), 0, None);
        Self {
            entries,
            records,
            commits,
        }
    }
}

/// A partition for which a group commits offsets.
struct Place {
    group: usize,
    partition: Py<PyAny>,
    /// The number of the group's own records before these commits.
    since: usize,
    times: Py<CommitTimes>,
}

/// Counts the commits of groups between the groups' own records, in the order of the log.
///
/// `name_of(key)` returns the group of a record that is not a commit; None if it is not wanted.
#[pyclass(module = "kafka_rebalance._core")]
pub struct PartitionLog {
    name_of: Py<PyAny>,
    new_partition: Py<PyAny>,
    groups: Vec<Group>,
    by_name: FxHashMap<String, usize>,
    places: Vec<Place>,
    /// Maps the bytes of a commit's key, without its version, to an index in `places`.
    by_key: FxHashMap<Box<[u8]>, usize>,
    /// By topic id: the topic's name. Kafka 4.4 and later write topic ids in committed offsets.
    topic_names: FxHashMap<[u8; 16], Py<PyString>>,
    last_offset: i64,
    /// From this offset to the last one, the partition has no hole; see `WholeFrom`.
    #[pyo3(get)]
    whole_from: i64,
}

#[pymethods]
impl PartitionLog {
    #[new]
    fn new(py: Python<'_>, name_of: Py<PyAny>) -> PyResult<Self> {
        let model = py.import("kafka_rebalance.group.model")?;
        Ok(Self {
            name_of,
            new_partition: model.getattr("TopicPartition")?.unbind(),
            groups: Vec::new(),
            by_name: FxHashMap::default(),
            places: Vec::new(),
            by_key: FxHashMap::default(),
            topic_names: FxHashMap::default(),
            last_offset: -3,
            whole_from: 0,
        })
    }

    /// Adds records (`OffsetsRecord`) with ascending offsets; skips one whose offset equals the
    /// last one.
    fn add(&mut self, records: &Bound<'_, PyList>) -> PyResult<()> {
        let py = records.py();
        for record in records {
            let fields = record.cast::<PyTuple>()?;
            let offset: i64 = fields.get_borrowed_item(1)?.extract()?;
            if offset == self.last_offset {
                continue;
            }
            if offset.saturating_sub(self.last_offset) > 2 {
                self.whole_from = offset;
            }
            self.last_offset = offset;
            let key = fields.get_borrowed_item(3)?;
            let key = key.cast::<PyBytes>()?;
            if let [0, 0 | 1, place @ ..] = key.as_bytes() {
                let value: Option<Bound<'_, PyBytes>> = fields.get_borrowed_item(4)?.extract()?;
                if let Some(value) = value {
                    self.learn_name(py, key.as_bytes(), value.as_bytes());
                    let time_ms = fields.get_borrowed_item(2)?.extract()?;
                    self.commit(py, key.as_bytes(), place, time_ms)?;
                }
            } else if let Some(name) = self.name_of.call1(py, (&key,))?.extract(py)? {
                let next = self.groups.len();
                let group = *self.by_name.entry(name).or_insert(next);
                if group == next {
                    self.groups.push(Group::new(py));
                }
                let group = &mut self.groups[group];
                group.entries.bind(py).append(record)?;
                group.records += 1;
                group.commits = None;
            }
        }
        Ok(())
    }

    /// Returns each group's entries: its own records and the commits between them.
    fn groups(&self) -> Vec<&Py<PyList>> {
        self.groups.iter().map(|group| &group.entries).collect()
    }

    /// Returns the topics' names by id; an id is a pair of signed numbers.
    fn topic_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let half = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        let names = PyDict::new(py);
        for (id, name) in &self.topic_names {
            names.set_item((half(&id[..8]), half(&id[8..])), name)?;
        }
        Ok(names)
    }
}

impl PartitionLog {
    /// Records a topic's name by its id, which a commit of any group may contain.
    fn learn_name(&mut self, py: Python<'_>, key: &[u8], value: &[u8]) {
        if let [0, 4, ..] = value
            && let Ok(value) = decode_offset(value)
            && let Some(id) = value.topic_id
            && !self.topic_names.contains_key(&id)
            && let Ok(Key::OffsetCommit { topic, .. }) = decode_key(key)
        {
            let name = PyString::intern(py, topic).unbind();
            self.topic_names.insert(id, name);
        }
    }

    fn commit(&mut self, py: Python<'_>, key: &[u8], place: &[u8], time_ms: i64) -> PyResult<()> {
        let now = CommitTimes::new(time_ms, time_ms, 1);
        let place = match self.by_key.get(place) {
            Some(&known) => known,
            None => match self.new_place(py, key)? {
                Some(new) => {
                    self.places.push(new);
                    *self
                        .by_key
                        .entry(place.into())
                        .or_insert(self.places.len() - 1)
                }
                None => return Ok(()), // a wrong key, or a group without a record before
            },
        };
        let place = &mut self.places[place];
        let group = &mut self.groups[place.group];
        if place.since == group.records {
            let mut times = place.times.borrow_mut(py);
            *times = times.__add__(&now);
        } else {
            (place.since, place.times) = (group.records, Py::new(py, now)?);
            let commits = match &group.commits {
                Some(commits) => commits.bind(py),
                None => {
                    let commits = PyDict::new(py);
                    group.entries.bind(py).append(&commits)?;
                    group.commits.insert(commits.unbind()).bind(py)
                }
            };
            commits.set_item(&place.partition, &place.times)?;
        }
        Ok(())
    }

    fn new_place(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Place>> {
        let Ok(Key::OffsetCommit {
            group_id,
            topic,
            partition,
        }) = decode_key(key)
        else {
            return Ok(None);
        };
        let Some(&group) = self.by_name.get(group_id) else {
            return Ok(None);
        };
        let topic = PyString::intern(py, topic);
        Ok(Some(Place {
            group,
            partition: self.new_partition.call1(py, (topic, partition))?,
            since: 0,
            times: Py::new(py, CommitTimes::new(0, 0, 0))?,
        }))
    }
}
