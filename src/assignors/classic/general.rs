// SPDX-License-Identifier: Apache-2.0
//! Mirror of `general.py`: the sticky algorithm for members with different subscriptions, in the
//! steps that the Python module explains. Steps 1 to 5 are in `general/build.rs`, steps 6 and 7 in
//! `general/balance.rs`.
//!
//! Comments explain why the shortcuts cannot change the answer. In most groups, a pass of step 6
//! costs O(P + S) for P partitions and S subscriptions to topics, and a move of a partition whose
//! topic has n subscribers costs O(log n).

mod balance;
mod build;
mod holdings;
mod is_balanced;
pub mod smallest;

use super::claims::Claims;
use crate::error::GroupError;
use crate::group::lists::Lists;
use crate::group::model::MemberId;
use balance::Balance;
pub use balance::score;
use build::Build;

/// Assigns all partitions. Returns the answer, and the members in the order of the answer's map.
/// `name` is the assignor's name in errors; `owned` holds the believed claims.
pub fn assign(
    name: &str,
    claims: &Claims,
    owned: Lists,
) -> Result<(Lists, Vec<MemberId>), GroupError> {
    let mut build = Build::new(name, claims);
    build.sort_partitions(); // step 1
    build.remember_previous(); // step 2
    let unassigned = build.keep_owned(owned); // step 3
    let initializing = build.current.sizes().iter().all(|&size| size == 0);
    build.assign_unassigned(&unassigned)?; // step 4
    build.take_out_fixed(); // step 5
    Balance::new(build).balance(unassigned, initializing) // steps 6 and 7
}
