// SPDX-License-Identifier: Apache-2.0
//! Mirror of `eager.py`: all work stops, and then all work is assigned to the workers in turn.

use super::work::{Names, Work, WorkerId};

/// Returns the new work of each worker. `workers` and the answer are in member order.
pub fn assign(names: &Names, workers: &[WorkerId], target: &Work) -> Vec<Work> {
    let mut works = vec![Work::default(); workers.len()];
    // 1. The workers form a circle, sorted by id.
    let mut circle: Vec<usize> = (0..workers.len()).collect();
    circle.sort_unstable_by_key(|&w| workers[w]);
    let mut circle = circle.into_iter().cycle();
    // 2. Each connector goes to the next worker.
    for (&connector, worker) in target.connectors.iter().zip(circle.by_ref()) {
        works[worker].connectors.push(connector);
    }
    // 3. Then each task goes to the next worker.
    for (&task, worker) in target.tasks.iter().zip(circle.by_ref()) {
        works[worker].tasks.push(task);
    }
    works.iter().map(|work| names.after_wire(work)).collect()
}
