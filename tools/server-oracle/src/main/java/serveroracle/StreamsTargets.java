// SPDX-License-Identifier: Apache-2.0
package serveroracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.MemberTaskOffsets;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;

/** Computes the new targets of a streams group with the code path of Kafka's coordinator. */
final class StreamsTargets {
    private StreamsTargets() {}

    /** Returns the active tasks as {@code assignment}, and {@code standby}; or {@code error} if Kafka's classes throw. */
    static ObjectNode answer(JsonNode group) {
        Map<String, StreamsGroupMember> members = new LinkedHashMap<>();
        Map<String, MemberTaskOffsets> offsets = new HashMap<>();
        for (JsonNode member : group.withArray("members")) {
            String memberId = member.get("member_id").textValue();
            members.put(memberId, member(member));
            offsets.put(memberId, new MemberTaskOffsets(
                    taskOffsets(member, "task_offsets"), taskOffsets(member, "task_end_offsets")));
        }
        String replicas = group.hasNonNull("num_standby_replicas") ? group.get("num_standby_replicas").asText() : "0";
        var builder = new TargetAssignmentBuilder("group", 1, new StickyTaskAssignor(),
                        Map.of(AssignmentConfigsImpl.NUM_STANDBY_REPLICAS_CONFIG, replicas))
                .withTime(Time.SYSTEM)
                .withMembers(members)
                .withTaskOffsets(offsets)
                .withMetadataImage(CoordinatorMetadataImage.EMPTY)
                .withTargetAssignment(Map.of())
                .withTopology(topology(group));
        var answer = JsonNodeFactory.instance.objectNode();
        Map<String, TasksTuple> after;
        try {
            after = builder.build().targetAssignment();
        } catch (RuntimeException e) {
            return answer.put("error", ServerOracle.describe(e));
        }
        write(answer.putObject("assignment"), members.keySet(), id -> after.get(id).activeTasks());
        write(answer.putObject("standby"), members.keySet(), id -> after.get(id).standbyTasks());
        return answer;
    }

    private static StreamsGroupMember member(JsonNode member) {
        Map<String, Map<Integer, Integer>> active = new LinkedHashMap<>();
        tasks(member, "active_tasks").forEach((subtopology, numbers) -> numbers.forEach(
                number -> active.computeIfAbsent(subtopology, key -> new LinkedHashMap<>()).put(number, 1)));
        Map<String, String> tags = new LinkedHashMap<>();
        for (JsonNode tag : member.path("client_tags")) {
            tags.put(tag.get("key").textValue(), tag.get("value").textValue());
        }
        return new StreamsGroupMember.Builder(member.get("member_id").textValue())
                .setMemberEpoch(1)
                .setPreviousMemberEpoch(0)
                .setState(MemberState.STABLE)
                .setInstanceId(member.path("group_instance_id").textValue())
                .setRackId(member.path("rack_id").textValue())
                .setClientId("client")
                .setClientHost("host")
                .setRebalanceTimeoutMs(1)
                .setTopologyEpoch(1)
                .setProcessId(member.get("process_id").textValue())
                .setUserEndpoint(null)
                .setClientTags(tags)
                .setAssignedTasks(new TasksTupleWithEpochs(
                        active, tasks(member, "standby_tasks"), tasks(member, "warmup_tasks")))
                .setTasksPendingRevocation(TasksTupleWithEpochs.EMPTY)
                .build();
    }

    private static ConfiguredTopology topology(JsonNode group) {
        SortedMap<String, ConfiguredSubtopology> subtopologies = new TreeMap<>();
        for (JsonNode one : group.withArray("subtopologies")) {
            String id = one.get("subtopology_id").textValue();
            int tasks = one.get("tasks").intValue();
            Map<String, ConfiguredInternalTopic> changelogs = new HashMap<>();
            if (one.path("stateful").booleanValue()) {
                String name = "changelog";
                changelogs.put(name, new ConfiguredInternalTopic(name, tasks, Optional.empty(), Map.of()));
            }
            subtopologies.put(id, new ConfiguredSubtopology(tasks, Set.of(id), Map.of(), Set.of(), changelogs));
        }
        return new ConfiguredTopology(1, 1, Optional.of(subtopologies), Map.of(), Optional.empty());
    }

    private static Map<String, Set<Integer>> tasks(JsonNode member, String field) {
        Map<String, Set<Integer>> tasks = new LinkedHashMap<>();
        for (JsonNode entry : member.path(field)) {
            Set<Integer> numbers = tasks.computeIfAbsent(entry.get("subtopology_id").textValue(), key -> new HashSet<>());
            entry.get("partitions").forEach(number -> numbers.add(number.intValue()));
        }
        return tasks;
    }

    private static Map<String, Map<Integer, Long>> taskOffsets(JsonNode member, String field) {
        Map<String, Map<Integer, Long>> offsets = new LinkedHashMap<>();
        for (JsonNode entry : member.path(field)) {
            offsets.computeIfAbsent(entry.get("subtopology_id").textValue(), key -> new LinkedHashMap<>())
                    .put(entry.get("partition").intValue(), entry.get("offset").longValue());
        }
        return offsets;
    }

    /** Writes the tasks of each member, sorted as in the records. */
    private static void write(
            ObjectNode lists, Set<String> memberIds, Function<String, Map<String, Set<Integer>>> tasksOf) {
        for (String memberId : memberIds) {
            var list = lists.putArray(memberId);
            new TreeMap<>(tasksOf.apply(memberId)).forEach((subtopology, numbers) -> new TreeSet<>(numbers).forEach(
                    number -> list.addArray().add(subtopology).add(number)));
        }
    }
}
