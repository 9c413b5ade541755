// SPDX-License-Identifier: Apache-2.0
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.common.*;

/** Four members, four topics, ten partitions: assign() never returns. With the argument "without-m3" it returns. */
public class NeverEnds {
    public static void main(String[] arguments) {
        List<PartitionInfo> partitions = new ArrayList<>();
        Map.of("a", 4, "b", 2, "c", 3, "d", 1).forEach((topic, count) -> {
            for (int p = 0; p < count; p++) partitions.add(new PartitionInfo(topic, p, null, null, null));
        });
        Map<String, Subscription> members = new HashMap<>();
        members.put("m0", member(List.of("a", "b", "c", "d"), "a 0", "a 1", "a 2", "a 3", "b 0", "c 0", "c 1"));
        members.put("m1", member(List.of("c", "d")));
        members.put("m2", member(List.of("a", "c")));
        if (arguments.length == 0) members.put("m3", member(List.of("b", "d")));
        Cluster cluster = new Cluster("cluster", List.of(), partitions, Set.of(), Set.of());
        new StickyAssignor().assign(cluster, new GroupSubscription(members)).groupAssignment().forEach(
            (member, assignment) -> System.out.println(member + ": " + assignment.partitions()));
    }

    /** Returns the subscription of a member that received these partitions in generation 1 (none: a new member). */
    @SuppressWarnings("removal")
    static Subscription member(List<String> topics, String... owned) {
        StickyAssignor memory = new StickyAssignor();
        List<TopicPartition> held = Arrays.stream(owned).map(o -> o.split(" "))
            .map(o -> new TopicPartition(o[0], Integer.parseInt(o[1]))).toList();
        if (owned.length > 0) memory.onAssignment(new Assignment(held), new ConsumerGroupMetadata("g", 1, "m", Optional.empty()));
        return new Subscription(topics, memory.subscriptionUserData(new HashSet<>(topics)));
    }
}
