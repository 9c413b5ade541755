// SPDX-License-Identifier: Apache-2.0
//! The assignor that brokers run for streams groups (KIP-1071).

pub mod sticky;
