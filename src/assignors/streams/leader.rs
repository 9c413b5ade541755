// SPDX-License-Identifier: Apache-2.0
//! Mirror of `leader.py`: the answer of the leader of a classic Kafka Streams group in a rebalance.

use rustc_hash::FxHashMap;

use super::application::{
    Application, ByHost, LeaderAnswer, Partition, ProcessTasks, StreamThread, TaskId,
    ThreadAssignment, Topology, end_offset_sums, missing_sources,
};
use super::processes::{Held, StreamsProcess, id_set, sorted_by_id};
use super::{high_availability, legacy_sticky, threads};
use crate::error::GroupError;
use crate::group::lists::ascending;
use crate::java::hash_table::DEFAULT_SLOTS;
use crate::java::order::{compare_names, to_java_hash_order};

pub const NAME: &str = "stream";
const LEGACY_STICKY: &str = "legacy_sticky";
const STICKY: &str = "sticky";

const LATEST_VERSION: i32 = 11;
const MISSING_SOURCE: i32 = 1;
const ASSIGNMENT_ERROR: i32 = 3;
const SHUTDOWN_REQUESTED: i32 = 4;

/// Returns the answer of the leader; an error if Kafka's class throws.
pub fn assign(application: &Application) -> Result<LeaderAnswer, GroupError> {
    // 1.
    let mut members: Vec<&StreamThread> = application.threads.iter().collect();
    to_java_hash_order(&mut members, |one| one.member_id.as_str());
    let known = || members.iter().filter(|one| one.version <= LATEST_VERSION);
    // 2.
    if known().any(|one| one.error_code == SHUTDOWN_REQUESTED) {
        return Ok(refused(&members, SHUTDOWN_REQUESTED));
    }
    if missing_sources(application) {
        return Ok(refused(&members, MISSING_SOURCE));
    }
    // 3.
    let topology = Topology::new(application);
    let mut processes = processes(application, &members, &topology);
    let ends = end_offset_sums(application, &topology);
    for one in &mut processes {
        let owned = owned_tasks(one, &topology)?;
        one.had(&owned, &topology, ends.as_deref());
    }
    // 4.
    let lags_unknown = ends.is_none();
    let (probing, is_fallback) = to_processes(application, &mut processes, &topology, lags_unknown);
    let deadline = application.now_ms + application.settings.probing_rebalance_interval_ms;
    // 5. to 7.
    let owners = owners(&members, &topology);
    let version = known()
        .map(|one| one.version)
        .min()
        .unwrap_or(LATEST_VERSION);
    let supported = members.iter().map(|one| one.latest_supported_version);
    let versions = (
        version,
        supported
            .min()
            .unwrap_or(LATEST_VERSION)
            .min(LATEST_VERSION),
    );
    let mut answer = LeaderAnswer::default();
    let mut stable = known().count() == members.len();
    for one in &processes {
        let is_leader = one.process_id == application.leader_process_id;
        let deadline = (probing && is_leader).then_some(deadline);
        let public = application.assignor == STICKY;
        let Some(own) = thread_answers(one, &topology, &owners, deadline, public, versions) else {
            return Ok(refused(&members, ASSIGNMENT_ERROR));
        };
        stable &= own.iter().all(|(_, each)| each.next_rebalance_ms.is_none());
        answer.members.extend(own);
    }
    answer.stable = Some(stable);
    if !is_fallback {
        answer.probing_rebalance_needed = Some(probing);
        let tasks = processes
            .iter()
            .map(|one| (one.process_id, tasks(one, &topology)));
        answer.processes = Some(tasks.collect());
    }
    answer.partitions_by_host = by_host(&processes, &topology, Held::Active);
    answer.standby_partitions_by_host = by_host(&processes, &topology, Held::Standby);
    Ok(answer)
}

