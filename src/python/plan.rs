// SPDX-License-Identifier: Apache-2.0
//! Computes a plan in Rust. Its steps and rounds stay in columns until Python asks for one.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use rustc_hash::FxHashMap;

use super::assign::{Columns, Partitions, named, native};
use super::by_name;
use super::group::Interned;
use super::interrupt::interruptibly;
use super::possible::{Found, Possible};
use crate::group::model::TopicPartition;
use crate::group::ownership::Assignment;
use crate::plans::changes::change::Change;
use crate::plans::changes::made_up::{Draw, MadeUp};
use crate::plans::changes::members::AddMembers;
use crate::plans::figures::rack_share;
use crate::plans::rebalance_plan::{Played, at};
use crate::plans::rounds::{Kept, Tally};

/// A change, read from one of the classes in `changes.Change`.
struct AnyChange(Change);

impl<'py> FromPyObject<'_, 'py> for AnyChange {
    type Error = PyErr;

    fn extract(change: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = |name| -> PyResult<Option<String>> { change.getattr(name)?.extract() };
        let class = change.get_type().name()?;
        let read = match class.to_str()? {
            "AddMembers" => Change::AddMembers(AddMembers {
                count: change.getattr("count")?.extract()?,
                like: text("like")?,
                rack: text("rack")?,
                client_id: text("client_id")?,
                instance_id: text("instance_id")?,
            }),
            "RemoveMembers" => {
                let count: Option<u32> = change.getattr("count")?.extract()?;
                let member = text("member")?.map(Change::RemoveMember);
                let rack = text("rack")?.map(Change::RemoveRack);
                let client = text("client_id")?.map(Change::RemoveClient);
                let one = count.map(Change::RemoveLast).or(member).or(rack).or(client);
                one.ok_or_else(|| PyTypeError::new_err("nobody is removed"))?
            }
            "AddPartitions" => Change::AddPartitions {
                topic: change.getattr("topic")?.extract()?,
                partitions: change.getattr("partitions")?.extract()?,
            },
            "AddTopics" => Change::AddTopics(change.getattr("topics")?.extract()?),
            "RemoveTopics" => Change::RemoveTopics(change.getattr("topics")?.extract()?),
            "Resubscribe" => Change::Resubscribe {
                topics: change.getattr("topics")?.extract()?,
                member: text("member")?,
            },
            "SwitchAssignor" => Change::SwitchAssignor(change.getattr("assignor")?.extract()?),
            "BounceMembers" => Change::BounceMembers {
                member: text("member")?,
                is_static: change.getattr("static")?.extract()?,
            },
            other => return Err(PyTypeError::new_err(other.to_owned())),
        };
        Ok(Self(read))
    }
}

/// The fields of `made_up.Draw`.
#[derive(FromPyObject)]
pub struct DrawFields {
    number: u32,
    of: u32,
    instead_of: Vec<NewcomerFields>,
}

/// The fields of `made_up.Newcomer` that a draw needs.
#[derive(FromPyObject)]
struct NewcomerFields {
    member_id: String,
    name: String,
}

/// The fields of `made_up.Newcomer`.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
#[derive(Clone)]
pub struct Newcomer {
    member_id: String,
    name: String,
    basis: &'static str,
    is_static: bool,
}

/// The computed steps of a plan, and their names as Python objects.
struct Steps {
    kept: Kept,
    ids: Vec<Py<PyString>>,
    topic_names: Vec<String>,
    topics: Py<PyTuple>,
}

impl Steps {
    fn columns(&self, py: Python<'_>, step: usize, answer: &Assignment) -> Columns {
        let members = &self.kept.steps[step].members;
        let anomalies = named(
            &answer.anomalies,
            |t| self.topic_names[t as usize].clone(),
            |m| self.kept.ids[members[m as usize] as usize].clone(),
        );
        Columns::of(py, &self.topics, answer, anomalies)
    }
}

#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct Plan {
    steps: Arc<Steps>,
    #[pyo3(get)]
    newcomers: Vec<Newcomer>,
    #[pyo3(get)]
    places_guessed: bool,
    #[pyo3(get)]
    moves: u64,
    #[pyo3(get)]
    rack_share_after: Option<f64>,
    /// The partitions that the members of the last step hold at the end.
    #[pyo3(get)]
    after: Py<Columns>,
    /// None if the plan is a draw.
    #[pyo3(get)]
    possible: Option<Py<Possible>>,
}

