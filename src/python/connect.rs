// SPDX-License-Identifier: Apache-2.0
//! Runs Connect's assignors for `assignors/connect/__init__.py`: converts its dataclasses into
//! numbers, and the answers back into dataclasses.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;

use super::arguments::{exception, listed, raise};
use crate::assignors::connect::incremental::{ConnectSpec, Memory};
use crate::assignors::connect::work::{
    Names, TaskId, Work, WorkerId, configured, connector_of, task,
};
use crate::assignors::connect::{eager, incremental};

/// Names, numbered in the order in which they first appear. A name's number is found by the address
/// of its Python object, so that no string is hashed: a name that occurs a thousand times is
/// usually one object. Equal names in two objects have two numbers, but one rank.
#[derive(Default)]
struct Numbering<'py> {
    numbers: FxHashMap<*mut PyObject, u32>,
    objects: Vec<Bound<'py, PyString>>,
    texts: Vec<PyBackedStr>,
}

impl<'py> Numbering<'py> {
    fn number(&mut self, name: Bound<'py, PyString>) -> PyResult<u32> {
        if let Some(&number) = self.numbers.get(&name.as_ptr()) {
            return Ok(number);
        }
        let number = self.objects.len() as u32;
        self.numbers.insert(name.as_ptr(), number);
        self.texts.push(name.extract()?);
        self.objects.push(name);
        Ok(number)
    }

    fn all(&mut self, names: Vec<Bound<'py, PyString>>) -> PyResult<Vec<u32>> {
        names.into_iter().map(|name| self.number(name)).collect()
    }

    fn names(&self) -> Names<'_> {
        Names::of(self.texts.iter().map(|text| &**text))
    }

    /// Returns, by number, the rank of its name; equal names have equal ranks.
    fn ranks(&self, names: &Names) -> Vec<u32> {
        self.texts.iter().map(|text| names.rank(text)).collect()
    }

    /// Returns, by rank, the Python object of the name.
    fn by_rank(&self, ranks: &[u32]) -> FxHashMap<u32, Bound<'py, PyString>> {
        let ranks = ranks.iter().copied();
        ranks.zip(self.objects.iter().cloned()).collect()
    }
}

/// All names and tasks of a call.
#[derive(Default)]
struct Input<'py> {
    connectors: Numbering<'py>,
    workers: Numbering<'py>,
    tasks: Vec<(TaskId, Bound<'py, PyTuple>)>,
}

impl<'py> Input<'py> {
    fn work(&mut self, work: &Bound<'py, PyAny>) -> PyResult<Work> {
        let objects: Vec<Bound<'py, PyTuple>> = field_list(work, "tasks")?;
        let mut tasks = Vec::with_capacity(objects.len());
        self.tasks.reserve(objects.len());
        for object in objects {
            let (connector, number): (Bound<'py, PyString>, u32) = object.extract()?;
            let id = task(self.connectors.number(connector)?, number);
            tasks.push(id);
            self.tasks.push((id, object));
        }
        Ok(Work {
            connectors: self.connectors.all(field_list(work, "connectors")?)?,
            tasks,
        })
    }

    fn config(&mut self, config: &Bound<'py, PyMapping>) -> PyResult<TaskCounts> {
        let number = |item: Bound<'py, PyAny>| {
            let (connector, count) = item.extract()?;
            Ok((self.connectors.number(connector)?, count))
        };
        config.items()?.iter().map(number).collect()
    }
}

fn ranked(work: &mut Work, ranks: &[u32]) {
    all_ranked(&mut work.connectors, ranks);
    for id in &mut work.tasks {
        *id = task(ranks[connector_of(*id) as usize], *id as u32);
    }
}

/// Returns all configured work. `config` contains the numbers of names; the result, their ranks.
fn target(config: TaskCounts, ranks: &[u32]) -> Work {
    let ranked = config.into_iter();
    configured(ranked.map(|(c, count)| (ranks[c as usize], count)))
}

fn all_ranked(ids: &mut [u32], ranks: &[u32]) {
    for id in ids {
        *id = ranks[*id as usize];
    }
}

