// SPDX-License-Identifier: Apache-2.0
//! A group and its assignments; the contract as JSON.

pub mod contract;
pub(crate) mod lists;
pub mod model;
pub mod ownership;
pub mod spec;
