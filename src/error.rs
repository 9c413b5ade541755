// SPDX-License-Identifier: Apache-2.0
//! The error of one group: a bad field, a change that does not fit the group, or a failure of
//! Kafka's or librdkafka's own code.

use std::fmt;

/// The reason why a group cannot be assigned or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError {
    /// Path of the bad field, for example `members[3].topics[0]`; or `assignor`, `change` or
    /// `line`, if that is at fault.
    pub path: String,
    pub problem: String,
    pub kind: ErrorKind,
}

/// The reason for an error; each kind has its own exception in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A field of the group, or a change, is wrong.
    BadField,
    /// A change names a topic, member, rack or client id that the group does not have, or switches
    /// to the group's present assignor.
    NotAffected,
    /// A change leaves the group without members: no rebalance follows, and no member reads.
    NoMembersLeft,
    /// The group is well-formed, but Kafka's class throws, or librdkafka kills its process.
    Throws,
    /// The group is well-formed, but Kafka's or librdkafka's assignor never ends.
    NeverEnds,
}

impl GroupError {
    /// Makes the error for a bad field, or for a change that is wrong.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::BadField, path, problem)
    }

    fn of_kind(kind: ErrorKind, path: impl Into<String>, problem: impl Into<String>) -> Self {
        let (path, problem) = (path.into(), problem.into());
        Self {
            path,
            problem,
            kind,
        }
    }

    /// Returns the kind of an error, as the value of the field `error_kind`: `never-ends` or
    /// `throws` for a failure of the assignor, `no-members` if a change leaves no member, `change`
    /// for a change that is wrong or does not fit the group, `group` for any other field.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            ErrorKind::NeverEnds => "never-ends",
            ErrorKind::Throws => "throws",
            ErrorKind::NoMembersLeft => "no-members",
            ErrorKind::NotAffected => "change",
            ErrorKind::BadField if self.path.starts_with("changes[") => "change",
            ErrorKind::BadField => "group",
        }
    }

    pub fn not_affected(problem: String) -> Self {
        Self::of_kind(ErrorKind::NotAffected, "change", problem)
    }

    /// Makes the error for a change that leaves no members; nobody reads `partitions` partitions.
    pub fn no_members_left(partitions: u64) -> Self {
        let s = if partitions == 1 { "" } else { "s" };
        let problem =
            format!("no member is left: nobody reads {partitions} partition{s} until one is back");
        Self::of_kind(ErrorKind::NoMembersLeft, "change", problem)
    }

    /// Makes the error for a group for which Kafka's class throws; a live rebalance would fail.
    pub fn assignor_throws(assignor: &str, exception: &str, reason: &str) -> Self {
        let problem = format!("Kafka's {assignor} assignor throws {exception} here: {reason}");
        Self::of_kind(ErrorKind::Throws, "assignor", problem)
    }

    pub fn assignor_dies(assignor: &str, reason: &str) -> Self {
        let problem = format!("{assignor} kills the leader's process here: {reason}");
        Self::of_kind(ErrorKind::Throws, "assignor", problem)
    }

    pub fn assignor_never_ends(assignor: &str) -> Self {
        let whose = if assignor.contains('/') {
            assignor.to_owned()
        } else {
            format!("Kafka's {assignor}")
        };
        let problem = format!(
            "{whose} assignor never ends here: \
             it moves the same partitions round for ever, and no member reads on; \
             range, roundrobin and equal subscriptions always end"
        );
        Self::of_kind(ErrorKind::NeverEnds, "assignor", problem)
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}
