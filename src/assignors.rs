// SPDX-License-Identifier: Apache-2.0
//! The built-in assignors by name, and the functions that run one of them on a group.

pub mod balance {
    pub mod balanced;
    pub mod bound;
    pub mod budget;
    pub mod classes;
    pub mod figures;
    pub mod flow;
    pub mod levels;
    pub mod network;
    pub mod search;
    pub mod small;
    pub mod weighted;
    pub mod weights;
}
pub mod classic {
    pub mod claims;
    pub mod constrained;
    pub mod cooperative_sticky;
    pub mod general;
    pub mod movements;
    pub mod racks;
    pub mod range;
    pub mod round_robin;
    pub mod sticky;
    pub mod subscriptions;
}
pub mod connect {
    pub mod eager;
    pub mod incremental;
    pub mod work;
}
pub mod consumer {
    pub mod balanced;
    pub mod changed;
    pub mod heterogeneous;
    pub mod homogeneous;
    pub mod range;
    pub mod targets;
    pub mod uniform;
}
pub mod librdkafka {
    pub mod claims;
    pub mod cooperative_sticky;
    pub mod general;
    pub mod movements;
    pub mod range;
    pub mod round_robin;
    pub mod subscriptions;
}
pub mod share {
    pub mod simple;
}
pub mod streams {
    pub mod application;
    pub mod high_availability;
    pub mod leader;
    pub mod legacy_sticky;
    pub mod min_cost_flow;
    pub mod processes;
    pub mod rack_costs;
    pub mod standby_tasks;
    pub mod sticky;
    pub mod threads;
}

use crate::error::GroupError;
use crate::group::model::quoted;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;
use balance::balanced::{self, OBJECTIVE, Objective};
use balance::weighted::{self, OPTIONS, Options};
use classic::{cooperative_sticky, range, round_robin, sticky};

/// The built-in assignors, in the order in which help texts and messages list them: first those of
/// Kafka's Java client, then those of librdkafka, of this project and of the brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignor {
    Range,
    RoundRobin,
    Sticky,
    CooperativeSticky,
    LibrdkafkaRange,
    LibrdkafkaRoundRobin,
    LibrdkafkaCooperativeSticky,
    Balanced(Objective),
    Weighted(Options),
    ConsumerUniform,
    ConsumerRange,
    ConsumerBalanced,
    ShareSimple,
    StreamsSticky,
}

/// Names of assignors in live groups that are not built in, each with a description for errors.
const FOREIGN: [(&str, &str); 4] = [
    (
        "stream",
        "Kafka Streams' own assignor, which no setting replaces",
    ),
    (
        "RoundRobinAssigner",
        "KafkaJS's own assignor, which is not one of Kafka's",
    ),
    (
        "rack-affinity",
        "kafka-go's own assignor, which is not one of Kafka's",
    ),
    (
        "uniform",
        "the brokers' assignor of the consumer protocol (KIP-848): consumer/uniform",
    ),
];

/// Mirror of `registry.IN_PLACE_OF_STREAM`. Only Python reads the field `application`, from which
/// it calls the leader of Kafka Streams.
const IN_PLACE_OF_STREAM: &str = "name no assignor: then its answer is computed from the field \
     application of a line, which `snapshot` writes; bulk.plan_applications plans many lines";

/// Mirror of `registry.protocol_name`: the name by which members list the assignor in JoinGroup.
pub fn protocol_name(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, listed)| listed)
}

impl Assignor {
    pub const ALL: [Self; 14] = [
        Self::Range,
        Self::RoundRobin,
        Self::Sticky,
        Self::CooperativeSticky,
        Self::LibrdkafkaRange,
        Self::LibrdkafkaRoundRobin,
        Self::LibrdkafkaCooperativeSticky,
        Self::Balanced(OBJECTIVE),
        Self::Weighted(OPTIONS),
        Self::ConsumerUniform,
        Self::ConsumerRange,
        Self::ConsumerBalanced,
        Self::ShareSimple,
        Self::StreamsSticky,
    ];

