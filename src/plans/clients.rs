// SPDX-License-Identifier: Apache-2.0
//! Mirror of a part of `plans/clients.py`: finds the client libraries of a group's members, by
//! their client ids only. Columns do not have the library that the members' bytes show.

use crate::assignors::Assignor;
use crate::group::model::Member;
use crate::group::spec::GroupSpec;

/// A client library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Java,
    KafkaPython,
    Aiokafka,
    Librdkafka,
}

impl Client {
    const ALL: [Self; 4] = [
        Self::Java,
        Self::KafkaPython,
        Self::Aiokafka,
        Self::Librdkafka,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "Java",
            Self::KafkaPython => "kafka-python",
            Self::Aiokafka => "aiokafka",
            Self::Librdkafka => "librdkafka",
        }
    }

    /// Whether members of this library can be configured with the assignor.
    pub fn has(self, assignor: Assignor) -> bool {
        match self {
            Self::Librdkafka => assignor != Assignor::Sticky,
            _ if assignor.is_dialect() => false,
            Self::Java | Self::KafkaPython => true,
            Self::Aiokafka => assignor != Assignor::CooperativeSticky,
        }
    }
}

/// The libraries that the members' client ids reveal; empty if they reveal none.
pub fn clients_of(group: &GroupSpec) -> Vec<Client> {
    let shown = |client: &Client| {
        let mut members = group.members.iter();
        members.any(|member| client_of(member, group.group_id) == Some(*client))
    };
    Client::ALL.into_iter().filter(shown).collect()
}

fn client_of(member: &Member, group_id: &str) -> Option<Client> {
    let client_id = member.client_id.unwrap_or("");
    let digit_after = |prefix: &str| {
        let rest = client_id.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if digit_after("kafka-python-") {
        return Some(Client::KafkaPython);
    }
    if digit_after("aiokafka-") {
        return Some(Client::Aiokafka);
    }
    if client_id == "rdkafka" {
        return Some(Client::Librdkafka);
    }
    let rest = client_id.strip_prefix("consumer-")?;
    let own = rest.strip_prefix(group_id)?.strip_prefix('-')?;
    let numbered = !own.is_empty() && own.bytes().all(|byte| byte.is_ascii_digit());
    let instance = member.group_instance_id.filter(|id| !id.is_empty());
    (numbered || instance == Some(own)).then_some(Client::Java)
}
