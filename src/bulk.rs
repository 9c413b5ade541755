// SPDX-License-Identifier: Apache-2.0
//! Many groups in one call: as JSON lines, or as Arrow record batches.

pub mod batch;
pub mod commits;
pub mod imported;
pub mod lines;
mod nested;
pub mod records;
