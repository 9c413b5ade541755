// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/made_up.py`, without draws: names and ids of members that do not exist yet.

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

/// Names of newcomers, one after another.
pub struct Names {
    first: Option<String>,
    rest: Rest,
}

enum Rest {
    Shared(String),
    Counted {
        stem: String,
        width: usize,
        n: u64,
        taken: FxHashSet<String>,
    },
}

impl Names {
    pub fn following(&mut self) -> String {
        if let Some(first) = self.first.take() {
            return first;
        }
        match &mut self.rest {
            Rest::Shared(name) => name.clone(),
            Rest::Counted {
                stem,
                width,
                n,
                taken,
            } => loop {
                *n += 1;
                let name = format!("{stem}{n:0width$}", width = *width);
                if !taken.contains(&name) {
                    return name;
                }
            },
        }
    }
}

/// Client ids of members like the one called `model`; `names` are those of all members.
pub fn client_names(model: &str, names: &[String], given: Option<&str>) -> Names {
    let taken = || names.iter().cloned().collect();
    if let Some(given) = given {
        return Names {
            first: Some(given.to_owned()),
            rest: match digits(given) {
                0 => Rest::Shared(given.to_owned()),
                _ => count_on(given, taken()),
            },
        };
    }
    let same = names.iter().filter(|name| *name == model).count();
    let rest = if same == 1 && digits(model) > 0 {
        count_on(model, taken())
    } else {
        Rest::Shared(model.to_owned())
    };
    Names { first: None, rest }
}

/// Instance ids, never one twice; `taken` are those of all static members.
pub fn instance_names(model: &str, taken: FxHashSet<String>, given: Option<&str>) -> Names {
    Names {
        first: given.map(ToOwned::to_owned),
        rest: count_on(given.unwrap_or(model), taken),
    }
}

/// The free names that follow in a name's own count: payments-3, payments-4; else name-2.
fn count_on(name: &str, taken: FxHashSet<String>) -> Rest {
    let width = digits(name);
    let (stem, number) = name.split_at(name.len() - width);
    let dash = if width == 0 { "-" } else { "" };
    Rest::Counted {
        stem: format!("{stem}{dash}"),
        width,
        n: number.parse().unwrap_or(1),
        taken,
    }
}

/// How many digits, of at most nine, a name ends with.
fn digits(name: &str) -> usize {
    let last = name.bytes().rev().take(9);
    last.take_while(u8::is_ascii_digit).count()
}
