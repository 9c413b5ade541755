// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with one group: `contract`, `group` and `batch` say which field is bad, the
//! assignors where Kafka's own class throws.

use std::fmt;

/// A group that cannot be assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError {
    /// Path of the field, as `members[3].topics[0]`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
    /// Kafka's class has no answer: the group is well-formed.
    pub throws: bool,
    /// It has none because it goes on for ever.
    pub never_ends: bool,
    /// A change names a topic, member or rack that the group does not have.
    pub unaffected: bool,
}

impl GroupError {
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: problem.into(),
            throws: false,
            never_ends: false,
            unaffected: false,
        }
    }

    /// Where a change names a topic, member or rack that the group does not have.
    pub fn not_affected(problem: String) -> Self {
        Self {
            unaffected: true,
            ..Self::new("change", problem)
        }
    }

    /// Where Kafka's class throws, so that a live leader would fail its rebalance.
    pub fn assignor_throws(assignor: &str, exception: &str, reason: &str) -> Self {
        Self {
            path: "assignor".into(),
            problem: format!("Kafka's {assignor} assignor throws {exception} here: {reason}"),
            throws: true,
            never_ends: false,
            unaffected: false,
        }
    }

    /// Where Kafka's class goes on for ever.
    pub fn assignor_never_ends(assignor: &str) -> Self {
        Self {
            path: "assignor".into(),
            problem: format!(
                "Kafka's {assignor} assignor never ends here: \
                 it moves the same partitions round for ever, and no member reads on; \
                 range, roundrobin and equal subscriptions always end"
            ),
            throws: true,
            never_ends: true,
            unaffected: false,
        }
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

impl std::error::Error for GroupError {}
