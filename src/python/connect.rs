// SPDX-License-Identifier: Apache-2.0
//! Connect's assignors; specs, memories and answers cross as JSON, which the memory is anyway.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::{exception, raise};
use crate::assignors::connect::named::{
    NamedAnswer, NamedMemory, NamedSpec, NamedWork, configured, names,
};
use crate::assignors::connect::work::{Names, WorkerId};
use crate::assignors::connect::{eager, incremental};

#[derive(Deserialize)]
struct Round {
    memory: NamedMemory,
    spec: NamedSpec,
    now_ms: i64,
}

#[derive(Serialize)]
struct Answered {
    memory: NamedMemory,
    result: NamedAnswer,
}

fn read<'t, T: Deserialize<'t>>(py: Python<'_>, text: &'t str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|error| exception(py, "GroupError", ("spec", error.to_string())))
}

fn write(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| exception(py, "GroupError", ("spec", error.to_string())))
}

#[pyfunction]
pub fn connect_incremental(py: Python<'_>, round: &str) -> PyResult<String> {
    let round: Round = read(py, round)?;
    let answered = py.detach(|| {
        let (connectors, workers) = names(&round.memory, &round.spec);
        let memory = round.memory.numbered(&connectors, &workers);
        let spec = round.spec.numbered(&connectors, &workers);
        let (memory, answer) =
            incremental::handle(&memory, &spec, round.now_ms, &connectors, &workers)?;
        Ok(Answered {
            memory: NamedMemory::of(&memory, &connectors, &workers),
            result: NamedAnswer::of(&answer, &connectors, &workers),
        })
    });
    write(py, &answered.map_err(|error| raise(py, &error))?)
}

#[pyfunction]
pub fn connect_eager(py: Python<'_>, workers: Vec<String>, config: &str) -> PyResult<String> {
    let config: BTreeMap<String, u32> = read(py, config)?;
    let works: Vec<NamedWork> = py.detach(|| {
        let names = Names::of(config.keys().map(String::as_str));
        let ids = Names::of(workers.iter().map(String::as_str));
        let ranks: Vec<WorkerId> = workers.iter().map(|id| ids.rank(id)).collect();
        let works = eager::assign(&names, &ranks, &configured(&config, &names));
        works
            .iter()
            .map(|work| NamedWork::of(work, &names))
            .collect()
    });
    write(py, &works)
}
