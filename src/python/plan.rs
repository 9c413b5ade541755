// SPDX-License-Identifier: Apache-2.0
//! Computes a plan for `plans/rebalance_plan.py`. Its rounds (rebalances) stay in Rust until Python
//! reads them.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use rustc_hash::FxHashMap;
use uuid::Uuid;

use super::arguments::{by_name, listed};
use super::assign::{Columns, Partitions, native};
use super::group::Interned;
use super::interrupt::interruptibly;
use super::possible::Possible;
use crate::group::model::{MemberId, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::plans::changes::change::Change;
use crate::plans::changes::made_up::{self, Draw, MadeUp};
use crate::plans::changes::members::AddMembers;
use crate::plans::figures::rack_share;
use crate::plans::possible::optimum;
use crate::plans::rebalance_plan::{Played, at};
use crate::plans::rounds::{Kept, Round, Step, Tally, held_by_all};
use crate::plans::samples;

/// A change, read from an object of one of the subclasses of Python's `changes.Change`.
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
            "AddTopics" => Change::AddTopics(listed(&change.getattr("topics")?)?),
            "RemoveTopics" => Change::RemoveTopics(listed(&change.getattr("topics")?)?),
            "Resubscribe" => Change::Resubscribe {
                topics: listed(&change.getattr("topics")?)?,
                member: text("member")?,
            },
            "SwitchAssignor" => Change::SwitchAssignor(change.getattr("assignor")?.extract()?),
            "BounceMembers" => Change::BounceMembers {
                member: text("member")?,
                is_static: change.getattr("static")?.extract()?,
                away_ms: change.getattr("away_ms")?.extract()?,
            },
            other => return Err(PyTypeError::new_err(other.to_owned())),
        };
        Ok(Self(read))
    }
}

/// Reads a `made_up.Draw` (a run of the plan with other made-up ids).
fn read_draw(draw: &Bound<'_, PyAny>) -> PyResult<Draw> {
    let names = |made: &Bound<'_, PyAny>| {
        let part = |name| -> PyResult<String> { made.getattr(name)?.extract() };
        Ok((part("member_id")?, part("name")?))
    };
    let instead_of: Vec<Bound<'_, PyAny>> = listed(&draw.getattr("instead_of")?)?;
    Ok(Draw {
        number: draw.getattr("number")?.extract()?,
        of: draw.getattr("of")?.extract()?,
        instead_of: instead_of.iter().map(names).collect::<PyResult<_>>()?,
    })
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

/// A plan that Rust computed, and its names as Python objects.
struct Computed {
    kept: Kept,
    /// The ids in `kept.ids`, in order, as Python objects.
    ids: Vec<Py<PyString>>,
    topic_names: Vec<String>,
    topics: Py<PyTuple>,
    /// The partitions that the members of the last step hold at the end of the plan.
    after: Assignment,
    /// The index of each of these members in the given group; None for a new member.
    origins: Vec<Option<MemberId>>,
}

impl Computed {
    /// Returns `answer`, an assignment of the members of `step`, as columns.
    fn columns(&self, py: Python<'_>, step: &Step, answer: &Assignment) -> Columns {
        let topic = |t: u32| &*self.topic_names[t as usize];
        let member = |m: u32| &*self.kept.ids[step.members[m as usize] as usize];
        Columns::of(py, &self.topics, answer, topic, member)
    }

    fn partitions(&self, py: Python<'_>, partitions: &[TopicPartition]) -> Partitions {
        Partitions::of(py, &self.topics, partitions)
    }
}

/// A plan whose rounds stay in Rust until Python reads them.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct Plan {
    computed: Arc<Computed>,
    #[pyo3(get)]
    steps: Vec<Py<PlanStep>>,
    #[pyo3(get)]
    newcomers: Vec<Newcomer>,
    #[pyo3(get)]
    places_guessed: bool,
    #[pyo3(get)]
    moves: u64,
    #[pyo3(get)]
    rack_share_after: Option<f64>,
    /// None if the plan is a draw: a run of the plan with other made-up ids.
    #[pyo3(get)]
    possible: Option<Py<Possible>>,
}

