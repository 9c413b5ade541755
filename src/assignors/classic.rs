// SPDX-License-Identifier: Apache-2.0
//! Kafka's classic client-side assignors; each file mirrors a Python file of equal name.

pub mod claims;
pub mod constrained;
pub mod cooperative_sticky;
pub mod general;
pub mod movements;
pub mod racks;
pub mod range;
pub mod round_robin;
pub mod sticky;
pub mod subscriptions;
