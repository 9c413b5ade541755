// SPDX-License-Identifier: Apache-2.0
package kafkarebalance.balanced;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import kafkarebalance.balanced.Levels.Level;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Finds the best way to a level's balance as a cheapest flow: racks, then moves, then spread topics.
 *
 * <p>Mirror of {@code network.py}, which draws the network.
 */
final class Network {
    private static final int NO_RACK = -1;

    /** A partition of a topic, both as numbers; in the order of topics. */
    record Partition(int topic, int number) implements Comparable<Partition> {
        @Override
        public int compareTo(Partition other) {
            return topic == other.topic ? number - other.number : topic - other.topic;
        }
    }

    /**
     * Interchangeable partitions: those of a topic class (of one topic, if topics are to be spread) with equal racks.
     * {@code first} is the number of the first lot of the same topic; {@code held}: how many have which owner.
     */
    record Lot(int topicClass, int first, List<Integer> racks, List<Partition> partitions,
            TreeMap<Integer, Integer> held) {}

    /** A lot or a hub of lots, and a member. */
    record Cell(int lot, int member) {}

    /** A number of partitions of a member, or from a lot. */
    record Count(int of, int partitions) {}

    /** Members that gain partitions: how many each of them wants, and how many come from each lot. */
    record Hub(List<Count> wanted, List<Count> lots) {}

    /** The members of a hub, their rack, and the lots that they can read. */
    record HubMembers(List<Integer> members, int rack, List<Integer> lots) {}

    /** How many partitions of a lot stay with a member, and the hubs that hand out the others. */
    record Given(Map<Cell, Integer> keep, List<Hub> hubs) {}

    final List<Lot> lots = new ArrayList<>();
    /** Topic class to its lots. */
    final List<List<Integer>> ofClass = new ArrayList<>();
    private final Classes classes;
    private final boolean byTopic;
    /** Member to the number of its rack. */
    private final int[] rack;

    Network(Classes classes, GroupSpec group, SubscribedTopicDescriber describer, boolean byTopic) {
        this.classes = classes;
        this.byTopic = byTopic;
        List<String> names = classes.memberIds.stream()
                .map(id -> group.memberSubscription(id).rackId().orElse("")).toList();
        Map<String, Integer> numbers = new HashMap<>();
        new TreeSet<>(names).stream().filter(name -> !name.isEmpty())
                .forEach(name -> numbers.put(name, numbers.size()));
        rack = names.stream().mapToInt(name -> numbers.getOrDefault(name, NO_RACK)).toArray();
        for (int c = 0; c < classes.topics.size(); c++) {
            makeLots(c, numbers, describer);
        }
    }

    private void makeLots(int topicClass, Map<String, Integer> numbers, SubscribedTopicDescriber describer) {
        List<Integer> made = new ArrayList<>();
        Map<List<Integer>, List<Partition>> byRacks = new LinkedHashMap<>();
        List<Integer> names = classes.topics.get(topicClass);
        for (int i = 0; i < names.size(); i++) {
            int topic = names.get(i);
            for (int p = 0; p < classes.owner[topic].length; p++) {
                Stream<String> near = numbers.isEmpty() ? Stream.of()
                        : describer.racksForPartition(classes.topicIds.get(topic), p).stream();
                List<Integer> where = near.filter(numbers::containsKey).map(numbers::get).sorted().toList();
                byRacks.computeIfAbsent(where, key -> new ArrayList<>()).add(new Partition(topic, p));
            }
            if (byTopic || i == names.size() - 1) {
                int first = lots.size();
                byRacks.keySet().stream().sorted(Network::compareRacks).forEach(racks -> {
                    made.add(lots.size());
                    lots.add(lot(topicClass, first, racks, byRacks.get(racks)));
                });
                byRacks.clear();
            }
        }
        ofClass.add(made);
    }

    private Lot lot(int topicClass, int first, List<Integer> racks, List<Partition> partitions) {
        var held = new TreeMap<Integer, Integer>();
        for (Partition one : partitions) {
            int owner = classes.owner[one.topic][one.number];
            if (owner != Classes.NOBODY) {
                held.merge(owner, 1, Integer::sum);
            }
        }
        return new Lot(topicClass, first, racks, partitions, held);
    }

    private static int compareRacks(List<Integer> one, List<Integer> other) {
        for (int i = 0; i < one.size() && i < other.size(); i++) {
            if (!one.get(i).equals(other.get(i))) {
                return one.get(i) - other.get(i);
            }
        }
        return one.size() - other.size();
    }

    List<Integer> lotsOf(Level level) {
        return level.topics().stream().flatMap(c -> ofClass.get(c).stream()).toList();
    }

