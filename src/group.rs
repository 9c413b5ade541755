// SPDX-License-Identifier: Apache-2.0
//! A group: what it may be, how it is written, who owns what.

pub mod contract;
pub(crate) mod lists;
pub mod model;
pub mod ownership;