#[pymethods]
impl Plan {
    /// Returns the partitions that the members of the last step hold at the end of the plan.
    #[getter]
    fn after(&self, py: Python<'_>) -> Columns {
        let steps = &self.computed.kept.steps;
        let last = &steps[steps.len() - 1];
        self.computed.columns(py, last, &self.computed.after)
    }

    #[getter]
    fn unavailable(&self, py: Python<'_>) -> PyResult<Unavailable> {
        let mut counts: FxHashMap<TopicPartition, u32> = FxHashMap::default();
        let mut partitions = Vec::new();
        let steps = &self.computed.kept.steps;
        let rounds = steps.iter().flat_map(|step| &step.rounds);
        for &tp in rounds.flat_map(|round| &round.unavailable) {
            let count = counts.entry(tp).or_insert(0);
            if *count == 0 {
                partitions.push(tp);
            }
            *count += 1;
        }
        Ok(Unavailable {
            rounds: native(py, partitions.iter().map(|tp| counts[tp])),
            partitions: Py::new(py, self.computed.partitions(py, &partitions))?,
        })
    }
}

/// Partitions that no member reads in some rounds; `rounds` holds the number of these rounds for
/// each partition, as u32s in native byte order.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Unavailable {
    partitions: Py<Partitions>,
    rounds: Py<PyBytes>,
}

/// One event of a plan, and the rounds that follow it.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct PlanStep {
    change: Option<usize>,
    cause: Option<String>,
    settled: bool,
    member_ids: Py<PyTuple>,
    /// The new id of a member that came back in this step.
    came_back: Option<Py<PyString>>,
    /// The id that the member of `came_back` had when the plan began.
    came_back_for: Option<Py<PyString>>,
    waiting: Py<Partitions>,
    leaderless: Py<Partitions>,
    rounds: Vec<Py<PlanRound>>,
}

impl PlanStep {
    fn of(py: Python<'_>, computed: &Arc<Computed>, at: usize) -> PyResult<Py<Self>> {
        let step = &computed.kept.steps[at];
        let id = |number: u32| &computed.ids[number as usize];
        let partitions = |some| Py::new(py, computed.partitions(py, some));
        let round = |round| PlanRound {
            computed: computed.clone(),
            step: at,
            round,
            generation_id: step.rounds[round].generation_id,
            is_eager: step.rounds[round].is_eager,
        };
        let rounds = (0..step.rounds.len()).map(|at| Py::new(py, round(at)));
        let (new, old) = step.renamed.unzip();
        let step = Self {
            change: step.change,
            cause: step.cause.clone(),
            settled: step.settled,
            member_ids: PyTuple::new(py, step.members.iter().map(|&m| id(m)))?.unbind(),
            came_back: new.map(|new| id(new).clone_ref(py)),
            came_back_for: old.map(|old| id(old).clone_ref(py)),
            waiting: partitions(&step.waiting)?,
            leaderless: partitions(&step.leaderless)?,
            rounds: rounds.collect::<PyResult<_>>()?,
        };
        Py::new(py, step)
    }
}

/// One rebalance of a plan; `step` and `round` are its indices in `computed`.
#[pyclass(frozen, module = "kafka_rebalance._core")]
pub struct PlanRound {
    computed: Arc<Computed>,
    step: usize,
    round: usize,
    #[pyo3(get)]
    generation_id: i32,
    #[pyo3(get)]
    is_eager: bool,
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
    fn step(&self) -> &Step {
        &self.computed.kept.steps[self.step]
    }

    fn round(&self) -> &Round {
        &self.step().rounds[self.round]
    }

    fn columns(&self, py: Python<'_>, answer: &Assignment) -> Columns {
        self.computed.columns(py, self.step(), answer)
    }
}

#[pymethods]
impl PlanRound {
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

    /// Returns, by new owner, the partitions that another member must revoke first. None in the
    /// last round of a step.
    #[getter]
    fn withheld(&self, py: Python<'_>) -> Option<Columns> {
        let later = self.step().rounds.get(self.round + 1)?;
        Some(self.columns(py, &self.round().withheld(later)))
    }

    #[getter]
    fn unavailable(&self, py: Python<'_>) -> Partitions {
        self.computed.partitions(py, &self.round().unavailable)
    }
}

