// SPDX-License-Identifier: Apache-2.0
package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Assigns the group of a contract line by the code path of a live group's leader. */
final class Cases {
    private static final int NO_GENERATION = -1;
    private static final int NEWEST = 3;

    private Cases() {}

    /** Returns {@code assignment} with partitions in Java's order, or {@code error} if the assignor throws. */
    static ObjectNode answer(JsonNode group) {
        Prepared prepared = prepare(group);
        var answer = Fields.NODES.objectNode();
        Map<String, Assignment> assigned;
        try {
            assigned = prepared.assign();
        } catch (Exception | StackOverflowError e) {
            return answer.put("error", Oracle.describe(e));
        }
        var assignment = answer.putObject("assignment");
        for (JsonNode member : Fields.array(group, "members")) {
            String memberId = Fields.text(member, "member_id");
            Assignment own = assigned.remove(memberId);
            if (own != null) {
                Fields.put(assignment, memberId, own.partitions());
            }
        }
        // An assignor should not add members. If one does, its answer shows them.
        assigned.forEach((memberId, own) -> Fields.put(assignment, memberId, own.partitions()));
        return answer;
    }

    /** The assignor's input, prepared for repeated calls. */
    record Prepared(String name, Cluster cluster, Map<String, Subscription> subscriptions) {
        Map<String, Assignment> assign() {
            for (Subscription subscription : subscriptions.values()) {
                if (subscription.userData() != null) {
                    subscription.userData().rewind();
                }
            }
            return assignor(name).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        }
    }

