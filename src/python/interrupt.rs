// SPDX-License-Identifier: Apache-2.0
//! Runs work so that Ctrl-C can end it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;

use super::arguments::raise;
use crate::error::GroupError;
use crate::interrupt::Interrupt;

/// Work of at most this size (`GroupSpec::size`) is so short that it runs without an interrupt.
const SHORT: usize = 20_000;
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

/// Runs `work` while the interpreter lock is released. If its `size` is large, it runs on a thread
/// of its own. Meanwhile, the calling thread checks for signals, so that Ctrl-C ends the call and
/// the work.
pub fn interruptibly<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce(&Interrupt) -> Result<T, GroupError> + Send,
) -> PyResult<T> {
    let never = Interrupt::default();
    if size <= SHORT {
        let done = py.detach(|| work(&never));
        return done.map_err(|error| raise(py, &error));
    }
    let interrupt = Interrupt::default();
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // When the work is done, this sender is dropped, and the wait below ends.
                let _sender = sender;
                work(&interrupt)
            });
            while receiver.recv_timeout(LOOK_FOR_SIGNALS) == Err(RecvTimeoutError::Timeout) {
                if let Err(signal) = Python::attach(|py| py.check_signals()) {
                    interrupt.request();
                    return Err(signal);
                }
            }
            Ok(worker.join())
        })
    });
    match done? {
        Ok(done) => done.map_err(|error| raise(py, &error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
