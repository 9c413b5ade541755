// SPDX-License-Identifier: Apache-2.0
package kafkarebalance.balanced;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import kafkarebalance.balanced.Levels.Level;
import kafkarebalance.balanced.Network.Cell;
import kafkarebalance.balanced.Network.Count;
import kafkarebalance.balanced.Network.Given;
import kafkarebalance.balanced.Network.Hub;
import kafkarebalance.balanced.Network.HubMembers;
import kafkarebalance.balanced.Network.Partition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * balanced: the most even load; then most partitions in their readers' racks, fewest moves, spread topics.
 *
 * <p>A pure function of the members, their subscriptions, racks and present targets, and of the topics' partitions and
 * racks: no threads, no files, no memory. Mirror of {@code python/kafka_rebalance/assignors/balance/balanced.py}, which
 * explains the steps. Ties are broken by instance ids, member ids, and topic ids.
 *
 * <p>Add this jar to the class path of all brokers before {@code group.consumer.assignors} names the class: see
 * {@code docs/balance-broker.md}.
 */
public final class BalancedAssignor implements ConsumerGroupPartitionAssignor {
    private static final String NAME = "balanced";
    private static final long MOST_CELLS = 100_000;
    private static final int MOST_PARTITIONS = 5_000;

    /** A member's new target; the topics and partitions have the order of ids and numbers. */
    private record Target(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}

    /** The brokers create an assignor for each thread that runs groups. */
    public BalancedAssignor() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        var classes = new Classes(group, topics);
        var coarse = new Network(classes, group, topics, false);
        var cells = spreadsExactly(classes) ? new Network(classes, group, topics, true) : coarse;
        List<List<Partition>> answer = new ArrayList<>();
        classes.memberIds.forEach(id -> answer.add(new ArrayList<>()));
        // 1.
        for (Level level : Levels.of(classes)) {
            // 3.
            Hub hub = alike(classes, coarse, level);
            if (hub != null) {
                handOut(classes, coarse, level, new Given(Map.of(), List.of(hub)), answer);
            } else {
                // 2. and 4.
                handOut(classes, cells, level, cells.cheapest(level), answer);
            }
        }
        Map<String, MemberAssignment> targets = new HashMap<>();
        for (int m = 0; m < answer.size(); m++) {
            targets.put(classes.memberIds.get(m), target(classes, answer.get(m)));
        }
        return new GroupAssignment(targets);
    }

    private static Target target(Classes classes, List<Partition> owned) {
        Map<Uuid, Set<Integer>> partitions = new LinkedHashMap<>();
        owned.stream().sorted().forEach(one -> partitions
                .computeIfAbsent(classes.topicIds.get(one.topic()), id -> new LinkedHashSet<>()).add(one.number()));
        return new Target(partitions);
    }

    /** Returns whether the group is small enough for the exact spread of its topics. */
    private static boolean spreadsExactly(Classes classes) {
        long cells = 0;
        long partitions = 0;
        for (int c = 0; c < classes.topics.size(); c++) {
            long sharers = classes.subscribers.get(c).stream().mapToLong(k -> classes.members.get(k).size()).sum();
            cells += classes.supply.get(c) * sharers;
            partitions += classes.supply.get(c);
        }
        return cells <= MOST_CELLS && partitions <= MOST_PARTITIONS;
    }

    /** Returns the hub of all members if they do not differ and none of them owns a partition; else null. */
    private static Hub alike(Classes classes, Network network, Level level) {
        List<Integer> here = network.lotsOf(level);
        List<HubMembers> hubs = List.copyOf(network.hubs(level).values());
        Set<Integer> inside = new HashSet<>(hubs.get(0).members());
        boolean owned = here.stream().anyMatch(
                n -> network.lots.get(n).held().keySet().stream().anyMatch(inside::contains));
        if (hubs.size() > 1 || owned) {
            return null;
        }
        List<Count> wanted = new ArrayList<>();
        for (int m : hubs.get(0).members()) {
            boolean more = wanted.size() < level.extra();
            wanted.add(new Count(m, more ? level.load() : Math.max(level.load() - 1, 0)));
        }
        return new Hub(wanted, here.stream().map(n -> new Count(n, network.lots.get(n).partitions().size())).toList());
    }

    /** Adds the partitions of a level to {@code answer}, a list for each member. */
    private static void handOut(
            Classes classes, Network network, Level level, Given given, List<List<Partition>> answer) {
        Map<Integer, ArrayDeque<Partition>> free = new HashMap<>();
        for (int n : network.lotsOf(level)) {
            Map<Integer, List<Partition>> owned = new TreeMap<>();
            network.lots.get(n).partitions().forEach(one -> owned.computeIfAbsent(
                    classes.owner[one.topic()][one.number()], owner -> new ArrayList<>()).add(one));
            List<Partition> left = new ArrayList<>();
            owned.forEach((m, partitions) -> {
                List<Partition> spread = spread(partitions);
                int kept = given.keep().getOrDefault(new Cell(n, m), 0);
                spread.subList(0, kept).forEach(answer.get(Math.max(m, 0))::add);
                left.addAll(spread.subList(kept, spread.size()));
            });
            left.sort(null);
            free.put(n, new ArrayDeque<>(left));
        }
        for (Hub hub : given.hubs()) {
            List<Partition> batch = new ArrayList<>();
            for (Count lot : hub.lots()) {
                for (int i = 0; i < lot.partitions(); i++) {
                    batch.add(free.get(lot.of()).remove());
                }
            }
            var waiting = new ArrayDeque<>(hub.wanted().stream().filter(one -> one.partitions() > 0).toList());
            batch.sort(null);
            for (Partition one : batch) {
                Count next = waiting.remove();
                answer.get(next.of()).add(one);
                if (next.partitions() > 1) {
                    waiting.add(new Count(next.of(), next.partitions() - 1));
                }
            }
        }
    }

    /** Returns the first partition of each topic, then the second ones, and so on. */
    private static List<Partition> spread(List<Partition> partitions) {
        record Turn(int turn, Partition partition) {}
        Map<Integer, Integer> seen = new HashMap<>();
        return partitions.stream()
                .map(one -> new Turn(seen.merge(one.topic(), 1, Integer::sum), one))
                .sorted(Comparator.comparingInt(Turn::turn))
                .map(Turn::partition)
                .toList();
    }
}
