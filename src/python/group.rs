//! One group from Python objects, or many from contract lines.

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;

use super::{by_name, raise};
use crate::group::{GroupBuilder, GroupSpec, MemberFields};
use crate::lines::{self, Options};

/// `model.Topic`.
#[derive(FromPyObject)]
struct Topic {
    name: PyBackedStr,
    partitions: u32,
    racks: Option<Vec<Vec<Option<PyBackedStr>>>>,
}

/// `model.Member`.
#[derive(FromPyObject)]
struct Member {
    member_id: PyBackedStr,
    topics: Vec<PyBackedStr>,
    group_instance_id: Option<PyBackedStr>,
    owned_partitions: Vec<(PyBackedStr, u32)>,
    generation_id: Option<i32>,
    rack_id: Option<PyBackedStr>,
}

/// `model.GroupSpec`.
#[derive(FromPyObject)]
pub struct Group {
    group_id: PyBackedStr,
    topics: Vec<Topic>,
    members: Vec<Member>,
}

impl Group {
    /// Validated when the Python object was made; here it is only numbered.
    fn spec(&self) -> Result<GroupSpec<'_>, crate::error::GroupError> {
        let mut builder = GroupBuilder::new(&self.group_id, None);
        for topic in &self.topics {
            builder.topic(&topic.name, topic.partitions);
            if let Some(racks) = &topic.racks {
                builder.topic_racks();
                for racks in racks {
                    builder.replica_racks(racks.iter().flatten().map(|rack| &**rack));
                }
            }
        }
        for member in &self.members {
            builder.member(MemberFields {
                member_id: &member.member_id,
                group_instance_id: member.group_instance_id.as_deref(),
                rack_id: member.rack_id.as_deref(),
                generation_id: member.generation_id,
            });
            for topic in &member.topics {
                builder.subscribe(topic);
            }
            for (topic, partition) in &member.owned_partitions {
                let topic = builder.topic_id(topic);
                builder.own(topic, *partition);
            }
        }
        builder.finish(u64::MAX)
    }
}

/// Columns of an answer: topic names, then native u32s: offsets, topic ids, partitions; anomalies.
type Columns<'py> = (
    Vec<String>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Vec<(&'static str, String, u32, Option<String>)>,
);

#[pyfunction]
pub fn assign<'py>(py: Python<'py>, group: Group, assignor: &str) -> PyResult<Columns<'py>> {
    let Some(assignor) = by_name(py, Some(assignor))? else {
        return Err(pyo3::exceptions::PyValueError::new_err("no assignor"));
    };
    let (topics, answer) = py
        .detach(|| {
            let spec = group.spec()?;
            let answer = assignor.assign(&spec)?;
            let anomalies = answer.anomalies.iter().map(|anomaly| {
                (
                    anomaly.kind.name(),
                    spec.topics[anomaly.partition.topic as usize]
                        .name
                        .to_owned(),
                    anomaly.partition.partition,
                    anomaly
                        .member
                        .map(|m| spec.members[m as usize].member_id.to_owned()),
                )
            });
            let anomalies: Vec<_> = anomalies.collect();
            let topics: Vec<String> = spec.topic_names().into_iter().map(Into::into).collect();
            Ok((topics, (answer, anomalies)))
        })
        .map_err(|error| raise(py, &error))?;
    let (answer, anomalies) = answer;
    let native = |numbers: &mut dyn Iterator<Item = u32>| {
        let bytes: Vec<u8> = numbers.flat_map(u32::to_ne_bytes).collect();
        PyBytes::new(py, &bytes)
    };
    Ok((
        topics,
        native(&mut answer.offsets.iter().copied()),
        native(&mut answer.partitions.iter().map(|tp| tp.topic)),
        native(&mut answer.partitions.iter().map(|tp| tp.partition)),
        anomalies,
    ))
}

#[pyfunction]
pub fn assign_lines<'py>(
    py: Python<'py>,
    lines: Vec<PyBackedBytes>,
    first: u64,
    assignor: Option<&str>,
    max_partitions: u64,
    threads: usize,
) -> PyResult<Vec<(Bound<'py, PyBytes>, bool)>> {
    let options = Options {
        assignor: by_name(py, assignor)?,
        max_partitions,
        threads,
    };
    let answers = py.detach(|| {
        let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).collect();
        lines::assign_lines(&lines, first, options)
    });
    let answers = answers.into_iter();
    Ok(answers
        .map(|answer| (PyBytes::new(py, &answer.line), answer.is_error))
        .collect())
}
