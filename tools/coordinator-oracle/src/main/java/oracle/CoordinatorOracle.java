// SPDX-License-Identifier: Apache-2.0
package oracle;

import static oracle.Fields.*;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResult;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroup;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData.ListedGroup;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/**
 * Runs Kafka's own group coordinator in virtual time: each input line is a JSON command, each output line its answer.
 * The commands are those of {@code kafka-rebalance coordinator --json}.
 */
public final class CoordinatorOracle {
    private static final BufferSupplier BUFFERS = BufferSupplier.NO_CACHING;

    private Broker broker;
    private AssigningGroups assigning;
    private StreamsGroups streams;
    private GroupStates states;
    private int count;
    private ArrayNode events = JSON.createArrayNode();

    public static void main(String[] args) throws Exception {
        SeededIds.install();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false,
            StandardCharsets.UTF_8);
        CoordinatorOracle oracle = new CoordinatorOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(oracle.answer(JSON.readTree(line))));
            if (!in.ready()) out.flush();
        }
        System.exit(0);
    }

    private ObjectNode answer(JsonNode command) throws Exception {
        count++;
        ObjectNode answer = JSON.createObjectNode();
        events = JSON.createArrayNode();
        String op = command.path("op").asText();
        boolean known = true;
        switch (op) {
            case "init" -> init(command);
            case "advance" -> broker.clock.advanceClock(command.get("ms").asLong());
            case "state" -> answer.set("state", states.classic(group(command)));
            case "mstate" -> answer.set("state", states.ofAnyType(group(command)));
            case "topics" -> broker.topics(command.get("topics"));
            case "chb" -> assigning.consumerHeartbeat(command, answer);
            case "shb" -> assigning.shareHeartbeat(command, answer);
            case "sthb" -> streams.heartbeat(command, answer);
            case "cdescribe" -> assigning.describeConsumer(command, answer);
            case "sdescribe" -> assigning.describeShare(command, answer);
            case "stdescribe" -> streams.describe(command, answer);
            case "describe" -> describe(command, answer);
            case "list" -> list(command, answer);
            case "join" -> join(command);
            case "sync" -> sync(command);
            case "hb" -> heartbeat(command, answer);
            case "leave" -> leave(command, answer);
            case "commit" -> commit(command, answer);
            case "txncommit" -> txnCommit(command, answer);
            case "endtxn" -> broker.service.completeTransaction(Broker.PARTITION, command.get("pid").asLong(), (short) 0, 0,
                result(command), (short) 0);
            case "fetch" -> fetch(command, answer);
            case "delete_offsets" -> deleteOffsets(command, answer);
            case "delete_group" -> deleteGroup(command, answer);
            case "topic_deleted" -> broker.runtime.scheduleWriteOperation("topics-deleted", Broker.PARTITION, shard ->
                shard.onTopicsDeleted(List.of(new GroupCoordinatorShard.DeletedTopic(Uuid.ZERO_UUID, topic(command)))));
            case "cleanup" -> broker.runtime.scheduleWriteOperation("cleanup", Broker.PARTITION,
                GroupCoordinatorShard::cleanupGroupMetadata);
            case "hold" -> broker.log.hold();
            case "release", "release_last" -> broker.log.release(Broker.PARTITION);
            case "fail_next" -> broker.log.failNext(Errors.valueOf(command.get("err").asText()));
            case "reload" -> reload(command);
            case "unload" -> broker.unload();
            case "raw" -> broker.log.add(new MemoryLog.Entry(hex(command.get("k")), hex(command.get("v")),
                command.has("pid") ? command.get("pid").asLong() : -1, null));
            case "rawend" -> broker.log.add(new MemoryLog.Entry(null, null, command.get("pid").asLong(), result(command)));
            default -> known = false;
        }
        broker.background.run();
        if (!known) return JSON.createObjectNode().put("bad", op);
        answer.put("id", count).put("now", broker.clock.milliseconds()).set("events", events);
        return answer;
    }

    private void init(JsonNode command) throws ReflectiveOperationException {
        if (command.has("seed")) SeededIds.seed(command.get("seed").asLong());
        broker = new Broker(command.path("at").asLong(), Settings.of(command), this::timerEvent, this::recordEvent);
        assigning = new AssigningGroups(broker);
        streams = new StreamsGroups(broker);
        states = new GroupStates(broker);
    }

    // Requests --------------------------------------------------------------------------------------------------------

    private void join(JsonNode command) {
        int id = count;
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setGroupInstanceId(text(command, "inst", null))
            .setSessionTimeoutMs(number(command, "st", 10_000)).setRebalanceTimeoutMs(number(command, "rt", 300_000))
            .setProtocolType(text(command, "pt", "consumer"));
        for (JsonNode one : command.path("protos")) {
            request.protocols().add(new JoinGroupRequestData.JoinGroupRequestProtocol()
                .setName(one.get(0).asText()).setMetadata(bytes(one.get(1).asText())));
        }
        // For version 0, JoinGroupRequest sets the rebalance timeout to the session timeout.
        JoinGroupRequest received = new JoinGroupRequest(request, (short) number(command, "v", 9));
        then(broker.service.joinGroup(context(ApiKeys.JOIN_GROUP, command, 9), received.data(), BUFFERS), (response, error) ->
            joinEvent(id, error == null ? response : new JoinGroupResponseData().setErrorCode(code(error).code())));
    }

    private void sync(JsonNode command) {
        int id = count;
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setGroupInstanceId(text(command, "inst", null))
            .setGenerationId(number(command, "gen", -1)).setProtocolType(text(command, "pt", null))
            .setProtocolName(text(command, "pn", null));
        for (Iterator<Map.Entry<String, JsonNode>> i = command.path("asg").fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> one = i.next();
            request.assignments().add(new SyncGroupRequestData.SyncGroupRequestAssignment()
                .setMemberId(one.getKey()).setAssignment(bytes(one.getValue().asText())));
        }
        then(broker.service.syncGroup(context(ApiKeys.SYNC_GROUP, command, 4), request, BUFFERS), (response, error) ->
            syncEvent(id, error == null ? response : new SyncGroupResponseData().setErrorCode(code(error).code())));
    }

    private void heartbeat(JsonNode command, ObjectNode answer) {
        HeartbeatRequestData request = new HeartbeatRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setGroupInstanceId(text(command, "inst", null))
            .setGenerationId(number(command, "gen", -1));
        then(broker.service.heartbeat(context(ApiKeys.HEARTBEAT, command, 4), request), (response, error) ->
            answer.put("err", name(error == null ? Errors.forCode(response.errorCode()) : code(error))));
    }

    private void leave(JsonNode command, ObjectNode answer) throws ReflectiveOperationException {
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(group(command));
        for (JsonNode one : command.get("members")) {
            request.members().add(new LeaveGroupRequestData.MemberIdentity()
                .setMemberId(text(one, "m", "")).setGroupInstanceId(text(one, "inst", null)));
        }
        // For a missing group, Kafka's service returns an error for each member; our driver's answer has one error.
        boolean absent = broker.owns() && broker.group(group(command)) == null;
        then(broker.service.leaveGroup(context(ApiKeys.LEAVE_GROUP, command, 5), request), (response, error) -> {
            Errors whole = error == null ? Errors.forCode(response.errorCode()) : code(error);
            if (error != null || absent && whole == Errors.NONE) {
                answer.put("err", name(absent ? Errors.UNKNOWN_MEMBER_ID : whole));
                return;
            }
            answer.put("err", name(whole));
            ArrayNode members = answer.putArray("members");
            response.members().forEach(one -> members.addObject().put("m", one.memberId())
                .put("inst", one.groupInstanceId()).put("err", name(Errors.forCode(one.errorCode()))));
        });
    }

    private void commit(JsonNode command, ObjectNode answer) {
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setGroupInstanceId(text(command, "inst", null))
            .setGenerationIdOrMemberEpoch(number(command, "gen", -1))
            .setRetentionTimeMs(command.path("retention").isNumber() ? command.get("retention").asLong() : -1);
        if (command.has("off")) {
            request.setTopics(List.of(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(topic(command))
                .setTopicId(broker.cluster.committedId(topic(command)))
                .setPartitions(List.of(new OffsetCommitRequestData.OffsetCommitRequestPartition()
                    .setPartitionIndex(number(command, "p", 0)).setCommittedOffset(command.get("off").asLong())
                    .setCommittedMetadata(text(command, "md", "")).setCommittedLeaderEpoch(number(command, "le", -1))))));
        }
        then(broker.service.commitOffsets(context(ApiKeys.OFFSET_COMMIT, command, 9), request, BUFFERS), (response, error) -> {
            if (error == null && response.topics().isEmpty()) {
                answer.putNull("err");
                return;
            }
            answer.put("err", name(error == null
                ? Errors.forCode(response.topics().get(0).partitions().get(0).errorCode()) : code(error)));
        });
    }

    private void txnCommit(JsonNode command, ObjectNode answer) {
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setGroupInstanceId(text(command, "inst", null))
            .setGenerationIdOrMemberEpoch(number(command, "gen", -1)).setTransactionalId("txn-" + command.get("pid"))
            .setProducerId(command.get("pid").asLong()).setProducerEpoch((short) 0);
        if (command.has("off")) {
            request.setTopics(List.of(new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic().setName(topic(command))
                .setPartitions(List.of(new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition()
                    .setPartitionIndex(number(command, "p", 0)).setCommittedOffset(command.get("off").asLong())
                    .setCommittedMetadata(text(command, "md", "")).setCommittedLeaderEpoch(number(command, "le", -1))))));
        }
        then(broker.service.commitTransactionalOffsets(context(ApiKeys.TXN_OFFSET_COMMIT, command, 3), request, BUFFERS),
            (response, error) -> {
                if (error == null && response.topics().isEmpty()) {
                    answer.putNull("err");
                    return;
                }
                answer.put("err", name(error == null
                    ? Errors.forCode(response.topics().get(0).partitions().get(0).errorCode()) : code(error)));
            });
    }

    private void fetch(JsonNode command, ObjectNode answer) {
        OffsetFetchRequestData.OffsetFetchRequestGroup request = new OffsetFetchRequestData.OffsetFetchRequestGroup()
            .setGroupId(group(command)).setMemberId(text(command, "m", null)).setMemberEpoch(number(command, "epoch", -1))
            .setTopics(List.of(new OffsetFetchRequestData.OffsetFetchRequestTopics()
                .setName(topic(command)).setPartitionIndexes(List.of(number(command, "p", 0)))));
        boolean stable = command.path("stable").asBoolean();
        then(broker.service.fetchOffsets(context(ApiKeys.OFFSET_FETCH, command, 9), request, stable), (response, error) -> {
            Errors group = error == null ? Errors.forCode(response.errorCode()) : code(error);
            answer.put("gerr", name(group));
            if (group != Errors.NONE) return;
            var one = response.topics().get(0).partitions().get(0);
            answer.put("err", name(Errors.forCode(one.errorCode()))).put("off", one.committedOffset())
                .put("le", one.committedLeaderEpoch()).put("md", one.metadata());
        });
    }

    private void deleteOffsets(JsonNode command, ObjectNode answer) {
        OffsetDeleteRequestData request = new OffsetDeleteRequestData().setGroupId(group(command));
        request.topics().add(new OffsetDeleteRequestData.OffsetDeleteRequestTopic().setName(topic(command))
            .setPartitions(List.of(new OffsetDeleteRequestData.OffsetDeleteRequestPartition()
                .setPartitionIndex(number(command, "p", 0)))));
        then(broker.service.deleteOffsets(context(ApiKeys.OFFSET_DELETE, command, 0), request, BUFFERS), (response, error) -> {
            Errors group = error == null ? Errors.forCode(response.errorCode()) : code(error);
            answer.put("err", name(group != Errors.NONE ? group : Errors.forCode(
                response.topics().iterator().next().partitions().iterator().next().errorCode())));
        });
    }

    private void deleteGroup(JsonNode command, ObjectNode answer) {
        then(broker.service.deleteGroups(context(ApiKeys.DELETE_GROUPS, command, 2), List.of(group(command)), BUFFERS),
            (response, error) -> {
                DeletableGroupResult one = error == null ? response.iterator().next() : null;
                answer.put("err", name(one == null ? code(error) : Errors.forCode(one.errorCode())));
            });
    }

    private void describe(JsonNode command, ObjectNode answer) {
        then(broker.service.describeGroups(context(ApiKeys.DESCRIBE_GROUPS, command, 5), List.of(group(command))),
            (response, error) -> {
                DescribedGroup one = response.get(0);
                answer.put("err", name(Errors.forCode(one.errorCode()))).put("state", one.groupState())
                    .put("proto", one.protocolData()).put("ptype", one.protocolType());
                ArrayNode members = answer.putArray("members");
                one.members().forEach(member -> members.addObject().put("id", member.memberId())
                    .put("meta", show(member.memberMetadata())).put("asg", show(member.memberAssignment())));
            });
    }

    private void list(JsonNode command, ObjectNode answer) {
        ListGroupsRequestData request = new ListGroupsRequestData();
        command.path("states").forEach(one -> request.statesFilter().add(one.asText()));
        command.path("types").forEach(one -> request.typesFilter().add(one.asText()));
        then(broker.service.listGroups(context(ApiKeys.LIST_GROUPS, JSON.createObjectNode(), 5), request),
            (response, error) -> {
                answer.put("err", name(error == null ? Errors.forCode(response.errorCode()) : code(error)));
                if (error != null) return;
                ArrayNode groups = answer.putArray("groups");
                response.groups().stream().sorted(Comparator.comparing(ListedGroup::groupId)).forEach(one ->
                    groups.addObject().put("g", one.groupId()).put("ptype", one.protocolType())
                        .put("state", one.groupState()).put("type", one.groupType()));
            });
    }

    /** Calls {@code answer} when the future completes: during the command, or during a later one. */
    private <T> void then(CompletableFuture<T> future, BiConsumer<T, Throwable> answer) {
        future.whenComplete(answer);
    }

    // Events ---------------------------------------------------------------------------------------------------------

    private ObjectNode event(String kind) {
        return events.addObject().put("ev", kind);
    }

    private void reload(JsonNode command) throws ReflectiveOperationException {
        broker.reload(command.has("max_size")
            ? Map.of(GroupCoordinatorConfig.GROUP_MAX_SIZE_CONFIG, command.get("max_size").asInt()) : Map.of());
        if (broker.log.isRefused()) event("refused log").put("t", broker.clock.milliseconds());
    }

    private void timerEvent(long at, String key) {
        event("timer").put("t", at).put("key", key);
    }

    private void joinEvent(int id, JoinGroupResponseData join) {
        ObjectNode event = event("join").put("id", id).put("t", broker.clock.milliseconds())
            .put("err", name(Errors.forCode(join.errorCode()))).put("gen", join.generationId())
            .put("ptype", join.protocolType()).put("proto", join.protocolName()).put("leader", join.leader())
            .put("member", join.memberId()).put("skip", join.skipAssignment());
        ArrayNode members = event.putArray("members");
        join.members().forEach(one -> members.addObject().put("id", one.memberId())
            .put("inst", one.groupInstanceId()).put("meta", show(one.metadata())));
    }

    private void syncEvent(int id, SyncGroupResponseData sync) {
        event("sync").put("id", id).put("t", broker.clock.milliseconds())
            .put("err", name(Errors.forCode(sync.errorCode()))).put("ptype", sync.protocolType())
            .put("proto", sync.protocolName()).put("asg", show(sync.assignment()));
    }

    private void recordEvent(MemoryLog.Entry entry) {
        RecordEvents.show(entry, event("record").put("t", broker.clock.milliseconds()));
    }
}
