// SPDX-License-Identifier: Apache-2.0
//! Reads the records of one partition of `__consumer_offsets` for `history/all_groups.py`. Nearly
//! all of them are commits, of which Python gets only counts and times.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PyString, PyTuple};
use rustc_hash::FxHashMap;

use super::bulk;
use super::partitions::Maker;
use crate::bulk::records::group::Records;
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

    /// Returns the mean ms between two commits; None if there are fewer than two.
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

/// Returns the last time of the commits of `assigned` partitions, and the shortest mean distance
/// between two commits of a partition. `of_tasks` holds the commits of assigned tasks.
#[pyfunction]
pub fn commits_of(
    assigned: &Bound<'_, PyFrozenSet>,
    since: &Bound<'_, PyDict>,
    of_tasks: &Bound<'_, PyDict>,
) -> PyResult<(Option<i64>, Option<f64>)> {
    let mut commits = Vec::new();
    for partition in assigned {
        commits.extend(since.get_item(&partition)?);
        if let Some(of_task) = of_tasks.get_item(partition)? {
            commits.extend(of_task.cast::<PyDict>()?.values());
        }
    }
    let (mut last_ms, mut usual_ms) = (None, None::<f64>);
    for times in commits {
        let times = *times.cast::<CommitTimes>()?.borrow();
        last_ms = last_ms.max(Some(times.last_ms));
        let each = usual_ms.into_iter().chain(times.distance_ms());
        usual_ms = each.min_by(f64::total_cmp);
    }
    Ok((last_ms, usual_ms))
}

struct Group {
    /// The group's own records; between two of them, a dict of the commits by partition.
    entries: Py<PyList>,
    records: usize,
    commits: Option<Py<PyDict>>,
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
/// `name_of(key)` returns the group of a record that is neither a commit nor a classic group's;
/// None if it has none. Groups other than `only` are left out.
#[pyclass(module = "kafka_rebalance._core")]
pub struct PartitionLog {
    name_of: Py<PyAny>,
    only: Option<String>,
    new_record: Py<PyAny>,
    groups: Vec<Group>,
    by_name: FxHashMap<String, usize>,
    places: Vec<Place>,
    /// Maps the bytes of a commit's key, without its version, to an index in `places`.
    by_key: FxHashMap<Box<[u8]>, usize>,
    /// By topic id: the topic's name. Kafka 4.4 and later write topic ids in committed offsets.
    topic_names: FxHashMap<[u8; 16], Py<PyString>>,
    last_offset: i64,
    /// From this offset to the last one, the partition has no gap; see `WholeFrom`.
    #[pyo3(get)]
    whole_from: i64,
}

#[pymethods]
impl PartitionLog {
    #[new]
    #[pyo3(signature = (name_of, only=None))]
    fn new(py: Python<'_>, name_of: Py<PyAny>, only: Option<String>) -> PyResult<Self> {
        let records = py.import("kafka_rebalance.wire.group_records")?;
        Ok(Self {
            name_of,
            only,
            new_record: records.getattr("OffsetsRecord")?.unbind(),
            groups: Vec::new(),
            by_name: FxHashMap::default(),
            places: Vec::new(),
            by_key: FxHashMap::default(),
            topic_names: FxHashMap::default(),
            last_offset: -3,
            whole_from: 0,
        })
    }

