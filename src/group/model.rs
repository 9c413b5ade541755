// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/model.py`: the parts of a group. Members, topics and racks are numbers; names
//! are borrowed from the group's source.

use rustc_hash::FxHashMap;

use crate::error::GroupError;

/// The default limit for a group's partitions, over all its topics.
pub const MAX_PARTITIONS: u64 = 10_000_000;
/// The subscription version of Kafka's newest clients; the first version with a rack (KIP-881).
pub const NEWEST_SUBSCRIPTION: u8 = 3;

/// Index into `GroupSpec::members`, which is in join order.
pub type MemberId = u32;
/// Stands for "no member" in arrays of members.
pub const NOBODY: MemberId = MemberId::MAX;
/// A partition's number within its group.
pub type PartitionId = u32;
/// Index into `GroupSpec::topics`: declared topics, then others that members subscribe to or own.
pub type TopicId = u32;
/// Index into `GroupSpec::rack_names`.
pub type RackId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: TopicId,
    pub partition: u32,
}

#[derive(Clone, Default)]
pub struct Topic<'a> {
    pub name: &'a str,
    /// 0 for a topic without partitions or without metadata; assignors skip both.
    pub partitions: u32,
    /// Index of the topic's first entry in `GroupSpec::replica_racks`; None if racks are unknown.
    pub(crate) racks: Option<u32>,
    /// Kafka's topic id, as 22 characters. Only the brokers' own assignors read it.
    pub topic_id: Option<&'a str>,
    /// `topic_id`, parsed once for all answers; None also if malformed; then `GroupBuilder::finish`
    /// returns an error.
    pub(crate) uuid: Option<Uuid>,
    /// The partitions that a share group may assign; None means all.
    pub initialized: Option<Vec<u32>>,
    /// By partition: its load, or `UNKNOWN`. Only `weighted` reads it.
    pub weights: Option<Vec<f64>>,
}

/// Stands for the weight of a partition whose weight is unknown.
pub const UNKNOWN: f64 = f64::NAN;

impl<'a> Topic<'a> {
    pub fn new(name: &'a str, partitions: u32) -> Self {
        Self {
            name,
            partitions,
            ..Self::default()
        }
    }
}

/// The most and the least significant 64 bits, in the order of `Uuid.compareTo`.
pub type Uuid = (i64, i64);

pub fn uuid_of(topic_id: &str) -> Result<Uuid, String> {
    let bits = uuid_bits(topic_id.as_bytes()).ok_or_else(|| {
        let id = quoted(topic_id);
        format!("{id} is not a topic id of 22 characters in base64")
    })?;
    Ok(((bits >> 64) as i64, bits as i64))
}

/// Returns the 128 bits of a topic id: 21 characters of 6 bits, and one of which only 2 bits count.
fn uuid_bits(characters: &[u8]) -> Option<u128> {
    let digits: &[u8; 22] = characters.try_into().ok()?;
    let digits = digits.map(|byte| DIGITS[byte as usize]);
    if digits.contains(&NO_DIGIT) || digits[21] & 15 != 0 {
        return None;
    }
    let first = digits[..21].iter();
    let bits = first.fold(0, |bits, &digit| bits << 6 | u128::from(digit));
    Some(bits << 2 | u128::from(digits[21] >> 4))
}

const NO_DIGIT: u8 = u8::MAX;

/// By byte: the value of this character in a topic id, or `NO_DIGIT`.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut i = 0;
    while i < alphabet.len() {
        digits[alphabet[i] as usize] = i as u8;
        i += 1;
    }
    digits
};

/// The client library of a member, as its bytes show it, or of the last leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Also this project's plug-ins for the Python libraries.
    Java,
    Librdkafka,
    KafkaPython,
    Aiokafka,
    /// One of the two Python libraries.
    Python,
}

impl Library {
    /// Parses the contract's `client_library` or `leader_library`. Any string is accepted there;
    /// None means that the library is not known here.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "java" => Self::Java,
            "librdkafka" => Self::Librdkafka,
            "kafka-python" => Self::KafkaPython,
            "aiokafka" => Self::Aiokafka,
            "python" => Self::Python,
            _ => return None,
        })
    }
}

