// SPDX-License-Identifier: Apache-2.0
//! Mirror of `wire/group_records.py` for bulk reading: decodes the keys and values of classic
//! groups' records in `__consumer_offsets`. Names and bytes are borrowed from the record. Fields
//! that are not needed are skipped.
//!
//! An error begins with the field's path. Messages equal those of the Python module, which does not
//! check the topic's id.

use crate::java::text::utf8;

#[derive(Debug, PartialEq, Eq)]
pub enum Key<'a> {
    OffsetCommit {
        group_id: &'a str,
        topic: &'a str,
        partition: i32,
    },
    GroupMetadata {
        group_id: &'a str,
    },
    /// The key of another kind of group (KIP-848, KIP-932, KIP-1071), or of an unknown version.
    Other,
}

/// A committed offset. `leader_epoch` is -1 before version 3 of the value; `expire_timestamp_ms` is
/// -1 in all versions but 1. Brokers of Kafka 4.4 and later add the topic's id.
#[derive(Debug, PartialEq, Eq)]
pub struct OffsetCommitValue<'a> {
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: &'a str,
    pub commit_timestamp_ms: i64,
    pub expire_timestamp_ms: i64,
    pub topic_id: Option<[u8; 16]>,
}

/// The value of a classic group's own record.
#[derive(Debug, PartialEq, Eq)]
pub struct GroupMetadataValue<'a> {
    pub protocol_type: &'a str,
    pub generation_id: i32,
    pub protocol: Option<&'a str>,
    pub leader: Option<&'a str>,
    /// -1 before version 2.
    pub current_state_timestamp_ms: i64,
    pub members: Vec<MemberMetadata<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct MemberMetadata<'a> {
    pub member_id: &'a str,
    pub group_instance_id: Option<&'a str>,
    pub client_id: &'a str,
    pub client_host: &'a str,
    /// -1 in version 0.
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub subscription: &'a [u8],
    pub assignment: &'a [u8],
}

const GROUP_KEY: i16 = 2;
const HIGHEST_VALUE: i16 = 4;
const FLEXIBLE: i16 = 4;

pub fn decode_key(data: &[u8]) -> Result<Key<'_>, String> {
    let mut reader = Reader::of(data, "key");
    let key = match reader.int16("version")? {
        0 | 1 => Key::OffsetCommit {
            group_id: reader.string("group")?,
            topic: reader.string("topic")?,
            partition: reader.int32("partition")?,
        },
        GROUP_KEY => Key::GroupMetadata {
            group_id: reader.string("group")?,
        },
        _ => return Ok(Key::Other),
    };
    reader.end()?;
    Ok(key)
}

pub fn decode_offset(data: &[u8]) -> Result<OffsetCommitValue<'_>, String> {
    let (mut reader, version) = value_reader(data)?;
    let value = OffsetCommitValue {
        offset: reader.int64("offset")?,
        leader_epoch: match version {
            3.. => reader.int32("leaderEpoch")?,
            _ => -1,
        },
        metadata: reader.string("metadata")?,
        commit_timestamp_ms: reader.int64("commitTimestamp")?,
        expire_timestamp_ms: match version {
            1 => reader.int64("expireTimestamp")?,
            _ => -1,
        },
        topic_id: match reader.tagged()? {
            Some(id) => Some(id.try_into().map_err(|_| {
                let problem = format!("has {} bytes, and an id has 16", id.len());
                reader.error("topicId", &problem)
            })?),
            None => None,
        },
    };
    reader.end()?;
    Ok(value)
}

fn value_reader(data: &[u8]) -> Result<(Reader<'_>, i16), String> {
    let mut reader = Reader::of(data, "value");
    let version = reader.int16("version")?;
    if !(0..=HIGHEST_VALUE).contains(&version) {
        return Err(format!(
            "value.version: {version} is not known (0 to {HIGHEST_VALUE} are)"
        ));
    }
    reader.flexible = version >= FLEXIBLE;
    Ok((reader, version))
}

pub fn decode_group(data: &[u8]) -> Result<GroupMetadataValue<'_>, String> {
    let (mut reader, version) = value_reader(data)?;
    let mut value = GroupMetadataValue {
        protocol_type: reader.string("protocolType")?,
        generation_id: reader.int32("generation")?,
        protocol: reader.nullable_string("protocol")?,
        leader: reader.nullable_string("leader")?,
        current_state_timestamp_ms: match version {
            2.. => reader.int64("currentStateTimestamp")?,
            _ => -1,
        },
        members: Vec::new(),
    };
    let count = reader.count("members")?;
    for at in 0..count {
        let member = read_member(&mut reader, version, at)?;
        value.members.push(member);
    }
    reader.tagged()?;
    reader.end()?;
    Ok(value)
}

