// SPDX-License-Identifier: Apache-2.0
//! Orders that come from Java's collections, and text as Java decodes it.

pub mod hash_map;
pub mod hash_table;
pub mod order;
pub mod priority_queue;
mod red_black_tree;
pub mod slots;
pub mod text;
