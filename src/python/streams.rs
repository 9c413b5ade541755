// SPDX-License-Identifier: Apache-2.0
//! Runs the leader of a classic Kafka Streams group for `assignors/streams/__init__.py`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rustc_hash::FxHashMap;

use super::arguments::{listed, raise};
use crate::assignors::streams::application::{
    Application, ByHost, ProcessTasks, Settings, StreamThread, TaskId, ThreadAssignment,
    TopicsInfo, Uuid,
};
use crate::assignors::streams::leader;

type OneThread = (
    Vec<(String, u32)>,
    Vec<TaskId>,
    Vec<TaskId>,
    Option<i64>,
    i32,
    i32,
    i32,
);
type OneProcess = (Uuid, Vec<TaskId>, Vec<TaskId>, Vec<(TaskId, i64)>);
/// The fields of `LeaderAnswer`, as a tuple.
type Fields = (
    Vec<(String, OneThread)>,
    Option<bool>,
    Option<bool>,
    Option<Vec<OneProcess>>,
    ByHost,
    ByHost,
);

/// Returns the leader's answer as a tuple. Without `with_lags`, it contains no processes: they hold
/// the lag of every stateful task, and converting these takes longer than the assignment.
#[pyfunction]
pub fn assign_application(
    py: Python<'_>,
    application: &Bound<'_, PyAny>,
    with_lags: bool,
) -> PyResult<Fields> {
    let application = read(application)?;
    let answer = py
        .detach(|| leader::assign(&application))
        .map_err(|error| raise(py, &error))?;
    let processes = answer
        .processes
        .filter(|_| with_lags)
        .map(|all| all.into_iter().map(process).collect());
    Ok((
        answer
            .members
            .into_iter()
            .map(|(id, one)| (id, thread(one)))
            .collect(),
        answer.stable,
        answer.probing_rebalance_needed,
        processes,
        answer.partitions_by_host,
        answer.standby_partitions_by_host,
    ))
}

fn thread(one: ThreadAssignment) -> OneThread {
    (
        one.partitions,
        one.active_tasks,
        one.standby_tasks,
        one.next_rebalance_ms,
        one.error_code,
        one.version,
        one.commonly_supported_version,
    )
}

fn process((id, one): (Uuid, ProcessTasks)) -> OneProcess {
    (id, one.active, one.standby, one.lags)
}

fn read(given: &Bound<'_, PyAny>) -> PyResult<Application> {
    let field = |name: &str| given.getattr(name);
    let ends = field("end_offsets")?;
    let ends = (!ends.is_none()).then(|| by_topic(&ends, listed));
    Ok(Application {
        assignor: field("assignor")?.extract()?,
        now_ms: field("now_ms")?.extract()?,
        leader_process_id: field("leader_process_id")?.extract()?,
        future_process_id: field("future_process_id")?.extract()?,
        settings: settings(&field("settings")?)?,
        racks: by_topic(&field("racks")?, |replicas| each(replicas, listed))?,
        subtopologies: each(&field("subtopologies")?, subtopology)?,
        end_offsets: ends.transpose()?,
        committed_offsets: by_topic(&field("committed_offsets")?, listed)?,
        new_changelog_topics: listed(&field("new_changelog_topics")?)?,
        threads: each(&field("threads")?, stream_thread)?,
    })
}

fn each<'py, T>(
    given: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    listed::<Bound<'py, PyAny>>(given)?
        .iter()
        .map(read)
        .collect()
}

fn by_topic<'py, T>(
    given: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> PyResult<Vec<T>>,
) -> PyResult<FxHashMap<String, Vec<T>>> {
    let entry = |(topic, values): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        Ok((topic.extract()?, read(&values)?))
    };
    given.cast::<PyDict>()?.iter().map(entry).collect()
}

fn settings(given: &Bound<'_, PyAny>) -> PyResult<Settings> {
    let field = |name: &str| given.getattr(name);
    Ok(Settings {
        acceptable_recovery_lag: field("acceptable_recovery_lag")?.extract()?,
        max_warmup_replicas: field("max_warmup_replicas")?.extract()?,
        num_standby_replicas: field("num_standby_replicas")?.extract()?,
        probing_rebalance_interval_ms: field("probing_rebalance_interval_ms")?.extract()?,
        rack_aware_assignment_tags: listed(&field("rack_aware_assignment_tags")?)?,
        rack_aware_assignment_strategy: field("rack_aware_assignment_strategy")?.extract()?,
        rack_aware_assignment_traffic_cost: field("rack_aware_assignment_traffic_cost")?
            .extract()?,
        rack_aware_assignment_non_overlap_cost: field("rack_aware_assignment_non_overlap_cost")?
            .extract()?,
    })
}

fn subtopology(given: &Bound<'_, PyAny>) -> PyResult<TopicsInfo> {
    let field = |name: &str| given.getattr(name);
    Ok(TopicsInfo {
        subtopology_id: field("subtopology_id")?.extract()?,
        source_topics: listed(&field("source_topics")?)?,
        changelog_topics: listed(&field("changelog_topics")?)?,
        source_changelog_topics: listed(&field("source_changelog_topics")?)?,
        unlogged_stores: field("unlogged_stores")?.extract()?,
    })
}

fn stream_thread(given: &Bound<'_, PyAny>) -> PyResult<StreamThread> {
    let info = given.getattr("info")?;
    let field = |name: &str| info.getattr(name);
    let tags = info.call_method0("tags")?;
    let end_point = field("user_end_point")?;
    let end_point = end_point.cast::<PyBytes>()?;
    Ok(StreamThread {
        member_id: given.getattr("member_id")?.extract()?,
        rack_id: given.getattr("rack_id")?.extract()?,
        owned_partitions: listed(&given.getattr("owned_partitions")?)?,
        version: field("version")?.extract()?,
        latest_supported_version: field("latest_supported_version")?.extract()?,
        process_id: field("process_id")?.extract()?,
        error_code: field("error_code")?.extract()?,
        user_end_point: String::from_utf8_lossy(end_point.as_bytes()).into_owned(),
        offset_sums: info.call_method0("offset_sums")?.extract()?,
        client_tags: listed(tags.cast::<PyDict>()?.items().as_any())?,
    })
}