/// Returns the processes in the order of the leader's `HashMap`.
fn processes<'a>(
    application: &Application,
    members: &[&'a StreamThread],
    topology: &Topology,
) -> Vec<StreamsProcess<'a>> {
    let public = application.assignor == STICKY;
    let mut found: Vec<StreamsProcess> = Vec::new();
    let mut places = FxHashMap::default();
    for &one in members {
        let is_future = one.version > LATEST_VERSION;
        let id = if is_future {
            application.future_process_id
        } else {
            one.process_id
        };
        let place = *places.entry(id).or_insert_with(|| {
            found.push(StreamsProcess::new(id, topology, public));
            found.len() - 1
        });
        found[place].join(one, topology, is_future);
    }
    let order = id_set(&found, 0..found.len(), DEFAULT_SLOTS).into_iter();
    let mut found: Vec<Option<StreamsProcess>> = found.into_iter().map(Some).collect();
    order.filter_map(|place| found[place].take()).collect()
}

fn owned_tasks(process: &StreamsProcess, topology: &Topology) -> Result<Vec<u32>, GroupError> {
    let owned = process.threads.iter().flat_map(|one| &one.owned_partitions);
    let tasks: Vec<u32> = owned
        .clone()
        .filter_map(|(topic, p)| topology.task_of(topology.partition(topic, *p)?))
        .collect();
    if tasks.is_empty() && owned.count() > 0 {
        let problem = "no partition that a process owns belongs to a task";
        return Err(GroupError::assignor_throws(
            NAME,
            "IllegalStateException",
            problem,
        ));
    }
    Ok(tasks)
}

/// Runs the task assignor. Returns whether to probe, and whether the fallback assignor ran.
fn to_processes(
    application: &Application,
    processes: &mut [StreamsProcess],
    topology: &Topology,
    lags_unknown: bool,
) -> (bool, bool) {
    let settings = &application.settings;
    match application.assignor.as_str() {
        STICKY => legacy_sticky::assign(processes, topology, settings, false, true),
        LEGACY_STICKY => legacy_sticky::assign(processes, topology, settings, false, false),
        _ if lags_unknown => {
            legacy_sticky::assign(processes, topology, settings, true, false);
            return (true, true);
        }
        _ => {
            let probing = sorted_by_id(processes, |processes| {
                high_availability::assign(processes, topology, settings)
            });
            return (probing, false);
        }
    }
    (false, false)
}

/// Returns, by partition, the member that owns it; of several owners, the last one.
fn owners<'a>(members: &[&'a StreamThread], topology: &Topology) -> FxHashMap<Partition, &'a str> {
    let mut owners = FxHashMap::default();
    for one in members {
        for (topic, p) in &one.owned_partitions {
            if let Some(tp) = topology.partition(topic, *p) {
                owners.insert(tp, one.member_id.as_str());
            }
        }
    }
    owners
}

/// Runs steps 5 to 7 for a process. Returns None if no task is left for a thread.
fn thread_answers(
    process: &StreamsProcess,
    topology: &Topology,
    owners: &FxHashMap<Partition, &str>,
    mut deadline: Option<i64>,
    public: bool,
    versions: (i32, i32),
) -> Option<Vec<(String, ThreadAssignment)>> {
    // 5.
    let (order, active, standby) = on_threads(process, topology, public)?;
    let mut answers = Vec::new();
    for thread in order {
        // 6.
        let member_id = process.threads[thread].member_id.as_str();
        let is_owned = |task: u32| {
            let inputs = topology.inputs[task as usize].iter();
            let mut owners = inputs.filter_map(|tp| owners.get(tp));
            owners.any(|&owner| owner != member_id)
        };
        let (withheld, own): (Vec<u32>, Vec<u32>) =
            active[thread].iter().partition(|&&task| is_owned(task));
        let kept_open = withheld.iter().copied().filter(|&task| {
            process.previous_standby[task as usize] && topology.is_stateful[task as usize]
        });
        let standby = ascending(standby[thread].iter().copied().chain(kept_open));
        let inputs = |task: u32| {
            topology.inputs[task as usize]
                .iter()
                .map(move |&tp| (tp, task))
        };
        let mut pairs: Vec<(Partition, u32)> = own.into_iter().flat_map(inputs).collect();
        pairs.sort_unstable();
        // 7.
        let deadline = deadline.take();
        let id = |task: u32| topology.ids[task as usize];
        let answer = ThreadAssignment {
            partitions: pairs.iter().map(|&(tp, _)| topology.named(tp)).collect(),
            active_tasks: pairs.iter().map(|&(_, task)| id(task)).collect(),
            standby_tasks: standby.into_iter().map(id).collect(),
            next_rebalance_ms: if withheld.is_empty() {
                deadline
            } else {
                Some(0)
            },
            error_code: 0,
            version: versions.0,
            commonly_supported_version: versions.1,
        };
        answers.push((member_id.to_owned(), answer));
    }
    Some(answers)
}