/// Converts ranks back into names. A `Task` that came from Python is returned as the same object.
struct Output<'py> {
    connectors: FxHashMap<u32, Bound<'py, PyString>>,
    workers: FxHashMap<u32, Bound<'py, PyString>>,
    tasks: FxHashMap<TaskId, Bound<'py, PyTuple>>,
    task: Bound<'py, PyType>,
    work: Bound<'py, PyType>,
}

const HERE: &str = "kafka_rebalance.assignors.connect";
static WORK: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TASK: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static MEMORY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static RESULT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl<'py> Output<'py> {
    fn of(
        py: Python<'py>,
        input: Input<'py>,
        connectors: &[u32],
        workers: &[u32],
    ) -> PyResult<Self> {
        let class = TASK.import(py, HERE, "Task")?.clone();
        let met = input.tasks.into_iter();
        let tasks = met.filter(|(_, object)| object.get_type().is(&class));
        let ranked = |id| task(connectors[connector_of(id) as usize], id as u32);
        Ok(Self {
            connectors: input.connectors.by_rank(connectors),
            workers: input.workers.by_rank(workers),
            tasks: tasks.map(|(id, object)| (ranked(id), object)).collect(),
            task: class,
            work: WORK.import(py, HERE, "Work")?.clone(),
        })
    }

    fn work(&self, work: &Work) -> PyResult<Bound<'py, PyAny>> {
        let py = self.work.py();
        let connectors = work.connectors.iter().map(|c| &self.connectors[c]);
        let tasks = work.tasks.iter().map(|id| match self.tasks.get(id) {
            Some(object) => Ok(object.clone().into_any()),
            None => self
                .task
                .call1((&self.connectors[&connector_of(*id)], *id as u32)),
        });
        let tasks: Vec<Bound<'py, PyAny>> = tasks.collect::<PyResult<_>>()?;
        let connectors: Vec<_> = connectors.collect();
        self.work
            .call1((PyTuple::new(py, connectors)?, PyTuple::new(py, tasks)?))
    }

    fn by_worker(&self, works: &[(WorkerId, Work)]) -> PyResult<Bound<'py, PyDict>> {
        let by_worker = PyDict::new(self.work.py());
        for (worker, work) in works {
            by_worker.set_item(&self.workers[worker], self.work(work)?)?;
        }
        Ok(by_worker)
    }

    fn ids(&self, ids: &[WorkerId]) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(self.work.py(), ids.iter().map(|id| &self.workers[id]))
    }

    fn memory(&self, memory: &Memory) -> PyResult<Bound<'py, PyAny>> {
        MEMORY.import(self.work.py(), HERE, "Memory")?.call1((
            self.work(&memory.assigned)?,
            self.work(&memory.revoked)?,
            memory.generation_id,
            self.ids(&memory.members)?,
            self.ids(&memory.candidates)?,
            memory.scheduled_rebalance_ms,
            memory.delay_ms,
            memory.revoked_in_previous,
            memory.revoking_rounds,
        ))
    }
}

/// Makes a `GroupError` at `spec` from the error of a value that does not fit Rust's types.
fn misfit(py: Python<'_>, error: PyErr) -> PyErr {
    exception(py, "GroupError", ("spec", error.value(py).to_string()))
}

/// By connector: its number, and how many tasks it has.
type TaskCounts = Vec<(u32, u32)>;

