// SPDX-License-Identifier: Apache-2.0
package serveroracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;
import kafkarebalance.balanced.BalancedAssignor;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.ModernGroupMember;
import org.apache.kafka.coordinator.group.modern.SubscriptionCount;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ShareTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/** Computes the new targets of a consumer or share group with the code path of Kafka's coordinator. */
final class Targets {
    private Targets() {}

    /** Returns {@code assignment}, with partitions in Kafka's order, or {@code error} if Kafka's classes throw. */
    static ObjectNode answer(JsonNode group) {
        Map<Uuid, String> names = names(group);
        CoordinatorMetadataImage image = image(group);
        Map<String, Assignment> before = before(group, names);
        String assignor = group.get("assignor").textValue();
        var answer = JsonNodeFactory.instance.objectNode();
        Map<String, MemberAssignment> after;
        try {
            after = "share/simple".equals(assignor)
                    ? share(group, image, before).get()
                    : consumer(group, consumerAssignor(assignor), image, before).get();
        } catch (IllegalArgumentException e) {
            throw e;
        } catch (RuntimeException e) {
            return answer.put("error", ServerOracle.describe(e));
        }
        ObjectNode assignment = answer.putObject("assignment");
        for (JsonNode member : group.withArray("members")) {
            String memberId = member.get("member_id").textValue();
            var partitions = assignment.putArray(memberId);
            MemberAssignment own = after.get(memberId);
            if (own != null) {
                own.partitions().forEach((topic, numbers) -> numbers.forEach(
                        number -> partitions.addArray().add(names.get(topic)).add(number)));
            }
        }
        return answer;
    }

    /** Returns a function that computes the targets from Java objects like the coordinator's; call it repeatedly. */
    static Supplier<Map<String, MemberAssignment>> consumer(JsonNode group, ConsumerGroupPartitionAssignor assignor) {
        return consumer(group, assignor, image(group), before(group, names(group)));
    }

    static ConsumerGroupPartitionAssignor consumerAssignor(String name) {
        return switch (name) {
            case "consumer/uniform" -> new UniformAssignor();
            case "consumer/range" -> new RangeAssignor();
            case "consumer/balanced" -> new BalancedAssignor();
            default -> throw new IllegalArgumentException("assignor " + name + " is not one of the brokers'");
        };
    }

    private static Supplier<Map<String, MemberAssignment>> consumer(JsonNode group,
            ConsumerGroupPartitionAssignor assignor, CoordinatorMetadataImage image, Map<String, Assignment> before) {
        Map<String, ConsumerGroupMember> members = members(group, member ->
                new ConsumerGroupMember.Builder(member.get("member_id").textValue())
                        .setInstanceId(textOrNull(member, "group_instance_id"))
                        .setRackId(textOrNull(member, "rack_id"))
                        .setSubscribedTopicNames(texts(member.get("topics")))
                        .build());
        return build(
                () -> new ConsumerTargetAssignmentBuilder("group", 1, assignor).withResolvedRegularExpressions(Map.of()),
                members, image, before);
    }

    private static Supplier<Map<String, MemberAssignment>> share(
            JsonNode group, CoordinatorMetadataImage image, Map<String, Assignment> before) {
        Map<String, ShareGroupMember> members = members(group, member ->
                new ShareGroupMember.Builder(member.get("member_id").textValue())
                        .setRackId(textOrNull(member, "rack_id"))
                        .setSubscribedTopicNames(texts(member.get("topics")))
                        .build());
        return build(
                () -> new ShareTargetAssignmentBuilder("group", 1, new SimpleAssignor())
                        .withTopicAssignablePartitionsMap(initialized(group)),
                members, image, before);
    }

    private static <M extends ModernGroupMember, B extends TargetAssignmentBuilder<M, B>>
            Supplier<Map<String, MemberAssignment>> build(Supplier<B> builder, Map<String, M> members,
                    CoordinatorMetadataImage image, Map<String, Assignment> before) {
        Map<String, SubscriptionCount> counts = new HashMap<>();
        for (M member : members.values()) {
            for (String name : member.subscribedTopicNames()) {
                int known = counts.containsKey(name) ? counts.get(name).byNameCount() : 0;
                counts.put(name, new SubscriptionCount(known + 1, 0));
            }
        }
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        before.forEach((memberId, own) -> own.partitions().forEach((topic, numbers) -> numbers.forEach(
                number -> owners.computeIfAbsent(topic, key -> new HashMap<>()).put(number, memberId))));
        return () -> builder.get().withTime(Time.SYSTEM)
                .withMembers(members)
                .withSubscriptionType(ModernGroup.subscriptionType(counts, members.size()))
                .withTargetAssignment(before)
                .withInvertedTargetAssignment(owners)
                .withMetadataImage(image)
                .build()
                .targetAssignment();
    }