fn read_member<'a>(
    reader: &mut Reader<'a>,
    version: i16,
    at: usize,
) -> Result<MemberMetadata<'a>, String> {
    reader.member = Some(at);
    let member = MemberMetadata {
        member_id: reader.string("memberId")?,
        group_instance_id: match version {
            3.. => reader.nullable_string("groupInstanceId")?,
            _ => None,
        },
        client_id: reader.string("clientId")?,
        client_host: reader.string("clientHost")?,
        rebalance_timeout_ms: match version {
            1.. => reader.int32("rebalanceTimeout")?,
            _ => -1,
        },
        session_timeout_ms: reader.int32("sessionTimeout")?,
        subscription: reader.data("subscription")?,
        assignment: reader.data("assignment")?,
    };
    reader.tagged()?;
    reader.member = None;
    Ok(member)
}

/// A position in the bytes. Each length is checked against the bytes that are left, and no memory
/// is reserved for it, so a wrong length costs no memory.
#[derive(Default)]
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    what: &'static str,
    flexible: bool,
    /// The index of the member whose fields are read, for errors.
    member: Option<usize>,
}

impl<'a> Reader<'a> {
    fn of(data: &'a [u8], what: &'static str) -> Self {
        Self {
            data,
            what,
            ..Self::default()
        }
    }

    fn int16(&mut self, field: &str) -> Result<i16, String> {
        Ok(i16::from_be_bytes(self.number(field)?))
    }

    fn int32(&mut self, field: &str) -> Result<i32, String> {
        Ok(i32::from_be_bytes(self.number(field)?))
    }

    fn int64(&mut self, field: &str) -> Result<i64, String> {
        Ok(i64::from_be_bytes(self.number(field)?))
    }

    fn string(&mut self, field: &str) -> Result<&'a str, String> {
        let text = self.nullable_string(field)?;
        text.ok_or_else(|| self.error(field, "is null"))
    }

    #[inline]
    fn nullable_string(&mut self, field: &str) -> Result<Option<&'a str>, String> {
        let length = match self.flexible {
            true => self.varint(field)? - 1,
            false => i64::from(self.int16(field)?),
        };
        let Ok(length) = usize::try_from(length) else {
            return Ok(None);
        };
        let text = self.take(length, field)?;
        let text = utf8(text).map_err(|_| self.error(field, "is not UTF-8"))?;
        Ok(Some(text))
    }

    fn data(&mut self, field: &str) -> Result<&'a [u8], String> {
        let length = self.length(field)?;
        match usize::try_from(length) {
            Ok(length) => self.take(length, field),
            Err(_) => Err(self.error(field, "is null")),
        }
    }

    fn count(&mut self, field: &str) -> Result<usize, String> {
        let count = self.length(field)?;
        // An entry takes at least one byte, so a count above the number of remaining bytes is an
        // error.
        let fits = usize::try_from(count).is_ok_and(|count| count <= self.data.len() - self.at);
        match fits {
            true => Ok(count as usize),
            false => Err(self.error(field, &format!("{count} entries are not in the data"))),
        }
    }

    fn length(&mut self, field: &str) -> Result<i64, String> {
        match self.flexible {
            true => Ok(self.varint(field)? - 1),
            false => self.int32(field).map(i64::from),
        }
    }

    /// Skips the tagged fields. Returns the one with tag 0, the only tag that Kafka uses here.
    fn tagged(&mut self) -> Result<Option<&'a [u8]>, String> {
        let mut first = None;
        if !self.flexible {
            return Ok(first);
        }
        for _ in 0..self.varint("tagged fields")? {
            let tag = self.varint("tagged fields")?;
            let length = self.varint("tagged fields")? as usize;
            let Ok(data) = self.take(length, "tagged fields") else {
                let left = self.data.len() - self.at;
                let problem = format!("needs {length} bytes, {left} are left");
                return Err(self.error(&format!("tagged field {tag}"), &problem));
            };
            if tag == 0 {
                first = Some(data);
            }
        }
        Ok(first)
    }

    fn end(&self) -> Result<(), String> {
        match self.data.len() - self.at {
            0 => Ok(()),
            left => Err(self.error("end", &format!("{left} bytes too many"))),
        }
    }

    fn number<const N: usize>(&mut self, field: &str) -> Result<[u8; N], String> {
        let taken = self.take(N, field)?;
        Ok(taken.try_into().expect("as many bytes as were taken"))
    }

    fn varint(&mut self, field: &str) -> Result<i64, String> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.number(field)?;
            value |= i64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(field, "has a length of more than 5 bytes"))
    }

    #[inline]
    fn take(&mut self, length: usize, field: &str) -> Result<&'a [u8], String> {
        let left = &self.data[self.at..];
        let Some(taken) = left.get(..length) else {
            return Err(self.cut_short(length, field));
        };
        self.at += length;
        Ok(taken)
    }

    #[cold]
    fn cut_short(&self, length: usize, field: &str) -> String {
        let left = self.data.len() - self.at;
        self.error(field, &format!("needs {length} bytes, {left} are left"))
    }

    #[cold]
    fn error(&self, field: &str, problem: &str) -> String {
        match self.member {
            Some(at) => format!("{}.members[{at}].{field}: {problem}", self.what),
            None => format!("{}.{field}: {problem}", self.what),
        }
    }
}