/// Reads the memory, the spec and the task counts. In the result, numbers stand for names, in the
/// order of first appearance; the caller replaces the numbers by ranks.
fn read<'py>(
    input: &mut Input<'py>,
    memory: &Bound<'py, PyAny>,
    spec: &Bound<'py, PyAny>,
) -> PyResult<(Memory, ConnectSpec, TaskCounts)> {
    let memory = Memory {
        assigned: input.work(&memory.getattr("assigned")?)?,
        revoked: input.work(&memory.getattr("revoked")?)?,
        generation_id: field(memory, "generation_id")?,
        members: input.workers.all(field_list(memory, "members")?)?,
        candidates: input.workers.all(field_list(memory, "candidates")?)?,
        scheduled_rebalance_ms: field(memory, "scheduled_rebalance_ms")?,
        delay_ms: field(memory, "delay_ms")?,
        revoked_in_previous: field(memory, "revoked_in_previous")?,
        revoking_rounds: field(memory, "revoking_rounds")?,
    };
    let mut running = Vec::new();
    for item in field::<Bound<'py, PyMapping>>(spec, "running")?
        .items()?
        .iter()
    {
        let (worker, work): (Bound<'py, PyString>, Bound<'py, PyAny>) = item.extract()?;
        running.push((input.workers.number(worker)?, input.work(&work)?));
    }
    let config = input.config(&field(spec, "config")?)?;
    let spec = ConnectSpec {
        running,
        target: Work::default(),
        max_delay_ms: field(spec, "max_delay_ms")?,
        generation_id: field(spec, "generation_id")?,
        last_completed_generation_id: field(spec, "last_completed_generation_id")?,
    };
    Ok((memory, spec, config))
}

/// Reads an attribute: a number, a flag or a mapping. An error names the attribute.
fn field<'py, T: FromPyObjectOwned<'py>>(of: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    of.getattr(name)?.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        PyTypeError::new_err(format!("{name}: {}", error.value(of.py())))
    })
}

fn field_list<'py, T: FromPyObjectOwned<'py>>(
    of: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Vec<T>> {
    listed(&of.getattr(name)?)
}

#[pyfunction]
pub fn connect_incremental<'py>(
    py: Python<'py>,
    memory: &Bound<'py, PyAny>,
    spec: &Bound<'py, PyAny>,
    now_ms: i64,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut input = Input::default();
    let read = read(&mut input, memory, spec);
    let (mut memory, mut spec, config) = read.map_err(|error| misfit(py, error))?;
    let (connectors, workers) = (input.connectors.names(), input.workers.names());
    let ranks = input.connectors.ranks(&connectors);
    let worker_ranks = input.workers.ranks(&workers);
    let answered = py.detach(|| {
        ranked(&mut memory.assigned, &ranks);
        ranked(&mut memory.revoked, &ranks);
        memory.assigned.sort();
        memory.revoked.sort();
        all_ranked(&mut memory.members, &worker_ranks);
        all_ranked(&mut memory.candidates, &worker_ranks);
        for (worker, work) in &mut spec.running {
            *worker = worker_ranks[*worker as usize];
            ranked(work, &ranks);
        }
        spec.target = target(config, &ranks);
        incremental::handle(&memory, &spec, now_ms, &connectors, &workers)
    });
    let (memory, answer) = answered.map_err(|error| raise(py, &error))?;
    drop((connectors, workers));
    let output = Output::of(py, input, &ranks, &worker_ranks)?;
    let result = RESULT.import(py, HERE, "Result")?.call1((
        output.by_worker(&answer.assigned)?,
        output.by_worker(&answer.revoked)?,
        answer.delay_ms,
        answer.scheduled_rebalance_ms,
    ))?;
    Ok((output.memory(&memory)?, result))
}

#[pyfunction]
pub fn connect_eager<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = listed)] workers: Vec<Bound<'py, PyString>>,
    config: &Bound<'py, PyMapping>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut input = Input::default();
    let read = || PyResult::Ok((input.workers.all(workers)?, input.config(config)?));
    let (mut workers, config) = read().map_err(|error| misfit(py, error))?;
    let names = input.connectors.names();
    let ranks = input.connectors.ranks(&names);
    let worker_ranks = input.workers.ranks(&input.workers.names());
    let works = py.detach(|| {
        all_ranked(&mut workers, &worker_ranks);
        let works = eager::assign(&names, &workers, &target(config, &ranks));
        workers.into_iter().zip(works).collect::<Vec<_>>()
    });
    drop(names);
    Output::of(py, input, &ranks, &worker_ranks)?.by_worker(&works)
}