    /// Returns the name in group lines and result lines. For an assignor of Kafka's Java client,
    /// this is the protocol name in JoinGroup, for example `roundrobin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => range::NAME,
            Self::RoundRobin => round_robin::NAME,
            Self::Sticky => sticky::NAME,
            Self::CooperativeSticky => cooperative_sticky::NAME,
            Self::LibrdkafkaRange => librdkafka::range::NAME,
            Self::LibrdkafkaRoundRobin => librdkafka::round_robin::NAME,
            Self::LibrdkafkaCooperativeSticky => librdkafka::cooperative_sticky::NAME,
            Self::Balanced(_) => balanced::NAME,
            Self::Weighted(_) => weighted::NAME,
            Self::ConsumerUniform => consumer::uniform::NAME,
            Self::ConsumerRange => consumer::range::NAME,
            Self::ConsumerBalanced => consumer::balanced::NAME,
            Self::ShareSimple => share::simple::NAME,
            Self::StreamsSticky => streams::sticky::NAME,
        }
    }

    /// Returns the assignor with this name; an error at `assignor` if it is not built in.
    pub fn by_name(name: &str) -> Result<Self, GroupError> {
        if let Some(objective) = balanced::objective_of(name) {
            return objective.map(Self::Balanced);
        }
        if let Some(options) = weighted::options_of(name) {
            return options.map(Self::Weighted);
        }
        let found = Self::ALL
            .into_iter()
            .find(|assignor| assignor.name() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            let whose = FOREIGN.iter().find(|(foreign, _)| *foreign == name);
            let what = whose.map_or("not known", |(_, whose)| whose);
            let mut problem = format!("{} is {what}; known are {known}", quoted(name));
            if name == "stream" {
                problem = format!("{} is {what}; {IN_PLACE_OF_STREAM}", quoted(name));
            }
            if name.starts_with("kafka-python/") || name.starts_with("aiokafka/") {
                // `bulk/lines.py` searches the error for these words (`ONLY_PYTHON`).
                let only = "runs in Python only, by the library's own class";
                problem = format!("{} {only}; known are {known}", quoted(name));
            }
            GroupError::new("assignor", problem)
        })
    }

    /// Whether a partition that another member must revoke first is withheld from its new owner: by
    /// the assignor itself or, for the assignors of this project, by the leader
    /// (`plans/rounds.rs`).
    pub fn withholds(self) -> bool {
        let sticky = matches!(
            self,
            Self::CooperativeSticky | Self::LibrdkafkaCooperativeSticky
        );
        sticky || self.is_ours()
    }

    /// Whether this is an assignor of this project, which no Kafka client contains.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Balanced(_) | Self::Weighted(_))
    }

    /// Whether this is another client library's version of one of Kafka's assignors.
    pub fn is_dialect(self) -> bool {
        self.name().contains('/') && !self.is_server_side()
    }

    pub fn is_server_side(self) -> bool {
        matches!(
            self,
            Self::ConsumerUniform
                | Self::ConsumerRange
                | Self::ConsumerBalanced
                | Self::ShareSimple
                | Self::StreamsSticky
        )
    }

    /// Returns `self`, or an error at `assignor` if brokers run the assignor: only Python plays the
    /// rounds of such groups.
    pub fn for_plans(self) -> Result<Self, GroupError> {
        if !self.is_server_side() {
            return Ok(self);
        }
        let name = quoted(self.name());
        let problem = format!(
            "{name} runs in the brokers, and `plan` and `compare` play its rounds, one group at a \
             time; `assign` returns its assignment"
        );
        Err(GroupError::new("assignor", problem))
    }

    /// Returns `self`, or an error at `assignor` if the assignor shares partitions or assigns
    /// tasks: then one owner for each partition would not be the whole answer.
    pub fn for_owners(self) -> Result<Self, GroupError> {
        let what = match self {
            Self::ShareSimple => "shares partitions, so that one owner of each is not",
            Self::StreamsSticky => "assigns tasks, so that owners of partitions are not",
            _ => return Ok(self),
        };
        let name = quoted(self.name());
        let problem = format!("{name} {what} the whole answer; use `assign_groups`");
        Err(GroupError::new("assignor", problem))
    }

    /// Returns the assignor's answer for a group; an error if Kafka's (or librdkafka's) code fails
    /// or never ends.
    pub fn assign(self, group: &GroupSpec) -> Result<Assignment, GroupError> {
        self.assign_until(group, &Interrupt::default())
    }

    /// Like `assign`, but an interrupt stops the clients' sticky assignors with an error.
    pub fn assign_until(
        self,
        group: &GroupSpec,
        interrupt: &Interrupt,
    ) -> Result<Assignment, GroupError> {
        match self {
            // Range and RoundRobin assign each partition of a subscribed topic once, to a
            // subscriber. So their answers have no anomalies.
            Self::Range => Ok(range::assign(group)),
            Self::RoundRobin => Ok(round_robin::assign(group)),
            Self::Sticky => sticky::assign(group, interrupt),
            Self::CooperativeSticky => cooperative_sticky::assign(group, interrupt),
            Self::LibrdkafkaRange => Ok(librdkafka::range::assign(group)),
            Self::LibrdkafkaRoundRobin => Ok(librdkafka::round_robin::assign(group)),
            Self::LibrdkafkaCooperativeSticky => {
                librdkafka::cooperative_sticky::assign(group, interrupt)
            }
            Self::Balanced(objective) => Ok(balanced::assign(group, objective)),
            Self::Weighted(options) => Ok(weighted::answer(group, options).0),
            Self::ConsumerUniform => consumer::uniform::assign(group),
            Self::ConsumerRange => consumer::range::assign(group),
            Self::ConsumerBalanced => consumer::balanced::assign(group),
            Self::ShareSimple => share::simple::assign(group),
            Self::StreamsSticky => streams::sticky::assign(group),
        }
    }
}

/// Returns the `forced` assignor or, if it is None, the group's own; an error at `assignor` if the
/// group then has none, or one that is not built in.
pub fn assignor(group: &GroupSpec, forced: Option<Assignor>) -> Result<Assignor, GroupError> {
    match (forced, group.assignor) {
        (Some(assignor), _) => Ok(assignor),
        (None, Some(name)) => Assignor::by_name(name),
        (None, None) => {
            let problem = "missing; name one, in the group or in the call";
            Err(GroupError::new("assignor", problem))
        }
    }
}

/// Runs the assignor that the function `assignor` chooses. Returns that assignor and its answer.
pub fn assign(
    group: &GroupSpec,
    forced: Option<Assignor>,
) -> Result<(Assignor, Assignment), GroupError> {
    let assignor = assignor(group, forced)?;
    Ok((assignor, assignor.assign(group)?))
}

/// Runs `assign`, and also returns the additional fields of the result line: a string that begins
/// with a comma, or an empty one.
pub fn assign_with_fields(
    group: &GroupSpec,
    forced: Option<Assignor>,
) -> Result<(Assignor, Assignment, String), GroupError> {
    let (assignor, answer) = match assignor(group, forced)? {
        Assignor::Weighted(options) => {
            let (answer, fields) = weighted::answer(group, options);
            return Ok((Assignor::Weighted(options), answer, fields));
        }
        assignor => (assignor, assignor.assign(group)?),
    };
    let fields = match assignor {
        Assignor::Balanced(objective) => balance::figures::balance_field(group, &answer, objective),
        _ => String::new(),
    };
    Ok((assignor, answer, fields))
}
