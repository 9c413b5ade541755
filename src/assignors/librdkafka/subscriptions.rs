// SPDX-License-Identifier: Apache-2.0
//! Mirror of `subscriptions.py`: the orders in which a librdkafka leader visits members and topics.
//! Names are compared as `str`s, that is, by their UTF-8 bytes.

use std::cmp::Ordering;

use crate::group::model::MemberId;
use crate::group::spec::GroupSpec;

/// Returns the members that a librdkafka leader knows (those with topics), in the group's order.
pub fn members_with_topics(group: &GroupSpec) -> Vec<MemberId> {
    let members = 0..group.members.len() as MemberId;
    members
        .filter(|&m| !group.subscription(m).is_empty())
        .collect()
}

pub fn compare_by_instance(group: &GroupSpec, a: MemberId, b: MemberId) -> Ordering {
    let (a, b) = (&group.members[a as usize], &group.members[b as usize]);
    match (a.group_instance_id, b.group_instance_id) {
        (Some(x), Some(y)) => x.cmp(y),
        _ => a.member_id.cmp(b.member_id),
    }
}

pub fn by_instance(group: &GroupSpec, members: Vec<MemberId>) -> Vec<MemberId> {
    merge_sort(members, &|&a, &b| compare_by_instance(group, a, b))
}

/// Sorts by merging, as glibc's `qsort` does. If `compare` is not transitive, the result depends on
/// this algorithm.
pub fn merge_sort<T: Copy>(items: Vec<T>, compare: &impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if items.len() < 2 {
        return items;
    }
    let middle = items.len() / 2;
    let left = merge_sort(items[..middle].to_vec(), compare);
    let right = merge_sort(items[middle..].to_vec(), compare);
    let mut merged = Vec::with_capacity(items.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if compare(&left[i], &right[j]).is_le() {
            merged.push(left[i]);
            i += 1;
        } else {
            merged.push(right[j]);
            j += 1;
        }
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    merged
}