/// The result of a plan before its conversion to Python objects.
struct Outcome {
    newcomers: Vec<made_up::Newcomer>,
    places_guessed: bool,
    moves: u64,
    kept: Kept,
    topic_names: Vec<String>,
    after: Assignment,
    origins: Vec<Option<MemberId>>,
    rack_share_after: Option<f64>,
    /// The best possible result and its assignment; None if the plan is a draw.
    best: Option<(optimum::Possible, Assignment)>,
}

impl Outcome {
    fn of(spec: &GroupSpec, mut played: Played, is_draw: bool) -> Self {
        let last = played.draft.spec();
        let (after, rack_share_after) = (held_by_all(&played.draft), rack_share(&last));
        drop(last);
        let origins = played.draft.members.iter().map(|one| one.origin).collect();
        let best = (!is_draw).then(|| {
            let began = played.as_it_began(spec);
            let possible = optimum::Possible::of(&began);
            let assignment = possible.assignment(&began);
            (possible, assignment)
        });
        let topics = played.draft.topics.iter();
        Self {
            topic_names: topics.map(|topic| topic.name.to_string()).collect(),
            newcomers: played.ids.made,
            places_guessed: played.ids.places_guessed,
            moves: played.tally.moves,
            kept: played.tally.kept.unwrap_or_default(),
            after,
            origins,
            rack_share_after,
            best,
        }
    }

    fn record(self, py: Python<'_>) -> PyResult<Plan> {
        let names = self
            .kept
            .ids
            .iter()
            .map(|id| PyString::new(py, id).unbind());
        let computed = Arc::new(Computed {
            ids: names.collect(),
            topics: PyTuple::new(py, &self.topic_names)?.unbind(),
            topic_names: self.topic_names,
            kept: self.kept,
            after: self.after,
            origins: self.origins,
        });
        let steps = &computed.kept.steps;
        let last = &steps[steps.len() - 1];
        let possible = self.best.map(|(found, best)| {
            let best = computed.columns(py, last, &best);
            Py::new(py, Possible::of(py, &found, &computed.topic_names, best)?)
        });
        let newcomers = self.newcomers.into_iter().map(|made| Newcomer {
            member_id: made.member_id,
            name: made.name,
            basis: made.basis.name(),
            is_static: made.is_static,
        });
        let numbers = 0..steps.len();
        Ok(Plan {
            steps: numbers
                .map(|at| PlanStep::of(py, &computed, at))
                .collect::<PyResult<_>>()?,
            newcomers: newcomers.collect(),
            places_guessed: self.places_guessed,
            moves: self.moves,
            rack_share_after: self.rack_share_after,
            possible: possible.transpose()?,
            computed: computed.clone(),
        })
    }
}

/// Reads changes. Returns None if one of them does not fit Rust's types.
fn read_changes(changes: &Bound<'_, PyAny>) -> Option<Vec<Change>> {
    let changes: Vec<AnyChange> = listed(changes).ok()?;
    Some(changes.into_iter().map(|AnyChange(one)| one).collect())
}

/// Plans changes with the made-up ids of `draw`. Returns None if a change does not fit Rust's
/// types; then the Python implementation raises the error.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    group: &Bound<'_, Interned>,
    generation_id: Option<i32>,
    assignor: &str,
    changes: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = read_draw)] draw: Draw,
) -> PyResult<Option<Plan>> {
    let assignor = by_name(py, assignor)?;
    let Some(changes) = read_changes(changes) else {
        return Ok(None);
    };
    let spec = group.get().spec();
    let is_draw = draw.number > 0;
    // One change may cause a rebalance for each member, or more.
    let size = spec.size() * (spec.members.len() + 1);
    let outcome = interruptibly(py, size, |interrupt| {
        let tally = Tally::keeping(interrupt);
        let ids = MadeUp::new(spec.group_id, draw);
        let played = Played::of(spec, assignor, &changes, generation_id, ids, tally);
        let played = played.map_err(|(place, error)| at(error, place))?;
        Ok(Outcome::of(spec, played, is_draw))
    })?;
    outcome.record(py).map(Some)
}

