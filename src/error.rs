// SPDX-License-Identifier: Apache-2.0
//! The error of one group. `group` and `bulk` report a bad field; the assignors report that Kafka's
//! own class throws.

use std::fmt;

/// A group that cannot be assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError {
    /// Path of the bad field, for example `members[3].topics[0]`.
    pub path: String,
    /// The problem with that field, in words.
    pub problem: String,
    /// True if the group is well-formed but Kafka's class throws or never ends.
    pub throws: bool,
    /// True if Kafka's class never ends; then `throws` is true as well.
    pub never_ends: bool,
    /// True if a change mentions a topic, member or rack that the group does not have.
    pub unaffected: bool,
}

impl GroupError {
    /// An error in which no flag is set.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: problem.into(),
            throws: false,
            never_ends: false,
            unaffected: false,
        }
    }

    /// The error of a change that mentions a topic, member or rack which the group does not have.
    pub fn not_affected(problem: String) -> Self {
        Self {
            unaffected: true,
            ..Self::new("change", problem)
        }
    }

    /// The kind of error, for counting: `never-ends` or `throws` if Kafka's class does, `change` for
    /// a change that does not fit the group, `group` for the group's own fields.
    pub fn kind(&self) -> &'static str {
        if self.never_ends {
            "never-ends"
        } else if self.throws {
            "throws"
        } else if self.path.starts_with("changes[") {
            "change"
        } else {
            "group"
        }
    }

    /// The error of a group for which Kafka's class throws; a live leader would fail its rebalance.
    pub fn assignor_throws(assignor: &str, exception: &str, reason: &str) -> Self {
        Self {
            path: "assignor".into(),
            problem: format!("Kafka's {assignor} assignor throws {exception} here: {reason}"),
            throws: true,
            never_ends: false,
            unaffected: false,
        }
    }

    /// The error of a group for which Kafka's class never ends; a live leader would hang.
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
