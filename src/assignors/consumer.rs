// SPDX-License-Identifier: Apache-2.0
//! The assignors of consumer groups (KIP-848), which brokers run.

pub mod changed;
pub mod heterogeneous;
pub mod homogeneous;
pub mod range;
pub mod targets;
pub mod uniform;
