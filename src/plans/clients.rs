// SPDX-License-Identifier: Apache-2.0
//! Mirror of a part of `plans/clients.py` and of `recommendation.lacking_clients`: finds the client
//! libraries that a group's members may run, from their client ids or else from their bytes.

use crate::assignors::Assignor;
use crate::group::model::Library;
use crate::group::spec::GroupSpec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Java,
    KafkaPython,
    Aiokafka,
    Librdkafka,
}

impl Client {
    pub const ALL: [Self; 4] = [
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

    /// Whether a member that runs this library can be configured with the assignor.
    pub fn has(self, assignor: Assignor) -> bool {
        match self {
            _ if assignor.is_ours() => false,
            Self::Librdkafka => assignor != Assignor::Sticky,
            _ if assignor.is_dialect() => false,
            Self::Java | Self::KafkaPython => true,
            Self::Aiokafka => assignor != Assignor::CooperativeSticky,
        }
    }
}

/// The libraries of a member whose bytes do not show which of the two Python libraries it runs.
const EITHER_PYTHON: &[Client] = &[Client::KafkaPython, Client::Aiokafka];

/// For each member, the clients that it may run; equal entries appear once.
pub struct MayRun(Vec<&'static [Client]>);

impl MayRun {
    pub fn of(group: &GroupSpec) -> Self {
        let mut found: Vec<&[Client]> = Vec::new();
        for member in &group.members {
            let (library, instance) = (member.as_sent.library, member.group_instance_id);
            let clients = clients_for(member.client_id, instance, library, group.group_id);
            if !found.contains(&clients) {
                found.push(clients);
            }
        }
        Self(found)
    }

    /// Returns the clients of members that cannot have this assignor, in the order of
    /// `Client::ALL`: those that a member may run, if all of them lack the assignor. If a member's
    /// bytes show only that it runs a Python library, each of the two that lacks the assignor
    /// counts.
    pub fn lacking(&self, assignor: Assignor) -> impl Iterator<Item = Client> {
        let cannot =
            |clients: &&&[Client]| **clients == EITHER_PYTHON || all_lack(clients, assignor);
        let named = self.0.iter().filter(cannot).copied().flatten();
        let named: Vec<Client> = named.copied().collect();
        let lacks = move |one: &Client| named.contains(one) && !one.has(assignor);
        Client::ALL.into_iter().filter(lacks)
    }

    /// Whether a member certainly runs this library.
    pub fn has_member_of(&self, client: Client) -> bool {
        self.0.iter().any(|clients| **clients == [client])
    }

    pub fn surely_lack(&self, assignor: Assignor) -> bool {
        self.0.iter().any(|clients| all_lack(clients, assignor))
    }
}

fn all_lack(clients: &[Client], assignor: Assignor) -> bool {
    !clients.iter().any(|one| one.has(assignor))
}

/// Returns the clients that a member may run: by its client id, or else by its bytes.
pub fn clients_for(
    client_id: Option<&str>,
    instance: Option<&str>,
    library: Option<Library>,
    group_id: &str,
) -> &'static [Client] {
    match client_of(client_id.unwrap_or(""), instance, group_id) {
        Some(client) => &Client::ALL[client as usize..=client as usize],
        None => match library {
            // This project's plug-ins send Java's bytes.
            Some(Library::Java) => &[Client::Java, Client::KafkaPython, Client::Aiokafka],
            Some(Library::Python) => EITHER_PYTHON,
            Some(Library::KafkaPython) => &[Client::KafkaPython],
            Some(Library::Aiokafka) => &[Client::Aiokafka],
            Some(Library::Librdkafka) => &[Client::Librdkafka],
            None => &Client::ALL,
        },
    }
}

fn client_of(client_id: &str, instance: Option<&str>, group_id: &str) -> Option<Client> {
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
    let instance = instance.filter(|id| !id.is_empty());
    (numbered || instance == Some(own)).then_some(Client::Java)
}
