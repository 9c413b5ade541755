//! Mirror of `changes/made_up.py`: ids of members that do not exist yet.

use rustc_hash::FxHashSet;
use uuid::{Builder, Uuid};

const UUID_LENGTH: usize = 36;

/// Makes ids up, never one twice.
pub struct MadeUp<'a> {
    group_id: &'a str,
    count: u32,
}

impl<'a> MadeUp<'a> {
    pub fn new(group_id: &'a str) -> Self {
        Self { group_id, count: 0 }
    }

    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// `prefix` and a UUID; none of `taken`.
    pub fn member_id(&mut self, prefix: &str, taken: &FxHashSet<&str>) -> String {
        loop {
            // The draw that is the plan's own.
            let name = format!("{}/0/{}", self.group_id, self.count);
            self.count += 1;
            let random = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
            let uuid = Builder::from_random_bytes(*random.as_bytes()).into_uuid();
            let member_id = format!("{prefix}-{uuid}");
            if !taken.contains(member_id.as_str()) {
                return member_id;
            }
        }
    }
}

/// What stands before the UUID: the client id, or the member id without its UUID.
pub fn prefix_of<'a>(client_id: Option<&'a str>, member_id: &'a str) -> &'a str {
    let client_id = client_id.filter(|id| !id.is_empty());
    let prefix = client_id.unwrap_or_else(|| without_uuid(member_id));
    if prefix.is_empty() {
        "consumer"
    } else {
        prefix
    }
}

fn without_uuid(member_id: &str) -> &str {
    let bytes = member_id.as_bytes();
    let Some(start) = bytes.len().checked_sub(UUID_LENGTH + 1) else {
        return member_id;
    };
    let is_uuid = bytes[start..].iter().enumerate().all(|(i, byte)| match i {
        0 | 9 | 14 | 19 | 24 => *byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    });
    if is_uuid {
        &member_id[..start]
    } else {
        member_id
    }
}

/// The next free instance id in its own count: payments-3 gives payments-4; else name-2.
pub fn next_instance_id(group_instance_id: &str, taken: &FxHashSet<String>) -> String {
    let digits = group_instance_id.bytes().rev().take(9);
    let digits = digits.take_while(u8::is_ascii_digit).count();
    let (stem, number) = group_instance_id.split_at(group_instance_id.len() - digits);
    let dash = if digits == 0 { "-" } else { "" };
    let mut n = number.parse::<u64>().unwrap_or(1) + 1;
    loop {
        let instance_id = format!("{stem}{dash}{n}");
        if !taken.contains(&instance_id) {
            return instance_id;
        }
        n += 1;
    }
}
