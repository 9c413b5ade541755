// SPDX-License-Identifier: Apache-2.0
//! Changes of a group, as values and as short texts.

mod assignor;
pub mod bounces;
pub mod change;
pub mod draft;
pub mod edits;
pub mod made_up;
pub mod members;
mod text;
mod topics;