    /// Adds `OffsetsRecord`s with ascending offsets; skips one whose offset equals the last one.
    fn add(&mut self, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = records.py();
        for record in records.try_iter()? {
            let record = record?;
            let fields = record.cast::<PyTuple>()?;
            let part = |at| fields.get_borrowed_item(at);
            let value: Option<Bound<'_, PyBytes>> = part(4)?.extract()?;
            let key: Bound<'_, PyBytes> = part(3)?.extract()?;
            let bytes = (key.as_bytes(), value.as_ref().map(|value| value.as_bytes()));
            let make = || Ok(record.clone());
            self.add_one(py, part(1)?.extract()?, part(2)?.extract()?, bytes, make)?;
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
    /// Adds a record with these bytes of its key and value, unless its offset is that of the record
    /// added last.
    fn add_one<'py>(
        &mut self,
        py: Python<'py>,
        offset: i64,
        time_ms: i64,
        (key, value): (&[u8], Option<&[u8]>),
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        if offset == self.last_offset {
            return Ok(());
        }
        if offset.saturating_sub(self.last_offset) > 2 {
            self.whole_from = offset;
        }
        self.last_offset = offset;
        if let [0, 0 | 1, place @ ..] = key {
            if let Some(value) = value {
                self.learn_name(py, key, value);
                self.commit(py, key, place, time_ms)?;
            }
            return Ok(());
        }
        let name = match decode_key(key) {
            Ok(Key::GroupMetadata { group_id }) => Some(group_id.to_owned()),
            Ok(_) => self
                .name_of
                .call1(py, (PyBytes::new(py, key),))?
                .extract(py)?,
            Err(_) => None,
        };
        if let Some(name) = name.filter(|name| self.only.as_ref().is_none_or(|only| only == name)) {
            let next = self.groups.len();
            let group = *self.by_name.entry(name).or_insert(next);
            if group == next {
                let (entries, records, commits) = (PyList::empty(py).unbind(), 0, None);
                self.groups.push(Group {
                    entries,
                    records,
                    commits,
                });
            }
            let group = &mut self.groups[group];
            group.entries.bind(py).append(make()?)?;
            group.records += 1;
            group.commits = None;
        }
        Ok(())
    }

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
                None => return Ok(()), // a wrong key, or a group without an earlier record
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
            partition: Maker::new(py)?.make(&topic, partition)?.unbind(),
            since: 0,
            times: Py::new(py, CommitTimes::new(0, 0, 0))?,
        }))
    }
}

/// Yields a `PartitionLog` for each partition in Arrow batches of records' columns, whose numbers
/// are i64s. The records may come in any order.
#[pyclass(module = "kafka_rebalance._core")]
pub struct PartitionLogs {
    batches: Vec<RecordBatch>,
    name_of: Py<PyAny>,
    /// By partition: the batch and the row of each record.
    places: BTreeMap<i64, Vec<(u32, u32)>>,
}

#[pymethods]
impl PartitionLogs {
    #[new]
    fn new(batches: Vec<Bound<'_, PyAny>>, name_of: Py<PyAny>) -> PyResult<Self> {
        let batches: Vec<_> = batches.iter().map(bulk::read).collect::<PyResult<_>>()?;
        let mut places = BTreeMap::<i64, Vec<_>>::new();
        for (at, batch) in (0..).zip(&batches) {
            for (row, &partition) in (0..).zip(numbers(batch, "partition")?) {
                places.entry(partition).or_default().push((at, row));
            }
        }
        Ok(Self {
            batches,
            name_of,
            places,
        })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<PartitionLog>> {
        let Some((partition, mut places)) = self.places.pop_first() else {
            return Ok(None);
        };
        let mut columns = Vec::new();
        for batch in &self.batches {
            let bytes = Records::of(batch).map_err(bulk::schema_error)?;
            columns.push((
                bytes,
                numbers(batch, "offset")?,
                numbers(batch, "timestamp")?,
            ));
        }
        let mut log = PartitionLog::new(py, self.name_of.clone_ref(py), None)?;
        let new_record = log.new_record.clone_ref(py).into_bound(py);
        // If the records are in order already, the sort takes one pass.
        places.sort_by_key(|&(batch, row)| columns[batch as usize].1[row as usize]);
        for (batch, row) in places {
            let ((bytes, offsets, times), row) = (&columns[batch as usize], row as usize);
            let ([key, value], offset, time_ms) = (bytes.get(row), offsets[row], times[row]);
            let key = key.unwrap_or_default();
            let make = || {
                let value = value.map(|one| PyBytes::new(py, one));
                new_record.call1((partition, offset, time_ms, PyBytes::new(py, key), value))
            };
            log.add_one(py, offset, time_ms, (key, value), make)?;
        }
        Ok(Some(log))
    }
}

fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a [i64]> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
    let wrong = || PyTypeError::new_err(format!("{name}: not a column of i64s"));
    Ok(column.ok_or_else(wrong)?.values())
}
