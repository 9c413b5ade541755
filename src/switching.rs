// SPDX-License-Identifier: Apache-2.0
//! Another assignor for a group: which one is better.

pub mod comparison;