    /** Returns the cheapest flow of a level. */
    Given cheapest(Level level) {
        List<Integer> here = lotsOf(level);
        List<Integer> members = level.members().stream().flatMap(k -> classes.members.get(k).stream()).toList();
        Map<Cell, HubMembers> hubs = hubs(level);
        int source = 0;
        int sink = 1;
        int extras = 2;
        int nodes = 3;
        Map<Integer, Integer> lotNode = new LinkedHashMap<>();
        for (int n : here) {
            lotNode.put(n, nodes++);
        }
        Map<Cell, Integer> hubNode = new LinkedHashMap<>();
        for (Cell key : hubs.keySet()) {
            hubNode.put(key, nodes++);
        }
        Map<Integer, Integer> memberNode = new LinkedHashMap<>();
        for (int m : members) {
            memberNode.put(m, nodes++);
        }
        long partitions = level.topics().stream().mapToLong(classes.supply::get).sum();
        long move = byTopic ? 1 + partitions * (partitions - 1) / 2 : 1;
        long away = move * (1 + partitions);

        var flow = new Flow(nodes);
        lotNode.forEach((n, node) -> flow.add(source, node, lots.get(n).partitions.size(), 0));
        Map<Cell, Integer> kept = new LinkedHashMap<>();
        lotNode.forEach((n, node) -> lots.get(n).held.forEach((m, count) -> {
            if (memberNode.containsKey(m)) {
                int to = byTopic ? hubNode.get(new Cell(lots.get(n).first, m)) : memberNode.get(m);
                kept.put(new Cell(n, m), flow.add(node, to, count, isNear(n, rack[m]) ? 0 : away));
            }
        }));
        Map<Cell, List<Count>> into = new HashMap<>();
        hubs.forEach((key, hub) -> into.put(key, hub.lots.stream().map(n -> new Count(n, flow.add(
                lotNode.get(n), hubNode.get(key), Flow.UNLIMITED, move + (isNear(n, hub.rack) ? 0 : away)))).toList()));
        Map<Cell, List<Integer>> out = new HashMap<>();
        hubs.forEach((key, hub) -> out.put(key, outOf(flow, hub, hubNode.get(key), memberNode, level.load())));
        for (int node : memberNode.values()) {
            flow.add(node, sink, Math.max(level.load() - 1, 0), 0);
            flow.add(node, extras, 1, 0);
        }
        flow.add(extras, sink, level.extra(), 0);
        flow.cheapest(source, sink);

        kept.replaceAll((cell, arc) -> flow.sent(arc));
        List<Hub> found = new ArrayList<>();
        hubs.forEach((key, hub) -> {
            List<Count> from = into.get(key).stream().map(arc -> new Count(arc.of, flow.sent(arc.partitions)))
                    .filter(count -> count.partitions > 0).toList();
            List<Count> wanted = new ArrayList<>();
            for (int i = 0; i < hub.members.size(); i++) {
                int sent = byTopic ? from.stream().mapToInt(Count::partitions).sum() : flow.sent(out.get(key).get(i));
                wanted.add(new Count(hub.members.get(i), sent));
            }
            found.add(new Hub(wanted, from));
        });
        return new Given(kept, found);
    }

    private boolean isNear(int lot, int rack) {
        return lots.get(lot).racks.contains(rack);
    }

    /** Adds the arcs from a hub to its members; a hub of one topic and one member pays for pairs. */
    private List<Integer> outOf(Flow flow, HubMembers hub, int node, Map<Integer, Integer> memberNode, int load) {
        if (!byTopic) {
            return hub.members.stream().map(m -> flow.add(node, memberNode.get(m), Flow.UNLIMITED, 0)).toList();
        }
        int supply = hub.lots.stream().mapToInt(n -> lots.get(n).partitions.size()).sum();
        for (int x = 0; x < Math.min(supply, load); x++) {
            flow.add(node, memberNode.get(hub.members.get(0)), 1, x);
        }
        return List.of();
    }

    /** Returns the hubs of a level, in the order in which they hand out partitions. */
    Map<Cell, HubMembers> hubs(Level level) {
        Map<Cell, HubMembers> hubs = new LinkedHashMap<>();
        Set<Integer> inside = Set.copyOf(level.members());
        if (byTopic) {
            for (int n : lotsOf(level)) {
                classes.subscribers.get(lots.get(n).topicClass).stream().filter(inside::contains)
                        .flatMap(k -> classes.members.get(k).stream())
                        .forEach(m -> hubs.computeIfAbsent(new Cell(lots.get(n).first, m),
                                key -> new HubMembers(List.of(m), rack[m], new ArrayList<>())).lots.add(n));
            }
            return hubs;
        }
        for (int k : level.members()) {
            List<Integer> fitting = lotsOf(level).stream().filter(n -> classes.subscriptions.get(k)
                    .get(lots.get(n).partitions.get(0).topic)).toList();
            Map<Integer, List<Integer>> byRack = new TreeMap<>();
            classes.members.get(k).forEach(m -> byRack.computeIfAbsent(rack[m], key -> new ArrayList<>()).add(m));
            byRack.forEach((where, of) -> hubs.put(new Cell(k, where), new HubMembers(of, where, fitting)));
        }
        return hubs;
    }
}
