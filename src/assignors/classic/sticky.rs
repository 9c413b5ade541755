//! Mirror of `sticky.py`.

use super::claims::{sent_by_sticky, settle};
use super::{constrained, general};
use crate::error::GroupError;
use crate::group::{GroupSpec, TopicPartition};

pub const NAME: &str = "sticky";

pub fn assign(group: &GroupSpec) -> Result<Vec<Vec<TopicPartition>>, GroupError> {
    // 1.
    let claims = settle(group);
    // 2.
    let assignment = if claims.equal_subscriptions {
        constrained::assign(NAME, &claims)?.assignment
    // 3.
    } else {
        general::assign(NAME, &claims, sent_by_sticky)?.0
    };
    Ok(claims.lists(&assignment))
}
