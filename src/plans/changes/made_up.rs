// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/made_up.py`: makes up names and ids of members that do not exist yet. A
//! draw is a run of the plan with other made-up ids.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use uuid::{Builder, Uuid};

use crate::group::model::RackId;

const UUID_LENGTH: usize = 36;

/// The origin of a new member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    Given,
    /// The name of all members.
    Shared,
    /// Counted from the number at the end of another member's name.
    Counted,
    /// Copied from the member that the new one is modelled on; not all members have this name.
    Copied,
    /// The name of a member that comes back.
    Known,
}

impl Basis {
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Shared => "shared",
            Self::Counted => "counted",
            Self::Copied => "copied",
            Self::Known => "known",
        }
    }

    fn is_guess(self) -> bool {
        matches!(self, Self::Counted | Self::Copied)
    }
}

/// A new member with a made-up id; `name` is the part of the id before the dash and the UUID.
pub struct Newcomer {
    pub member_id: String,
    pub name: String,
    pub basis: Basis,
    pub is_static: bool,
}

/// One choice of made-up ids. `number` is the draw's own number, `of` the number of draws; draw 0
/// is the plan itself. `instead_of` holds the member ids and names of draw 0's newcomers.
#[derive(Default)]
pub struct Draw {
    pub number: u32,
    pub of: u32,
    pub instead_of: Vec<(String, String)>,
}

/// Makes up ids; no id occurs twice.
#[derive(Default)]
pub struct MadeUp<'a> {
    group_id: &'a str,
    pub count: u32,
    draw: Draw,
    pub made: Vec<Newcomer>,
    pub places_guessed: bool,
    /// Each made-up member id or instance id of the plan itself (draw 0) -> the id in this draw.
    pub aliases: FxHashMap<String, String>,
    /// Each made-up client id of draw 0 -> the client id in this draw.
    pub client_aliases: FxHashMap<String, String>,
}

impl<'a> MadeUp<'a> {
    pub fn new(group_id: &'a str, draw: Draw) -> Self {
        Self {
            group_id,
            draw,
            ..Self::default()
        }
    }

    fn random(&self, suffix: &str) -> Uuid {
        let (group_id, draw, count) = (self.group_id, self.draw.number, self.count);
        let name = format!("{group_id}/{draw}/{count}{suffix}");
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())
    }

    /// Makes up a member id that is not in `taken`: `name`, a dash and a UUID.
    pub fn newcomer(
        &mut self,
        name: &str,
        basis: Basis,
        taken: &FxHashSet<&str>,
        is_static: bool,
    ) -> String {
        let member_id = loop {
            let random = self.random("");
            self.count += 1;
            let uuid = Builder::from_random_bytes(*random.as_bytes()).into_uuid();
            let member_id = format!("{name}-{uuid}");
            if !taken.contains(member_id.as_str()) {
                break member_id;
            }
        };
        if let Some((first_id, first_name)) = self.draw.instead_of.get(self.made.len()) {
            self.aliases.insert(first_id.clone(), member_id.clone());
            if basis == Basis::Counted {
                let names = match is_static {
                    true => &mut self.aliases,
                    false => &mut self.client_aliases,
                };
                names.insert(first_name.clone(), name.to_owned());
            }
        }
        self.made.push(Newcomer {
            member_id: member_id.clone(),
            name: name.to_owned(),
            basis,
            is_static,
        });
        member_id
    }

    /// Returns the racks in the order in which new replicas use them. The order is a guess: the
    /// plan itself (draw 0) keeps `racks`, the other even draws shuffle `racks`, and odd draws
    /// shuffle `perhaps`, which also contains racks that may have no brokers.
    pub fn placement(
        &mut self,
        racks: Vec<RackId>,
        perhaps: Vec<RackId>,
        names: &[Cow<str>],
    ) -> Vec<RackId> {
        self.places_guessed = true;
        if self.draw.number == 0 {
            return racks;
        }
        let mut drawn = if self.draw.number % 2 == 1 {
            perhaps
        } else {
            racks
        };
        drawn.sort_by_key(|&rack| self.random(&format!("/racks/{}", names[rack as usize])));
        drawn
    }

    /// Returns a made-up name instead of `name`, at a position among the sorted `names` that
    /// depends on the draw. In draw 0, or if `name` is not a guess, returns `name`.
    pub fn place(
        &self,
        name: String,
        basis: Basis,
        names: &[String],
        taken: &FxHashSet<String>,
    ) -> String {
        if self.draw.number == 0 || !basis.is_guess() {
            return name;
        }
        let mut share = (f64::from(self.draw.number) - 0.5) / f64::from(self.draw.of);
        if self.count > 0 {
            let random = self.random("/place").as_u128() as f64 / 2f64.powi(128);
            share = (share + random) % 1.0;
        }
        let place = (share * (names.len() + 1) as f64) as usize;
        // The new name must sort directly after `names[place - 1]`. In a member id, a dash follows
        // the name: "app.-…" sorts after "app-…" and before "app1-…".
        let mut drawn = match place {
            0 => "!".to_owned(),
            _ => format!("{}.", names[place - 1]),
        };
        while taken.contains(&drawn) {
            drawn.push('.');
        }
        drawn
    }
}

