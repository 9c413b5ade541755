// SPDX-License-Identifier: Apache-2.0
//! A request to stop a long computation, which then ends with an error. So a request cannot change
//! an answer. Algorithms read nothing else from outside.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that any thread may set; it starts unset and is never cleared.
#[derive(Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
