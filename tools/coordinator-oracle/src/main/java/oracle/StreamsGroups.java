// SPDX-License-Identifier: Apache-2.0
package oracle;

import static oracle.AssigningGroups.*;
import static oracle.Fields.*;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;

/** The requests of streams groups, whose broker assigns tasks. */
final class StreamsGroups {
    private final Broker broker;

    StreamsGroups(Broker broker) {
        this.broker = broker;
    }

    void heartbeat(JsonNode command, ObjectNode answer) {
        StreamsGroupHeartbeatRequestData request = new StreamsGroupHeartbeatRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setMemberEpoch(number(command, "epoch", 0))
            .setInstanceId(text(command, "inst", null)).setRackId(text(command, "rack", null))
            .setRebalanceTimeoutMs(number(command, "rt", -1)).setProcessId(text(command, "process", null))
            .setTopology(topology(command.path("topology"))).setActiveTasks(tasks(command.path("active")))
            .setStandbyTasks(tasks(command.path("standby"))).setWarmupTasks(tasks(command.path("warmup")))
            .setClientTags(tags(command.path("tags")))
            .setShutdownApplication(command.path("shutdown").asBoolean());
        broker.service.streamsGroupHeartbeat(context(ApiKeys.STREAMS_GROUP_HEARTBEAT, command, 1), request)
            .whenComplete((result, error) -> {
                StreamsGroupHeartbeatResponseData response = error == null ? result.data() : null;
                if (refused(answer, error, () -> Errors.forCode(response.errorCode()), () -> response.errorMessage())) return;
                alive(answer, response.memberId(), response.memberEpoch(), response.heartbeatIntervalMs());
                show(answer, "active", response.activeTasks());
                show(answer, "standby", response.standbyTasks());
                show(answer, "warmup", response.warmupTasks());
                ArrayNode status = answer.putArray("status");
                if (response.status() != null) {
                    response.status().forEach(one ->
                        status.add(StreamsGroupHeartbeatResponse.Status.fromCode(one.statusCode()).name()));
                }
                result.creatableTopics().keySet().stream().sorted().forEach(answer.putArray("creatable")::add);
                if (command.path("counts").asBoolean()) {
                    ObjectNode counts = answer.putObject("counts");
                    result.creatableTopics().forEach((name, topic) -> counts.put(name, topic.numPartitions()));
                }
            });
    }

    void describe(JsonNode command, ObjectNode answer) {
        broker.service.streamsGroupDescribe(context(ApiKeys.STREAMS_GROUP_DESCRIBE, command, 1), List.of(group(command)), false)
            .whenComplete((response, error) -> {
                StreamsGroupDescribeResponseData.DescribedGroup one = error == null ? response.get(0) : null;
                if (refused(answer, error, () -> Errors.forCode(one.errorCode()), () -> one.errorMessage())) return;
                answer.put("state", one.groupState()).put("epoch", one.groupEpoch())
                    .put("assignment_epoch", one.assignmentEpoch());
                ObjectNode members = answer.putObject("members");
                one.members().forEach(member -> {
                    ObjectNode shown = members.putObject(member.memberId()).put("epoch", member.memberEpoch())
                        .put("inst", member.instanceId()).put("rack", member.rackId()).put("process", member.processId());
                    show(shown.putObject("asg"), member.assignment());
                    show(shown.putObject("target"), member.targetAssignment());
                });
            });
    }

    private static StreamsGroupHeartbeatRequestData.Topology topology(JsonNode given) {
        if (!given.isObject()) return null;
        List<StreamsGroupHeartbeatRequestData.Subtopology> subtopologies = new ArrayList<>();
        for (Iterator<Map.Entry<String, JsonNode>> i = given.get("subtopologies").fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> one = i.next();
            subtopologies.add(new StreamsGroupHeartbeatRequestData.Subtopology().setSubtopologyId(one.getKey())
                .setSourceTopics(names(one.getValue(), "sources"))
                .setSourceTopicRegex(names(one.getValue(), "regexes"))
                .setStateChangelogTopics(topics(one.getValue(), "changelogs"))
                .setRepartitionSourceTopics(topics(one.getValue(), "repartition_sources"))
                .setRepartitionSinkTopics(names(one.getValue(), "repartition_sinks"))
                .setCopartitionGroups(copartitionGroups(one.getValue())));
        }
        return new StreamsGroupHeartbeatRequestData.Topology().setEpoch(number(given, "epoch", 0))
            .setSubtopologies(subtopologies);
    }

    private static List<String> names(JsonNode given, String field) {
        List<String> names = texts(given, field);
        return names == null ? List.of() : names;
    }

    /** Returns internal topics. Each is given as its name, or as an object with its name and number of partitions. */
    private static List<StreamsGroupHeartbeatRequestData.TopicInfo> topics(JsonNode given, String field) {
        List<StreamsGroupHeartbeatRequestData.TopicInfo> topics = new ArrayList<>();
        given.path(field).forEach(one -> topics.add(new StreamsGroupHeartbeatRequestData.TopicInfo()
            .setName(one.isTextual() ? one.asText() : one.get("name").asText())
            .setPartitions(number(one, "partitions", 0))));
        return topics;
    }

    private static List<StreamsGroupHeartbeatRequestData.CopartitionGroup> copartitionGroups(JsonNode given) {
        List<StreamsGroupHeartbeatRequestData.CopartitionGroup> groups = new ArrayList<>();
        given.path("copartition_groups").forEach(one -> groups.add(
            new StreamsGroupHeartbeatRequestData.CopartitionGroup().setSourceTopics(places(one, "sources"))
                .setSourceTopicRegex(places(one, "regexes"))
                .setRepartitionSourceTopics(places(one, "repartition_sources"))));
        return groups;
    }

    private static List<Short> places(JsonNode given, String field) {
        List<Short> places = new ArrayList<>();
        given.path(field).forEach(one -> places.add((short) one.asInt()));
        return places;
    }

    private static List<StreamsGroupHeartbeatRequestData.TaskIds> tasks(JsonNode given) {
        return numbered(given, (subtopology, partitions) ->
            new StreamsGroupHeartbeatRequestData.TaskIds().setSubtopologyId(subtopology).setPartitions(partitions));
    }

    private static List<StreamsGroupHeartbeatRequestData.KeyValue> tags(JsonNode given) {
        if (!given.isObject()) return null;
        List<StreamsGroupHeartbeatRequestData.KeyValue> tags = new ArrayList<>();
        given.fields().forEachRemaining(one -> tags.add(new StreamsGroupHeartbeatRequestData.KeyValue()
            .setKey(one.getKey()).setValue(one.getValue().asText())));
        return tags;
    }

    private static void show(ObjectNode answer, String field, List<StreamsGroupHeartbeatResponseData.TaskIds> tasks) {
        if (tasks == null) {
            answer.putNull(field);
            return;
        }
        ObjectNode shown = answer.putObject(field);
        tasks.forEach(one -> sorted(shown, one.subtopologyId(), one.partitions()));
    }

    private static void show(ObjectNode shown, StreamsGroupDescribeResponseData.Assignment tasks) {
        ObjectNode active = shown.putObject("active");
        tasks.activeTasks().forEach(one -> sorted(active, one.subtopologyId(), one.partitions()));
        ObjectNode standby = shown.putObject("standby");
        tasks.standbyTasks().forEach(one -> sorted(standby, one.subtopologyId(), one.partitions()));
        ObjectNode warmup = shown.putObject("warmup");
        tasks.warmupTasks().forEach(one -> sorted(warmup, one.subtopologyId(), one.partitions()));
    }
}
