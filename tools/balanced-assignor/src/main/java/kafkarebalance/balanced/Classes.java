// SPDX-License-Identifier: Apache-2.0
package kafkarebalance.balanced;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * Numbers the members and topics of a group, and reduces the group to classes of topics and members.
 *
 * <p>Topics with equal subscribers are one topic class, members with equal subscriptions are one subscription class.
 * Mirror of {@code classes.py}; there, a member's number is its index in the group.
 */
final class Classes {
    static final int NOBODY = -1;
    private static final int CONTESTED = -2;

    /** Static members by instance id, then dynamic ones, each by member id. The index is a member's number. */
    final List<String> memberIds;
    /** In the order of the ids, because a plug-in sees no names. The index is a topic's number. */
    final List<Uuid> topicIds;
    /** By topic and partition: the only member whose target has it, if this member subscribes to the topic. */
    final int[][] owner;
    /** Topic class to its topics, to its number of partitions, and to its subscription classes, ascending. */
    final List<List<Integer>> topics = new ArrayList<>();
    final List<Integer> supply = new ArrayList<>();
    final List<List<Integer>> subscribers = new ArrayList<>();
    /** Subscription class to its members, and to its topics. */
    final List<List<Integer>> members;
    final List<BitSet> subscriptions;

    /** Topic classes are in the order of their first topics, subscription classes in that of their first members. */
    Classes(GroupSpec group, SubscribedTopicDescriber describer) {
        memberIds = new ArrayList<>(group.memberIds());
        memberIds.sort(Comparator.<String, Boolean>comparing(id -> instanceId(group, id) == null)
                .thenComparing(id -> instanceId(group, id), Comparator.nullsFirst(Comparator.naturalOrder()))
                .thenComparing(Comparator.naturalOrder()));
        // The sets of a homogeneous group are equal; to read each of them would cost more than all that follows.
        boolean equal = group.subscriptionType() == SubscriptionType.HOMOGENEOUS && !memberIds.isEmpty();
        List<String> read = equal ? memberIds.subList(0, 1) : memberIds;
        Set<Uuid> named = new HashSet<>();
        read.forEach(id -> named.addAll(subscribed(group, id)));
        topicIds = named.stream().filter(id -> describer.numPartitions(id) > 0).sorted().toList();
        Map<Uuid, Integer> numberOf = new HashMap<>();
        topicIds.forEach(id -> numberOf.put(id, numberOf.size()));

        var topicsOf = new BitSet[memberIds.size()];
        Map<BitSet, List<Integer>> bySubscription = new LinkedHashMap<>();
        for (int m = 0; m < memberIds.size(); m++) {
            topicsOf[m] = m < read.size() ? numbers(subscribed(group, read.get(m)), numberOf) : topicsOf[0];
            bySubscription.computeIfAbsent(topicsOf[m], key -> new ArrayList<>()).add(m);
        }
        subscriptions = List.copyOf(bySubscription.keySet());
        members = List.copyOf(bySubscription.values());
        owner = new int[topicIds.size()][];
        for (int t = 0; t < owner.length; t++) {
            owner[t] = new int[describer.numPartitions(topicIds.get(t))];
            Arrays.fill(owner[t], NOBODY);
        }
        classifyTopics();
        findOwners(group, numberOf, topicsOf);
    }

    private static String instanceId(GroupSpec group, String memberId) {
        return group.memberSubscription(memberId).instanceId().orElse(null);
    }

    private static Set<Uuid> subscribed(GroupSpec group, String memberId) {
        return group.memberSubscription(memberId).subscribedTopicIds();
    }

    private static BitSet numbers(Set<Uuid> ids, Map<Uuid, Integer> numberOf) {
        var numbers = new BitSet();
        ids.stream().map(numberOf::get).filter(Objects::nonNull).forEach(numbers::set);
        return numbers;
    }

    private void classifyTopics() {
        Map<BitSet, List<Integer>> bySubscribers = new LinkedHashMap<>();
        for (int t = 0; t < owner.length; t++) {
            var classes = new BitSet();
            for (int k = 0; k < subscriptions.size(); k++) {
                classes.set(k, subscriptions.get(k).get(t));
            }
            bySubscribers.computeIfAbsent(classes, key -> new ArrayList<>()).add(t);
        }
        bySubscribers.forEach((classes, names) -> {
            topics.add(names);
            supply.add(names.stream().mapToInt(t -> owner[t].length).sum());
            subscribers.add(classes.stream().boxed().toList());
        });
    }

    /** A claim without a subscription makes no owner, but it contests other claims. */
    private void findOwners(GroupSpec group, Map<Uuid, Integer> numberOf, BitSet[] topicsOf) {
        for (int m = 0; m < memberIds.size(); m++) {
            int member = m;
            group.memberAssignment(memberIds.get(m)).partitions().forEach((id, partitions) -> {
                int[] of = numberOf.containsKey(id) ? owner[numberOf.get(id)] : new int[0];
                for (int p : partitions) {
                    if (p < of.length) {
                        of[p] = of[p] == NOBODY ? member : CONTESTED;
                    }
                }
            });
        }
        for (int t = 0; t < owner.length; t++) {
            int topic = t;
            Arrays.setAll(owner[t], p -> {
                int m = owner[topic][p];
                return m >= 0 && topicsOf[m].get(topic) ? m : NOBODY;
            });
        }
    }
}
