// SPDX-License-Identifier: Apache-2.0
//! Mirror of `Owners` in `general.py`: the member order of Kafka's map `currentAssignment`.
//!
//! The order matters only if two members may hold one partition, so only such groups have an
//! `Owners`.

use crate::assignors::classic::claims::Claims;
use crate::group::model::MemberId;
use crate::group::spec::GroupSpec;
use crate::java::hash_table::{DEFAULT_SLOTS, HashTable};
use crate::java::order::{compare_names, string_hash};

/// The hash table of the map, without the fixed members.
pub struct Owners<'g, 'a> {
    group: &'g GroupSpec<'a>,
    table: HashTable,
    /// Members that step 5 took out, in the order in which Kafka visits them.
    fixed: Vec<MemberId>,
}

impl<'g, 'a> Owners<'g, 'a> {
    /// Builds the map as it is after step 5. Step 5 visits the members in the order of another map,
    /// which was created with a capacity for all of them.
    pub fn without_fixed(claims: &Claims<'g, 'a>, is_fixed: &[bool]) -> Self {
        let group = claims.group;
        let walked = claims.members.iter().copied();
        let slots = claims.members.len().next_power_of_two();
        let mut fixed = table(group, walked.clone(), slots).keys();
        fixed.retain(|&m| is_fixed[m as usize]);
        let mut table = table(group, walked, DEFAULT_SLOTS);
        for &member in &fixed {
            table.remove(member);
        }
        Self {
            group,
            table,
            fixed,
        }
    }

    pub fn order(&self) -> Vec<MemberId> {
        self.table.keys()
    }

    /// Clears the map and refills it from a copy, as Kafka does; the number of slots stays.
    pub fn copy_back(&mut self) {
        let copy = table(self.group, self.order().into_iter(), DEFAULT_SLOTS);
        let slots = self.table.slots();
        self.table = table(self.group, copy.keys().into_iter(), slots);
    }

    /// All members in the map's order, after the fixed members are put back into it.
    pub fn with_fixed(mut self) -> Vec<MemberId> {
        let fixed = table(self.group, self.fixed.iter().copied(), DEFAULT_SLOTS);
        put_all(&mut self.table, self.group, fixed.keys().into_iter());
        self.table.keys()
    }
}

fn table(group: &GroupSpec, members: impl Iterator<Item = MemberId>, slots: usize) -> HashTable {
    let mut table = HashTable::with_slots(slots);
    put_all(&mut table, group, members);
    table
}

fn put_all(table: &mut HashTable, group: &GroupSpec, members: impl Iterator<Item = MemberId>) {
    let id = |m: MemberId| group.members[m as usize].member_id;
    for member in members {
        table.put(member, string_hash(id(member)), &|a, b| {
            compare_names(id(a), id(b))
        });
    }
}
