// SPDX-License-Identifier: Apache-2.0
package kafkarebalance.balanced;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Finds the best balance that the subscriptions allow, as levels.
 *
 * <p>Mirror of {@code levels.py}, which explains the steps and the proof.
 */
final class Levels {
    /** {@code extra} members (at least 1, unless {@code load} is 0) have {@code load} partitions, others one fewer. */
    record Level(int load, int extra, List<Integer> topics, List<Integer> members) {}

    /** The number of partitions that do not fit, and the topic and subscription classes on their side. */
    private record Cut(int left, List<Integer> topics, List<Integer> members) {}

    private final Classes classes;

    private Levels(Classes classes) {
        this.classes = classes;
    }

    /** Returns all levels, from the highest load to the lowest. */
    static List<Level> of(Classes classes) {
        var search = new Levels(classes);
        List<Integer> topics = new ArrayList<>(IntStream.range(0, classes.topics.size()).boxed().toList());
        List<Integer> members = new ArrayList<>(IntStream.range(0, classes.members.size()).boxed().toList());
        List<Level> found = new ArrayList<>();
        while (!members.isEmpty()) {
            // 1.
            int load = search.leastLoad(topics, members);
            if (load == 0) {
                found.add(new Level(0, 0, topics, members));
                break;
            }
            // 2.
            Cut cut = search.cut(topics, members, load - 1);
            found.add(new Level(load, cut.left, cut.topics, cut.members));
            // 3.
            topics.removeAll(Set.copyOf(cut.topics));
            members.removeAll(Set.copyOf(cut.members));
        }
        return found;
    }

    private int leastLoad(List<Integer> topics, List<Integer> members) {
        int load = meanUp(topics, members);
        for (Cut cut = cut(topics, members, load); cut.left > 0; cut = cut(topics, members, load)) {
            load = meanUp(cut.topics, cut.members);
        }
        return load;
    }

    private int meanUp(List<Integer> topics, List<Integer> members) {
        int supply = topics.stream().mapToInt(classes.supply::get).sum();
        int sharers = members.stream().mapToInt(k -> classes.members.get(k).size()).sum();
        return (supply + sharers - 1) / sharers;
    }

    private Cut cut(List<Integer> topics, List<Integer> members, int load) {
        int source = 0;
        int sink = 1;
        Map<Integer, Integer> memberNode = new HashMap<>();
        members.forEach(k -> memberNode.put(k, 2 + topics.size() + memberNode.size()));
        var flow = new Flow(2 + topics.size() + members.size());
        for (int i = 0; i < topics.size(); i++) {
            int c = topics.get(i);
            flow.add(source, 2 + i, classes.supply.get(c), 0);
            for (int k : classes.subscribers.get(c)) {
                if (memberNode.containsKey(k)) {
                    flow.add(2 + i, memberNode.get(k), Flow.UNLIMITED, 0);
                }
            }
        }
        for (int k : members) {
            flow.add(memberNode.get(k), sink, load * classes.members.get(k).size(), 0);
        }
        int supply = topics.stream().mapToInt(classes.supply::get).sum();
        int left = supply - flow.largest(source, sink);
        int[] stuck = flow.levels(source);
        return new Cut(left,
                IntStream.range(0, topics.size()).filter(i -> stuck[2 + i] >= 0).mapToObj(topics::get).toList(),
                members.stream().filter(k -> stuck[memberNode.get(k)] >= 0).toList());
    }
}