/// Returns the part of a member id before the UUID: the client id or, if that is unknown, the
/// member id without its UUID; "consumer" if this part is empty.
pub fn prefix_of<'a>(client_id: Option<&'a str>, member_id: &'a str) -> &'a str {
    let prefix = not_empty(client_id).unwrap_or_else(|| without_uuid(member_id));
    if prefix.is_empty() {
        "consumer"
    } else {
        prefix
    }
}

/// Whether `name` is the beginning of the member id with at least four digits of its UUID.
pub fn is_short_name(name: &str, member_id: &str) -> bool {
    let start = without_uuid(member_id).len();
    start < member_id.len() && name.len() >= start + 5 && member_id.starts_with(name)
}

/// Returns the id; None if it is empty, because an empty id identifies no member.
pub fn not_empty(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
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

/// Makes names for newcomers, one at a time.
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

/// Returns client ids for newcomers that copy a member with the client id `model`. `names` lists
/// the client ids of all members.
pub fn client_names(model: &str, names: &[String], given: Option<&str>) -> (Names, Basis) {
    let taken = || names.iter().cloned().collect();
    if let Some(given) = given {
        let names = Names {
            first: Some(given.to_owned()),
            rest: match digits(given) {
                0 => Rest::Shared(given.to_owned()),
                _ => count_on(given, taken()),
            },
        };
        return (names, Basis::Given);
    }
    let same = names.iter().filter(|name| *name == model).count();
    let (rest, basis) = if same == 1 && digits(model) > 0 {
        (count_on(model, taken()), Basis::Counted)
    } else if same == names.len() {
        (Rest::Shared(model.to_owned()), Basis::Shared)
    } else {
        (Rest::Shared(model.to_owned()), Basis::Copied)
    };
    (Names { first: None, rest }, basis)
}

/// Returns distinct instance ids for newcomers; `taken` holds the ids of all static members.
pub fn instance_names(
    model: &str,
    taken: FxHashSet<String>,
    given: Option<&str>,
) -> (Names, Basis) {
    let names = Names {
        first: given.map(ToOwned::to_owned),
        rest: count_on(given.unwrap_or(model), taken),
    };
    (names, given.map_or(Basis::Counted, |_| Basis::Given))
}

/// Counts on from the number in a name, and skips names in use: payments-4 follows payments-3. A
/// name without a number counts as number 1: payments-2 follows payments.
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

/// Returns the number of digits at the end of a name, at most nine.
fn digits(name: &str) -> usize {
    let last = name.bytes().rev().take(9);
    last.take_while(u8::is_ascii_digit).count()
}
