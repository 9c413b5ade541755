// SPDX-License-Identifier: Apache-2.0
//! A request to stop a long computation. A stopped computation returns an error, never a part of an
//! answer. Algorithms read nothing but their arguments and this flag.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::GroupError;

/// A flag that any thread may set; it starts unset and is never cleared.
#[derive(Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns an error if the computation has to stop.
    pub fn check(&self) -> Result<(), GroupError> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(GroupError::new("assignor", "interrupted")),
            false => Ok(()),
        }
    }
}