/// The differences between a member's subscription and a subscription from Kafka's newest Java
/// client; the default means no differences and an unknown library.
#[derive(Clone, Copy, Default)]
pub struct AsSent {
    pub subscription_version: Option<u8>,
    pub user_data: Option<UserData>,
    /// The generation in the user data. None means that it is the member's `generation_id`.
    pub user_data_generation_id: Option<i32>,
    /// Whether the rack is an empty string. Only librdkafka's assignor distinguishes this from no
    /// rack. `GroupBuilder::sent` sets this field.
    pub empty_rack: bool,
    /// Only comparisons read this field. In a spec made from Python's `GroupSpec`, it is None,
    /// because Python itself compares assignors for such a group.
    pub library: Option<Library>,
}

/// The content of a member's sticky user data, if its library sends less than Kafka's Java client
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserData {
    /// Nothing that Kafka's classes can read.
    None,
    /// Partitions without a generation.
    Partitions,
}

impl UserData {
    pub fn by_name(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "partitions" => Ok(Self::Partitions),
            _ => {
                let name = quoted(name);
                Err(format!("{name} is not \"none\" or \"partitions\""))
            }
        }
    }
}

impl AsSent {
    pub fn version(self) -> u8 {
        self.subscription_version.unwrap_or(NEWEST_SUBSCRIPTION)
    }

    /// Whether the subscription has a field for the rack (KIP-881).
    pub fn sends_rack(self) -> bool {
        self.version() >= 3
    }
}

/// Mirror of `model.wrong_protocol`: returns why a group of this assignor cannot have this
/// rebalance protocol; None if it can.
pub fn wrong_protocol(protocol: &str, assignor: Option<&str>) -> Option<String> {
    if !matches!(protocol, "eager" | "cooperative") {
        let name = quoted(protocol);
        return Some(format!("{name} is not \"eager\" or \"cooperative\""));
    }
    let Some(assignor) = assignor else {
        return Some("the field assignor is missing, which supports the protocol".into());
    };
    let (library, listed) = assignor.rsplit_once('/').unwrap_or(("", assignor));
    let name = quoted(assignor);
    if matches!(library, "consumer" | "share" | "streams") {
        return Some(format!(
            "the broker assigns a group of {name}, which has no such protocol"
        ));
    }
    let is_eager = matches!(listed, "range" | "roundrobin" | "sticky");
    let of_clients = matches!(library, "" | "librdkafka" | "kafka-python" | "aiokafka");
    let wrong = protocol == "cooperative" && is_eager && of_clients;
    wrong.then(|| format!("{name} supports only \"eager\""))
}

/// A member as the group's leader sees it. `GroupSpec` holds its lists of topics and partitions.
#[derive(Clone)]
pub struct Member<'a> {
    pub member_id: &'a str,
    pub group_instance_id: Option<&'a str>,
    pub client_id: Option<&'a str>,
    /// None if the member sends no rack (KIP-881): its subscription's version has no field for it,
    /// or its `rack_id` is absent or empty.
    pub rack: Option<RackId>,
    /// The generation in which the member owned its partitions.
    pub generation_id: Option<i32>,
    pub as_sent: AsSent,
    /// The member's capacity, relative to others; only `weighted` reads it.
    pub capacity: f64,
    /// Start and end of the member's topics in the spec's list of subscriptions.
    pub(crate) topics: (u32, u32),
    /// Start and end of the member's partitions in the spec's list of owned partitions.
    pub(crate) owned: (u32, u32),
    /// Start and end of the member's topics in the spec's `owned_topics`.
    pub(crate) owned_topics: (u32, u32),
}

/// Records the id of `list[i]`. Returns an error at its `field` if another entry has this id.
pub(crate) fn has_own_id<'a>(
    ids: &mut FxHashMap<&'a str, usize>,
    id: &'a str,
    (list, i, field): (&str, usize, &str),
) -> Result<(), GroupError> {
    let first = *ids.entry(id).or_insert(i);
    if first == i {
        return Ok(());
    }
    let problem = format!("{} is already the id of {list}[{first}]", quoted(id));
    Err(GroupError::new(format!("{list}[{i}].{field}"), problem))
}

/// Returns a name in JSON quotes, as error messages show it.
pub fn quoted(name: &str) -> String {
    serde_json::to_string(name).expect("a name has a form in JSON")
}