    static Prepared prepare(JsonNode group) {
        String name = Fields.text(group, "assignor");
        assignor(name);
        Cluster cluster = cluster(group);
        // A default HashMap filled in join order, as in the leader; its order breaks ties.
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : Fields.array(group, "members")) {
            String memberId = Fields.text(member, "member_id");
            if (subscriptions.put(memberId, subscription(name, member)) != null) {
                throw new BadInput("member_id " + memberId + " stands twice");
            }
        }
        return new Prepared(name, cluster, subscriptions);
    }

    /** Returns a new assignor, because Kafka's assignors remember generations between calls. */
    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new BadInput("assignor " + name + " is not one of Kafka's classic ones");
        };
    }

    /** Returns the cluster's metadata, with a broker for each rack; topics without partitions are left out. */
    private static Cluster cluster(JsonNode group) {
        Map<Optional<String>, Node> brokers = new HashMap<>();
        var partitions = new ArrayList<PartitionInfo>();
        Set<String> topics = new HashSet<>();
        for (JsonNode topic : Fields.array(group, "topics")) {
            String name = Fields.text(topic, "name");
            int count = Fields.integer(topic, "partitions");
            JsonNode racks = Fields.array(topic, "racks");
            if (!topics.add(name)) {
                throw new BadInput("topic " + name + " stands twice");
            }
            if (count < 0 || Fields.value(topic, "racks") != null && racks.size() != count) {
                throw new BadInput("topic " + name + ": partitions is negative or not the length of racks");
            }
            for (int p = 0; p < count; p++) {
                Node[] replicas = replicas(racks.get(p), brokers);
                Node leader = replicas.length == 0 ? Node.noNode() : replicas[0];
                partitions.add(new PartitionInfo(name, p, leader, replicas, replicas));
            }
        }
        return new Cluster("oracle", List.copyOf(brokers.values()), partitions, Set.of(), Set.of());
    }

    /** Returns one partition's replicas, made from their racks; a null rack stands for a broker without a rack. */
    private static Node[] replicas(JsonNode racks, Map<Optional<String>, Node> brokers) {
        var replicas = new ArrayList<Node>();
        if (racks != null && !racks.isNull()) {
            if (!racks.isArray()) {
                throw new BadInput("racks is not an array of arrays");
            }
            for (JsonNode value : racks) {
                String rack = value.isNull() ? null : Fields.textOf(value, "rack");
                int id = brokers.size();
                replicas.add(brokers.computeIfAbsent(
                        Optional.ofNullable(rack), key -> new Node(id, "b" + id, 9092, rack)));
            }
        }
        return replicas.toArray(Node[]::new);
    }

    /**
     * Returns a member's subscription as the leader decodes it: from the bytes in {@code subscription}, or from the
     * bytes that a Java client with the member's fields sends. The instance id is added afterwards.
     */
    private static Subscription subscription(String assignor, JsonNode member) {
        ByteBuffer bytes = Fields.bytesOrNull(member, "subscription");
        if (bytes == null) {
            bytes = ConsumerProtocol.serializeSubscription(newest(assignor, member));
        }
        Subscription read = ConsumerProtocol.deserializeSubscription(bytes);
        read.setGroupInstanceId(Optional.ofNullable(Fields.textOrNull(member, "group_instance_id")));
        return read;
    }

    /** Returns a subscription of version 3. For sticky assignors, field and user data have equal generations. */
    private static Subscription newest(String assignor, JsonNode member) {
        refuseWhatOnlyBytesSay(member);
        List<String> topics = Fields.texts(member, "topics");
        List<TopicPartition> owned = owned(member);
        int generation = Fields.integer(member, "generation_id", NO_GENERATION);
        Optional<String> rack = Optional.ofNullable(Fields.textOrNull(member, "rack_id"));
        return switch (assignor) {
            // An eager member revokes all partitions before it joins, so only the user data contain them.
            case "sticky" -> new Subscription(
                    topics, stickyUserData(topics, owned, generation), List.of(), generation, rack);
            case "cooperative-sticky" -> new Subscription(
                    topics, cooperativeUserData(topics, generation), owned, generation, rack);
            default -> new Subscription(topics, null, List.of(), NO_GENERATION, rack);
        };
    }

    private static void refuseWhatOnlyBytesSay(JsonNode member) {
        int generation = Fields.integer(member, "generation_id", NO_GENERATION);
        if (Fields.integer(member, "subscription_version", NEWEST) != NEWEST
                || Fields.value(member, "user_data") != null
                || Fields.integer(member, "user_data_generation_id", generation) != generation) {
            throw new BadInput("member_id " + Fields.text(member, "member_id")
                    + ": subscription_version, user_data and user_data_generation_id need the bytes in subscription");
        }
    }

    /** Returns the user data of a member's StickyAssignor; null before its first assignment. */
    private static ByteBuffer stickyUserData(List<String> topics, List<TopicPartition> owned, int generation) {
        var assignor = new StickyAssignor();
        if (!owned.isEmpty() || generation != NO_GENERATION) {
            assignor.onAssignment(new Assignment(owned), generation(generation));
        }
        return assignor.subscriptionUserData(Set.copyOf(topics));
    }

    /** Returns the user data of a member's CooperativeStickyAssignor. */
    private static ByteBuffer cooperativeUserData(List<String> topics, int generation) {
        var assignor = new CooperativeStickyAssignor();
        assignor.onAssignment(new Assignment(List.of()), generation(generation));
        return assignor.subscriptionUserData(Set.copyOf(topics));
    }

    /** Returns group metadata, of which the assignors read only the generation. */
    static ConsumerGroupMetadata generation(int generation) {
        return new ConsumerGroupMetadata("group", generation, "member", Optional.empty());
    }

    /** Returns a member's {@code owned_partitions}, topic by topic, in the given order. */
    private static List<TopicPartition> owned(JsonNode member) {
        var owned = new ArrayList<TopicPartition>();
        for (JsonNode topic : Fields.array(member, "owned_partitions")) {
            String name = Fields.text(topic, "topic");
            for (JsonNode partition : Fields.array(topic, "partitions")) {
                owned.add(new TopicPartition(name, Fields.integerOf(partition, "owned partition")));
            }
        }
        return owned;
    }
}
