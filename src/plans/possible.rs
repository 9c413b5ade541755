// SPDX-License-Identifier: Apache-2.0
//! The best possible balance, and the least number of moves that leads to it.

pub mod classes;
pub mod flow;
pub mod levels;
pub mod moves;
pub mod optimum;
