// SPDX-License-Identifier: Apache-2.0
//! Mirror of `uniform.py`: members get nearly equal numbers of partitions, and few partitions move.

use super::targets::View;
use super::{heterogeneous, homogeneous};
use crate::error::GroupError;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "consumer/uniform";

pub fn assign(group: &GroupSpec) -> Result<Assignment, GroupError> {
    let view = View::of(group, NAME)?;
    if view.homogeneous {
        homogeneous::assign(&view, NAME)
    } else {
        heterogeneous::assign(&view, NAME)
    }
}
