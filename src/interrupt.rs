// SPDX-License-Identifier: Apache-2.0
//! Asking a long computation to stop: the only thing from outside that an algorithm looks at, and
//! only to give up.

use std::sync::atomic::{AtomicBool, Ordering};

/// Never requested, until somebody does.
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
