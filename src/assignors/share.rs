// SPDX-License-Identifier: Apache-2.0
//! The assignor of share groups (KIP-932), which brokers run.

pub mod simple;
