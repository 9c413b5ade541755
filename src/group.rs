// SPDX-License-Identifier: Apache-2.0
//! Groups, their assignments, and the JSON contract for both.

pub mod builder;
pub mod contract;
pub mod field_types;
pub mod group_fields;
pub(crate) mod lists;
pub mod model;
pub(crate) mod names;
pub mod ownership;
pub mod spec;
pub mod streams;
