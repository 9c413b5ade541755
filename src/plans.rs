// SPDX-License-Identifier: Apache-2.0
//! Plans of changes, and the best possible results with which they are compared.

pub mod changes;
pub mod clients;
pub mod figures;
pub mod possible;
pub mod rebalance_plan;
pub mod rounds;
pub mod samples;
