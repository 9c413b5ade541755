// SPDX-License-Identifier: Apache-2.0
//! Connect's assignors; each file mirrors a Python file of equal name.

pub mod eager;
pub mod incremental;
pub mod memory;
pub mod spec;
pub mod work;
