// SPDX-License-Identifier: Apache-2.0
//! Every order that comes from Java's collections, and text as Java decodes it.

pub mod hash_table;
pub mod order;
pub mod text;