/// Plays one change that is one event, or the next rebalance if `changes` is empty; `made` is the
/// number of ids that were made up for the group before. Returns whether the group rebalanced, and
/// its size, as `never_ends.work`. Returns None if the change does not fit Rust's types or the
/// assignor fails: Python then plays it.
#[pyfunction]
pub fn play_alone(
    py: Python<'_>,
    group: &Bound<'_, Interned>,
    generation_id: Option<i32>,
    assignor: &str,
    changes: &Bound<'_, PyAny>,
    made: u32,
) -> PyResult<Option<(bool, u64)>> {
    let assignor = by_name(py, assignor)?;
    let Some(changes) = read_changes(changes) else {
        return Ok(None);
    };
    let spec = group.get().spec();
    interruptibly(py, spec.size(), |interrupt| {
        let mut ids = MadeUp::new(spec.group_id, Draw::default());
        ids.count = made;
        let tally = Tally::of_moves(interrupt);
        let played = Played::of(spec, assignor, &changes, generation_id, ids, tally).ok();
        Ok(played.map(|Played { draft, tally, .. }| {
            let topics = draft
                .members
                .iter()
                .map(|member| member.topics.len() as u64);
            (tally.rounds > 0, draft.total() + topics.sum::<u64>())
        }))
    })
}

/// Returns Python's `uuid.uuid5(uuid.NAMESPACE_OID, name)`; the module `uuid` imports slowly.
#[pyfunction]
pub fn uuid5(name: &str) -> [u8; 16] {
    *Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).as_bytes()
}

/// The fields of `samples::Ends`. The owners of partition i are at `offsets[i]..offsets[i + 1]`. An
/// owner is an index of the given group's members, or `u32::MAX` for a new member. `moved` and
/// `depends` hold the results of the functions of `samples::Ends` with these names.
#[pyclass(frozen, get_all, module = "kafka_rebalance._core")]
pub struct Ends {
    moves: Vec<u64>,
    depends: Py<Partitions>,
    partitions: Py<Partitions>,
    planned: Py<PyBytes>,
    moved: Py<PyBytes>,
    offsets: Py<PyBytes>,
    owners: Py<PyBytes>,
    draws: Py<PyBytes>,
}

/// Runs the changes of `plan`, which must be a plan of this group, with the made-up ids of each
/// draw, and counts who owns each partition at the end.
#[pyfunction]
pub fn sample(
    py: Python<'_>,
    plan: &Bound<'_, Plan>,
    group: &Bound<'_, Interned>,
    generation_id: Option<i32>,
    assignor: &str,
    changes: &Bound<'_, PyAny>,
    draws: &Bound<'_, PyAny>,
) -> PyResult<Ends> {
    let assignor = by_name(py, assignor)?;
    let changes = read_changes(changes).ok_or_else(|| PyTypeError::new_err("not changes"))?;
    let draws: Vec<Bound<'_, PyAny>> = listed(draws)?;
    let draws: Vec<Draw> = draws.iter().map(read_draw).collect::<PyResult<_>>()?;
    let (spec, planned) = (group.get().spec(), &*plan.get().computed);
    let size = spec.size() * (spec.members.len() + 1) * draws.len();
    let (ends, moved) = interruptibly(py, size, |interrupt| {
        let play = |draw| {
            let tally = Tally::of_moves(interrupt);
            let ids = MadeUp::new(spec.group_id, draw);
            let played = Played::of(spec, assignor, &changes, generation_id, ids, tally);
            played.map_err(|(place, error)| at(error, place))
        };
        let names = planned.topic_names.iter().map(|name| &**name);
        let mut ends = samples::Ends::of_plan(names, &planned.after, &planned.origins);
        for draw in draws {
            ends.add(&play(draw)?);
        }
        let moved = ends.moved(spec);
        Ok((ends, moved))
    })?;
    let topics = PyTuple::new(py, &ends.topics)?.unbind();
    let offsets = ends.owners.iter().scan(0, |end, owners| {
        *end += owners.len() as u32;
        Some(*end)
    });
    let pairs = || ends.owners.iter().flatten();
    let partitions = |some: &[_]| Py::new(py, Partitions::of(py, &topics, some));
    Ok(Ends {
        depends: partitions(&ends.depends())?,
        partitions: partitions(&ends.partitions)?,
        planned: native(py, ends.planned.iter().copied()),
        moved: native(py, moved.into_iter()),
        offsets: native(py, std::iter::once(0).chain(offsets)),
        owners: native(py, pairs().map(|pair| pair.0)),
        draws: native(py, pairs().map(|pair| pair.1)),
        moves: ends.moves,
    })
}
