// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/changes/assignor.py`: the members restart one after another with another list
//! of assignors. No votes are counted here. In a plan, a member lists `old` until its restart; from
//! then on, it lists `new` and then `old`. The new assignor is selected once no member is left that
//! lists only `old`.

use rustc_hash::FxHashSet;

use super::bounces::bounce;
use super::draft::{Draft, DraftMember};
use super::edits::{Follows, error};
use super::made_up::MadeUp;
use crate::assignors::{Assignor, protocol_name};
use crate::error::GroupError;
use crate::group::model::quoted;

pub fn switch<'a>(
    group: &mut Draft<'a>,
    ids: &mut MadeUp,
    name: &str,
    mut then: impl FnMut(&mut Draft<'a>, Follows, Option<String>) -> Result<(), GroupError>,
) -> Result<(), GroupError> {
    let mut switch = Switch::of(group, name)?;
    let members: Vec<String> = member_ids(group);
    for member_id in &members {
        switch.left.remove(member_id);
        let place = group
            .members
            .iter()
            .position(|one| one.member_id == *member_id);
        switch.static_at = place.filter(|&m| group.members[m].group_instance_id.is_some());
        bounce(
            group,
            ids,
            Some(member_id),
            None,
            None,
            |group, follows, cause| {
                let (follows, cause) = switch.edit(group, follows, cause);
                then(group, follows, cause)
            },
        )?;
    }
    for member in &mut group.members {
        member.forgets = false;
    }
    Ok(())
}

fn member_ids(group: &Draft) -> Vec<String> {
    let members = group.members.iter();
    members.map(|one| one.member_id.to_string()).collect()
}

/// A switch from `old` to `new`. `left` holds the ids of the members that have not restarted yet.
/// If `was_eager`, they also list an eager assignor. If `one_name`, both assignors have the same
/// name in JoinGroup: then the leader's library decides which of the two computes the answer.
struct Switch {
    old: Assignor,
    new: Assignor,
    one_name: bool,
    was_eager: bool,
    left: FxHashSet<String>,
    leader: String,
    /// The index of the restarting member, if it is static: it keeps this index.
    static_at: Option<usize>,
}

impl Switch {
    fn of(group: &Draft, name: &str) -> Result<Self, GroupError> {
        let new = Assignor::by_name(name).map_err(|wrong| error(wrong.problem))?;
        if new.is_server_side() {
            return Err(error(not_of_leaders(new, group)));
        }
        let old = group.assignor;
        if new == old {
            let problem = format!("{} is the group's assignor already", quoted(name));
            return Err(if group.is_eager {
                error(problem + ENDS_EAGER)
            } else {
                GroupError::not_affected(problem)
            });
        }
        let ids = member_ids(group);
        Ok(Self {
            old,
            new,
            one_name: protocol_name(old.name()) == protocol_name(new.name()),
            was_eager: group.is_eager && old.withholds(),
            leader: ids[0].clone(),
            static_at: None,
            left: ids.into_iter().collect(),
        })
    }

    fn edit(
        &mut self,
        group: &mut Draft,
        mut follows: Follows,
        mut cause: Option<String>,
    ) -> (Follows, Option<String>) {
        // 1.
        for member in &mut group.members {
            if !self.left.contains(&*member.member_id) {
                member.sends_under(self.new);
            }
        }
        // 2. and 3.
        let takes_over = !self.one_name && self.left.is_empty() && group.assignor == self.old;
        if takes_over {
            group.assignor = self.new;
            follows = Follows::Rebalance;
            cause = cause.map(|cause| {
                let cause = cause.strip_suffix(": no rebalance").unwrap_or(&cause);
                format!("{cause}, and {} takes over", self.new.name())
            });
        } else if self.one_name && self.leads_again(group) {
            group.assignor = self.new;
        }
        // 4.
        group.is_eager = false;
        let forgets = takes_over || group.assignor.withholds();
        let mut all = true;
        for member in &mut group.members {
            member.forgets = forgets && self.is_eager(member);
            all &= member.forgets;
        }
        if follows == Follows::Rebalance && all {
            follows = Follows::StartingOver;
        }
        (follows, cause)
    }

    fn is_eager(&self, member: &DraftMember) -> bool {
        if self.left.contains(&*member.member_id) {
            return self.was_eager || !self.old.withholds();
        }
        !self.new.withholds() || !self.one_name && !self.old.withholds()
    }

    /// Returns whether the present leader has restarted. A static leader stays the leader; after a
    /// dynamic leader leaves, the first member of the broker's map leads.
    fn leads_again(&mut self, group: &Draft) -> bool {
        if group.members.iter().all(|one| one.member_id != self.leader) {
            let follower = || group.spec().members_in_order()[0] as usize;
            let leader = self.static_at.unwrap_or_else(follower);
            self.leader = group.members[leader].member_id.to_string();
        }
        !self.left.contains(&self.leader)
    }
}

const ENDS_EAGER: &str = "; `compare` has the rolling bounce after which members list it alone";

fn not_of_leaders(assignor: Assignor, group: &Draft) -> String {
    let name = quoted(assignor.name());
    let kind = match assignor {
        Assignor::ShareSimple => "share",
        Assignor::StreamsSticky => "streams",
        _ => {
            let protocol = assignor.name();
            return format!(
                "{name} is an assignor of the other protocol; switch-protocol={protocol} leads to it"
            );
        }
    };
    let own = quoted(group.assignor.name());
    let shares_or_tasks = [Assignor::ShareSimple, Assignor::StreamsSticky];
    let fit =
        |one: &Assignor| !one.is_dialect() && !one.is_ours() && !shares_or_tasks.contains(one);
    let fitting: Vec<&str> = Assignor::ALL
        .into_iter()
        .filter(fit)
        .map(Assignor::name)
        .collect();
    format!(
        "{name} assigns {kind} groups only, and this is a consumer group, which runs {own}; \
         assignors that fit: {}",
        fitting.join(", ")
    )
}
