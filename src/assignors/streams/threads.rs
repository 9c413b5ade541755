// SPDX-License-Identifier: Apache-2.0
//! Mirror of `threads.py`: gives the tasks of a process to its threads.

use std::collections::{BTreeMap, VecDeque};

use super::processes::StreamsProcess;
use crate::java::priority_queue::PriorityQueue;

/// Appends the tasks of each thread to `lists`; `load` counts the tasks of earlier calls, too.
/// `order` lists the threads by member id. Returns false if no task is left for a thread.
pub fn assign(
    process: &StreamsProcess,
    tasks: &[u32],
    order: &[usize],
    load: &mut [usize],
    lists: &mut [Vec<u32>],
    reports: bool,
    is_stateful: &[bool],
) -> bool {
    // 1.
    let floor = (load.iter().sum::<usize>() + tasks.len()) / order.len();
    let mut queue = PriorityQueue::of(tasks.iter().map(|&task| (task, task)).collect());
    // 2.
    let mut remembered: BTreeMap<u32, usize> = BTreeMap::new();
    for &thread in order.iter().filter(|_| reports) {
        let reported = process.reported[thread].iter().copied();
        let mut reported: Vec<u32> = reported.filter(|&t| is_stateful[t as usize]).collect();
        reported.sort_by_key(|&task| process.lags[task as usize]);
        for task in reported {
            if queue.contains(task) {
                if load[thread] < floor {
                    lists[thread].push(task);
                    load[thread] += 1;
                    queue.remove(task);
                } else {
                    remembered.insert(task, thread);
                }
            }
        }
    }
    // 3.
    let mut waiting: VecDeque<usize> = order.iter().copied().filter(|&t| load[t] < floor).collect();
    while let Some(thread) = waiting.pop_front() {
        let Some(task) = queue.poll() else {
            return false;
        };
        lists[thread].push(task);
        load[thread] += 1;
        if load[thread] < floor {
            waiting.push_back(thread);
        }
    }
    // 4.
    let mut candidates: Vec<usize> = order
        .iter()
        .copied()
        .filter(|&t| load[t] == floor)
        .collect();
    for (task, thread) in remembered {
        if queue.contains(task) && candidates.contains(&thread) {
            queue.remove(task);
            lists[thread].push(task);
            load[thread] += 1;
            candidates.retain(|&one| one != thread);
        }
    }
    // 5.
    for (task, thread) in queue.iter().zip(candidates) {
        lists[thread].push(task);
        load[thread] += 1;
    }
    true
}