#[pymethods]
impl Plan {
    #[getter]
    fn steps(&self) -> Vec<PlanStep> {
        let steps = 0..self.steps.kept.steps.len();
        let step = |at| PlanStep {
            steps: self.steps.clone(),
            at,
        };
        steps.map(step).collect()
    }

    #[getter]
    fn unavailable(&self, py: Python<'_>) -> PyResult<Unavailable> {
        let mut counts: FxHashMap<TopicPartition, u32> = FxHashMap::default();
        let mut partitions = Vec::new();
        let rounds = self.steps.kept.steps.iter().flat_map(|step| &step.rounds);
        for &tp in rounds.flat_map(|round| &round.unavailable) {
            let count = counts.entry(tp).or_insert(0);
            if *count == 0 {
                partitions.push(tp);
            }
            *count += 1;
        }
        Ok(Unavailable {
            rounds: native(py, partitions.iter().map(|tp| counts[tp])),
            partitions: Py::new(py, Partitions::of(py, &self.steps.topics, &partitions))?,
        })
    }
}

/// Partitions that nobody reads in some round, and the number of these rounds for each (u32s).
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Unavailable {
    partitions: Py<Partitions>,
    rounds: Py<PyBytes>,
}

#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct PlanStep {
    steps: Arc<Steps>,
    at: usize,
}

impl PlanStep {
    fn step(&self) -> &crate::plans::rounds::Step {
        &self.steps.kept.steps[self.at]
    }
}

#[pymethods]
impl PlanStep {
    #[getter]
    fn change(&self) -> Option<usize> {
        self.step().change
    }

    #[getter]
    fn cause(&self) -> Option<&str> {
        self.step().cause.as_deref()
    }

    #[getter]
    fn settled(&self) -> bool {
        self.step().settled
    }

    #[getter]
    fn member_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let members = self.step().members.iter();
        PyTuple::new(py, members.map(|&m| &self.steps.ids[m as usize]))
    }

    /// The new id of a member that came back in this step.
    #[getter]
    fn came_back(&self) -> Option<&Py<PyString>> {
        let (new, _) = self.step().renamed?;
        Some(&self.steps.ids[new as usize])
    }

    /// The id that the member of `came_back` had when the plan began.
    #[getter]
    fn came_back_for(&self) -> Option<&Py<PyString>> {
        let (_, old) = self.step().renamed?;
        Some(&self.steps.ids[old as usize])
    }

    #[getter]
    fn waiting(&self, py: Python<'_>) -> Partitions {
        Partitions::of(py, &self.steps.topics, &self.step().waiting)
    }

    #[getter]
    fn leaderless(&self, py: Python<'_>) -> Partitions {
        Partitions::of(py, &self.steps.topics, &self.step().leaderless)
    }

    #[getter]
    fn rounds(&self) -> Vec<PlanRound> {
        let rounds = 0..self.step().rounds.len();
        let round = |at| PlanRound {
            steps: self.steps.clone(),
            step: self.at,
            at,
        };
        rounds.map(round).collect()
    }
}

#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct PlanRound {
    steps: Arc<Steps>,
    step: usize,
    at: usize,
}

/// The fields of `ownership.Delta`.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Delta {
    kept: Py<Columns>,
    revoked: Py<Columns>,
    gained: Py<Columns>,
    transferring: Py<Columns>,
}

impl PlanRound {
    fn round(&self) -> &crate::plans::rounds::Round {
        &self.steps.kept.steps[self.step].rounds[self.at]
    }

    fn columns(&self, py: Python<'_>, answer: &Assignment) -> Columns {
        self.steps.columns(py, self.step, answer)
    }
}

#[pymethods]
impl PlanRound {
    #[getter]
    fn generation_id(&self) -> i32 {
        self.round().generation_id
    }

    #[getter]
    fn is_eager(&self) -> bool {
        self.round().is_eager
    }

    #[getter]
    fn moves(&self) -> u64 {
        self.round().moves
    }