/// The process's threads, sorted by member id, and the active and the standby tasks of each.
type OnThreads = (Vec<usize>, Vec<Vec<u32>>, Vec<Vec<u32>>);

fn on_threads(process: &StreamsProcess, topology: &Topology, public: bool) -> Option<OnThreads> {
    let count = process.threads.len();
    let mut order: Vec<usize> = (0..count).collect();
    let id = |at: usize| process.threads[at].member_id.as_str();
    order.sort_unstable_by(|&a, &b| compare_names(id(a), id(b)));
    let in_order = |how: Held| match &process.placed {
        Some(placed) => {
            let of_one = placed
                .items()
                .filter(|(_, is_active)| **is_active == (how == Held::Active));
            let tasks = of_one.map(|(task, _)| task);
            topology.set(tasks, DEFAULT_SLOTS).keys()
        }
        None => process.tasks(how),
    };
    let (all, mut standby) = (in_order(Held::Active), in_order(Held::Standby));
    if public {
        standby = topology.set(standby, DEFAULT_SLOTS).keys();
    }
    let of_kind = |stateful: bool| {
        let tasks = all.iter().copied();
        let tasks = tasks.filter(|&task| topology.is_stateful[task as usize] == stateful);
        topology.set(tasks, DEFAULT_SLOTS).keys()
    };
    let mut load = vec![0; count];
    let (mut active, mut copies) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    let mut call = |tasks: &[u32], lists: &mut [Vec<u32>], reports: bool| {
        let is_stateful = &topology.is_stateful;
        threads::assign(
            process,
            tasks,
            &order,
            &mut load,
            lists,
            reports,
            is_stateful,
        )
    };
    let found = call(&of_kind(true), &mut active, true)
        && call(&standby, &mut copies, true)
        && call(&of_kind(false), &mut active, false);
    found.then_some((order, active, copies))
}

fn refused(members: &[&StreamThread], error_code: i32) -> LeaderAnswer {
    let empty = ThreadAssignment {
        error_code,
        version: LATEST_VERSION,
        commonly_supported_version: LATEST_VERSION,
        ..ThreadAssignment::default()
    };
    let of_each = |one: &&StreamThread| (one.member_id.clone(), empty.clone());
    LeaderAnswer {
        members: members.iter().map(of_each).collect(),
        ..LeaderAnswer::default()
    }
}

fn tasks(process: &StreamsProcess, topology: &Topology) -> ProcessTasks {
    let ids = |how: Held| -> Vec<TaskId> {
        let tasks = process.tasks(how).into_iter();
        tasks.map(|task| topology.ids[task as usize]).collect()
    };
    let lag = |&task: &u32| (topology.ids[task as usize], process.lags[task as usize]);
    ProcessTasks {
        active: ids(Held::Active),
        standby: ids(Held::Standby),
        lags: topology.stateful.iter().map(lag).collect(),
    }
}

/// Returns, by end point, the partitions of its active (or standby) tasks, sorted.
fn by_host(processes: &[StreamsProcess], topology: &Topology, how: Held) -> ByHost {
    let mut hosts: Vec<&str> = Vec::new();
    let mut partitions: FxHashMap<&str, Vec<Partition>> = FxHashMap::default();
    for one in processes.iter().filter(|one| !one.end_point.is_empty()) {
        let tasks = one.tasks(how).into_iter();
        let of_host = partitions.entry(one.end_point).or_insert_with(|| {
            hosts.push(one.end_point);
            Vec::new()
        });
        of_host.extend(tasks.flat_map(|task| &topology.inputs[task as usize]));
    }
    let sorted = |host: &str| {
        let mut tps = partitions[host].clone();
        tps.sort_unstable();
        tps.into_iter().map(|tp| topology.named(tp)).collect()
    };
    hosts
        .into_iter()
        .map(|host| (host.to_owned(), sorted(host)))
        .collect()
}
