// SPDX-License-Identifier: Apache-2.0
//! The best balance that subscriptions allow, and the least moves to it.

pub mod classes;
pub mod flow;
pub mod levels;
pub mod moves;
pub mod optimum;