    #[getter]
    fn held(&self, py: Python<'_>) -> Columns {
        self.columns(py, &self.round().held)
    }

    #[getter]
    fn assignment(&self, py: Python<'_>) -> Columns {
        self.columns(py, &self.round().assignment)
    }

    #[getter]
    fn delta(&self, py: Python<'_>) -> PyResult<Delta> {
        let delta = self.round().delta();
        let part = |part| Py::new(py, self.columns(py, part));
        Ok(Delta {
            kept: part(&delta.kept)?,
            revoked: part(&delta.revoked)?,
            gained: part(&delta.gained)?,
            transferring: part(&delta.transferring)?,
        })
    }

    /// What another member must first give up; None in the last round of a step.
    #[getter]
    fn withheld(&self, py: Python<'_>) -> Option<Columns> {
        let later = self.steps.kept.steps[self.step].rounds.get(self.at + 1)?;
        Some(self.columns(py, &self.round().withheld(later)))
    }

    #[getter]
    fn unavailable(&self, py: Python<'_>) -> Partitions {
        Partitions::of(py, &self.steps.topics, &self.round().unavailable)
    }
}

/// Plans changes with the made-up ids of a draw. None if a change does not fit Rust's number types;
/// such a change is an error, which the Python implementation reports.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    group: &Bound<'_, Interned>,
    generation_id: Option<i32>,
    assignor: &str,
    changes: &Bound<'_, PyAny>,
    draw: DrawFields,
) -> PyResult<Option<Plan>> {
    let (Ok(changes), Some(assignor)) = (
        changes.extract::<Vec<AnyChange>>(),
        by_name(py, Some(assignor))?,
    ) else {
        return Ok(None);
    };
    let changes: Vec<Change> = changes.into_iter().map(|AnyChange(one)| one).collect();
    let spec = group.get().spec();
    let instead_of = draw.instead_of.into_iter();
    let instead_of = instead_of.map(|one| (one.member_id, one.name));
    let draw = Draw {
        number: draw.number,
        of: draw.of,
        instead_of: instead_of.collect(),
    };
    let is_draw = draw.number > 0;
    // One change may cause as many rebalances as there are members, or more.
    let size = spec.size() * (spec.members.len() + 1);
    let (played, after, share, found) = interruptibly(py, size, |interrupt| {
        let tally = Tally::keeping(interrupt);
        let ids = MadeUp::new(spec.group_id, draw);
        let played = Played::of(spec, assignor, &changes, generation_id, ids, tally);
        let mut played = played.map_err(|(place, error)| at(error, place))?;
        let last = played.draft.spec();
        let (after, share) = (crate::plans::rounds::held_by_all(&last), rack_share(&last));
        drop(last);
        let found = (!is_draw).then(|| Found::of(&played.as_it_began(spec)));
        let topics = played
            .draft
            .topics
            .iter()
            .map(|topic| topic.name.to_string());
        let topic_names: Vec<String> = topics.collect();
        let (made, places_guessed) = (played.ids.made, played.ids.places_guessed);
        let (kept, moves) = (played.tally.kept.unwrap_or_default(), played.tally.moves);
        let partly = (made, places_guessed, topic_names, kept, moves);
        Ok((partly, after, share, found))
    })?;
    let (made, places_guessed, topic_names, kept, moves) = played;
    let names = kept.ids.iter().map(|id| PyString::new(py, id).unbind());
    let steps = Steps {
        ids: names.collect(),
        topics: PyTuple::new(py, &topic_names)?.unbind(),
        topic_names,
        kept,
    };
    let last = steps.kept.steps.len() - 1;
    let columns = |answer: &Assignment| steps.columns(py, last, answer);
    let possible = found.map(|found| found.record(py, |answer| Ok(columns(answer))));
    let newcomers = made.into_iter().map(|made| Newcomer {
        member_id: made.member_id,
        name: made.name,
        basis: made.basis.name(),
        is_static: made.is_static,
    });
    Ok(Some(Plan {
        newcomers: newcomers.collect(),
        places_guessed,
        moves,
        rack_share_after: share,
        after: Py::new(py, columns(&after))?,
        possible: possible
            .transpose()?
            .map(|one| Py::new(py, one))
            .transpose()?,
        steps: Arc::new(steps),
    }))
}
