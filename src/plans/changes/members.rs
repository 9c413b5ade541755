// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/members.py`: members join or leave, or a rack is lost.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::draft::{Draft, DraftMember};
use super::edits::{Follows, error, find_member};
use super::made_up::{MadeUp, client_names, instance_names, not_empty, prefix_of};
use crate::error::GroupError;
use crate::group::lists::ascending;
use crate::group::model::{RackId, TopicPartition, quoted};

pub const MOST_NEW_MEMBERS: u32 = 100_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddMembers {
    pub count: u32,
    pub like: Option<String>,
    pub rack: Option<String>,
    pub client_id: Option<String>,
    pub instance_id: Option<String>,
}

impl AddMembers {
    pub fn join(&self, group: &mut Draft, ids: &mut MadeUp) -> Result<Follows, GroupError> {
        let model = match &self.like {
            Some(name) => find_member(group, name)?,
            None => group.members.len() - 1,
        };
        for (name, value) in [
            ("client-id", &self.client_id),
            ("instance-id", &self.instance_id),
        ] {
            if value.as_deref() == Some("") {
                let problem = format!("{name} is empty; name the first of the new members");
                return Err(error(problem));
            }
        }
        let instances = group.members.iter();
        let instances: FxHashSet<String> = instances
            .filter_map(|member| member.group_instance_id.as_deref().map(Into::into))
            .collect();
        if let Some(given) = self
            .instance_id
            .as_ref()
            .filter(|id| instances.contains(*id))
        {
            let problem = format!("{} is the instance id of a member already", quoted(given));
            return Err(error(problem));
        }
        let mut model = group.members[model].clone();
        if let Some(name) = &self.rack {
            let sends_rack = model.as_sent.sends_rack();
            model.rack = group.rack(name).filter(|_| sends_rack);
            model.as_sent.empty_rack = sends_rack && name.is_empty();
        }
        model.owned.clear();
        model.generation_id = None;
        model.as_sent.user_data_generation_id = None;
        model.origin = None;
        let joined = self.named(&model, group, instances, ids);
        group.members.extend(joined);
        Ok(Follows::Rebalance)
    }

    /// Returns the new members, which differ from `model` only in their names and ids.
    fn named<'a>(
        &self,
        model: &DraftMember<'a>,
        group: &Draft<'a>,
        mut instances: FxHashSet<String>,
        ids: &mut MadeUp,
    ) -> Vec<DraftMember<'a>> {
        let names = group.members.iter();
        let names: Vec<String> = names
            .map(|member| prefix_of(member.client_id.as_deref(), &member.member_id).to_owned())
            .collect();
        let name = prefix_of(model.client_id.as_deref(), &model.member_id);
        let (mut client_ids, client_basis) = client_names(name, &names, self.client_id.as_deref());
        let is_static = self.instance_id.is_some() || model.group_instance_id.is_some();
        let instance = model.group_instance_id.as_deref().unwrap_or("");
        let (mut instance_ids, instance_basis) =
            instance_names(instance, instances.clone(), self.instance_id.as_deref());
        let basis = if is_static {
            instance_basis
        } else {
            client_basis
        };
        let places = ascending(match is_static {
            true => instances.iter().cloned().collect(),
            false => names,
        });
        // If the model's client id is unknown and no client id is given, the new members have none:
        // `names` are then the beginnings of member ids.
        let known = model.client_id.as_deref().is_some_and(|id| !id.is_empty());
        let has_client_id = known || self.client_id.is_some();
        // Made-up ids are unique, so new ids are compared only with the old members' ids.
        let taken = group.member_ids();
        let joined = (0..self.count).map(|_| {
            let mut member = model.clone();
            let mut client_id = client_ids.following();
            let instance_id = is_static.then(|| {
                let drawn = ids.place(instance_ids.following(), basis, &places, &instances);
                instances.insert(drawn.clone());
                drawn
            });
            if !is_static {
                client_id = ids.place(client_id, basis, &places, &FxHashSet::default());
            }
            let name = not_empty(instance_id.as_deref()).unwrap_or(&client_id);
            member.member_id = Cow::Owned(ids.newcomer(name, basis, &taken, is_static));
            member.group_instance_id = instance_id.map(Cow::Owned);
            if has_client_id {
                member.client_id = Some(Cow::Owned(client_id));
            }
            member
        });
        joined.collect()
    }
}

pub fn remove(
    group: &mut Draft,
    is_gone: impl Fn(usize, &DraftMember) -> bool,
) -> Result<Follows, GroupError> {
    let gone: Vec<bool> = (0..)
        .zip(&group.members)
        .map(|(m, one)| is_gone(m, one))
        .collect();
    if gone.iter().all(|&gone| gone) {
        return Err(GroupError::no_members_left(group.subscribed()));
    }
    let mut gone = gone.into_iter();
    group.members.retain(|_| gone.next() == Some(false));
    Ok(Follows::Rebalance)
}

pub fn lose_rack(group: &mut Draft, name: &str) -> Result<Follows, GroupError> {
    let rack = group.rack_names.iter().position(|rack| rack == name);
    let rack = rack.map(|rack| rack as RackId);
    let is_in = |member: &DraftMember| rack.is_some() && member.rack == rack;
    let waiting: Vec<TopicPartition> = group
        .members
        .iter()
        .filter(|member| is_in(member))
        .flat_map(|member| member.owned.iter().copied())
        .collect();
    let gone = group.members.iter().any(is_in);
    let Some(rack) = rack.filter(|&rack| gone || group.has_replica(rack)) else {
        return Err(GroupError::not_affected(format!(
            "no member and no replica is in rack {}",
            quoted(name)
        )));
    };
    remove(group, |_, member| is_in(member))?;
    group.wait_for(waiting);
    group.lose_replicas(rack);
    // If no member was in the rack, only a leader that has a rack notices the lost replicas. The
    // leader is unknown here, so one member with a rack is enough.
    if gone || group.members.iter().any(|member| member.rack.is_some()) {
        return Ok(Follows::Rebalance);
    }
    Ok(Follows::Nothing)
}
