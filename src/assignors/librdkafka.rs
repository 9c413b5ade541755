// SPDX-License-Identifier: Apache-2.0
//! The assignors of librdkafka; each file mirrors a Python file of equal name.

pub mod claims;
pub mod cooperative_sticky;
pub mod general;
pub mod movements;
pub mod range;
pub mod round_robin;
pub mod subscriptions;