    private static <M> Map<String, M> members(JsonNode group, Function<JsonNode, M> make) {
        Map<String, M> members = new LinkedHashMap<>();
        for (JsonNode member : group.withArray("members")) {
            members.put(member.get("member_id").textValue(), make.apply(member));
        }
        return members;
    }

    /** Returns the present target of each member, as Kafka reads it from the member's record. */
    private static Map<String, Assignment> before(JsonNode group, Map<Uuid, String> names) {
        Map<String, Uuid> ids = new HashMap<>();
        names.forEach((id, name) -> ids.put(name, id));
        Map<String, Assignment> before = new HashMap<>();
        for (JsonNode member : group.withArray("members")) {
            // A record has one entry for a topic, but the group's line may have several.
            Map<Uuid, List<Integer>> lists = new LinkedHashMap<>();
            for (JsonNode owned : member.path("owned_partitions")) {
                var list = lists.computeIfAbsent(ids.get(owned.get("topic").textValue()), key -> new ArrayList<>());
                owned.get("partitions").forEach(number -> list.add(number.intValue()));
            }
            var value = new ConsumerGroupTargetAssignmentMemberValue();
            lists.forEach((id, numbers) -> value.topicPartitions().add(
                    new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(id).setPartitions(numbers)));
            before.put(member.get("member_id").textValue(), Assignment.fromRecord(value));
        }
        return before;
    }

    /** Returns the names of all topics by id, including deleted topics. */
    private static Map<Uuid, String> names(JsonNode group) {
        Map<Uuid, String> names = new HashMap<>();
        for (JsonNode topic : group.withArray("topics")) {
            names.put(id(topic), topic.get("name").textValue());
        }
        for (JsonNode member : group.withArray("members")) {
            for (JsonNode owned : member.path("owned_partitions")) {
                if (owned.has("topic_id")) {
                    names.putIfAbsent(id(owned), owned.get("topic").textValue());
                }
            }
        }
        return names;
    }

    /** Returns the cluster's metadata, without topics that have no partitions. */
    private static CoordinatorMetadataImage image(JsonNode group) {
        var delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        Map<String, Integer> brokers = new HashMap<>();
        for (JsonNode topic : group.withArray("topics")) {
            int count = topic.get("partitions").intValue();
            if (count > 0) {
                delta.replay(new TopicRecord().setName(topic.get("name").textValue()).setTopicId(id(topic)));
            }
            for (int p = 0; p < count; p++) {
                // Broker 0 has no rack; each rack has one broker.
                List<Integer> replicas = new ArrayList<>(List.of(0));
                for (JsonNode rack : topic.path("racks").path(p)) {
                    replicas.add(brokers.computeIfAbsent(rack.textValue(), name -> brokers.size() + 1));
                }
                delta.replay(new PartitionRecord().setTopicId(id(topic)).setPartitionId(p).setReplicas(replicas)
                        .setIsr(replicas).setLeader(0).setLeaderEpoch(0).setPartitionEpoch(0));
            }
        }
        brokers.forEach((rack, id) -> delta.replay(new RegisterBrokerRecord().setBrokerId(id).setRack(rack)));
        return new KRaftCoordinatorMetadataImage(delta.apply(MetadataProvenance.EMPTY));
    }

    private static Map<Uuid, Set<Integer>> initialized(JsonNode group) {
        Map<Uuid, Set<Integer>> initialized = new HashMap<>();
        for (JsonNode topic : group.withArray("topics")) {
            Set<Integer> numbers = new TreeSet<>();
            if (topic.hasNonNull("initialized")) {
                topic.get("initialized").forEach(number -> numbers.add(number.intValue()));
            } else {
                for (int p = 0; p < topic.get("partitions").intValue(); p++) {
                    numbers.add(p);
                }
            }
            initialized.put(id(topic), new HashSet<>(numbers));
        }
        return initialized;
    }

    private static Uuid id(JsonNode topic) {
        return Uuid.fromString(topic.get("topic_id").textValue());
    }

    private static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.textValue()));
        return texts;
    }

    private static String textOrNull(JsonNode object, String name) {
        return object.hasNonNull(name) ? object.get(name).textValue() : null;
    }
}
