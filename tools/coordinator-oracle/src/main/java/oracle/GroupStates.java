// SPDX-License-Identifier: Apache-2.0
package oracle;

import static oracle.Fields.JSON;

import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.ModernGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;

/** Shows the state of a group in Kafka's coordinator: {@code state} for classic groups, {@code mstate} for all. */
final class GroupStates {
    private final Broker broker;

    GroupStates(Broker broker) {
        this.broker = broker;
    }

    ObjectNode classic(String groupId) throws ReflectiveOperationException {
        ObjectNode state = withTimers(groupId);
        if (!(broker.group(groupId) instanceof ClassicGroup group)) {
            return state.put("state", "ABSENT:" + Errors.GROUP_ID_NOT_FOUND);
        }
        state.put("state", group.currentState().toString()).put("gen", group.generationId())
            .put("proto", group.protocolName().orElse(null)).put("ptype", group.protocolType().orElse(null))
            .put("leader", group.leaderOrNull()).put("ts", group.currentStateTimestampOrDefault());
        ArrayNode members = state.putArray("members");
        group.allMemberIds().stream().sorted().forEach(members::add);
        state.put("pending", group.numPendingJoinMembers()).put("awaiting", group.numAwaitingJoinResponse())
            .put("simple", group.isSimpleGroup());
        ArrayNode pendingSync = state.putArray("pending_sync");
        group.allPendingSyncMembers().stream().sorted().forEach(pendingSync::add);
        return state;
    }

    ObjectNode ofAnyType(String groupId) throws ReflectiveOperationException {
        ObjectNode state = withTimers(groupId);
        Object found = broker.group(groupId);
        if (found instanceof ClassicGroup group) {
            state.put("type", "classic").put("state", group.currentState().toString());
        } else if (found instanceof ConsumerGroup group) {
            epochs(state.put("type", "consumer").put("state", group.state().toString()), group);
            ObjectNode members = state.putObject("members");
            group.members().forEach((id, member) -> consumer(members.putObject(id), group, member));
        } else if (found instanceof ShareGroup group) {
            epochs(state.put("type", "share").put("state", group.state().toString()), group);
            ObjectNode members = state.putObject("members");
            group.members().forEach((id, member) -> share(members.putObject(id), group, member));
        } else if (found instanceof StreamsGroup group) {
            state.put("type", "streams").put("state", group.state().toString()).put("epoch", group.groupEpoch())
                .put("assignment_epoch", group.assignmentEpoch()).put("assigned_at", group.assignmentTimestamp());
            ObjectNode members = state.putObject("members");
            group.members().forEach((id, member) -> streams(members.putObject(id), group, member));
        } else {
            state.put("type", "absent");
        }
        return state;
    }

    private ObjectNode withTimers(String groupId) {
        ObjectNode state = JSON.createObjectNode();
        ObjectNode timers = state.putObject("timers");
        broker.clock.timersOf(groupId).forEach(timers::put);
        return state;
    }

    private static void epochs(ObjectNode state, ModernGroup<?> group) {
        state.put("epoch", group.groupEpoch()).put("assignment_epoch", group.assignmentEpoch())
            .put("assigned_at", group.assignmentTimestamp()).put("subscription", group.subscriptionType().name());
    }

    private void consumer(ObjectNode shown, ConsumerGroup group, ConsumerGroupMember member) {
        epochs(shown, member);
        withEpochs(shown.putObject("assigned"), member.assignedPartitions());
        withEpochs(shown.putObject("pending"), member.partitionsPendingRevocation());
        shown.put("classic", member.useClassicProtocol());
        partitions(shown.putObject("target"), group.targetAssignment(member.memberId()).partitions());
    }

    private void share(ObjectNode shown, ShareGroup group, ShareGroupMember member) {
        epochs(shown, member);
        partitions(shown.putObject("assigned"), member.assignedPartitions());
        partitions(shown.putObject("target"), group.targetAssignment(member.memberId()).partitions());
    }

    private static void epochs(ObjectNode shown, ModernGroupMember member) {
        shown.put("epoch", member.memberEpoch()).put("prev", member.previousMemberEpoch())
            .put("state", member.state().toString());
    }

    private static void streams(ObjectNode shown, StreamsGroup group, StreamsGroupMember stored) {
        // A log can lose the record of a member's assignment. Kafka's fields are null then.
        StreamsGroupMember member = stored.assignedTasks() != null ? stored : new StreamsGroupMember.Builder(stored)
            .setState(MemberState.STABLE).setAssignedTasks(TasksTupleWithEpochs.EMPTY)
            .setTasksPendingRevocation(TasksTupleWithEpochs.EMPTY).build();
        shown.put("epoch", member.memberEpoch()).put("prev", member.previousMemberEpoch())
            .put("state", member.state().toString());
        tasks(shown.putObject("assigned"), member.assignedTasks());
        tasks(shown.putObject("pending"), member.tasksPendingRevocation());
        TasksTuple target = group.targetAssignment().getOrDefault(member.memberId(), TasksTuple.EMPTY);
        ObjectNode wanted = shown.putObject("target");
        sets(wanted.putObject("active"), target.activeTasks());
        sets(wanted.putObject("standby"), target.standbyTasks());
        sets(wanted.putObject("warmup"), target.warmupTasks());
    }

    private static void tasks(ObjectNode shown, TasksTupleWithEpochs tasks) {
        ObjectNode active = shown.putObject("active");
        tasks.activeTasksWithEpochs().forEach((subtopology, epochs) -> epochs(active.putObject(subtopology), epochs));
        sets(shown.putObject("standby"), tasks.standbyTasks());
        sets(shown.putObject("warmup"), tasks.warmupTasks());
    }

    private void withEpochs(ObjectNode shown, Map<Uuid, Map<Integer, Integer>> partitions) {
        partitions.forEach((id, epochs) -> epochs(shown.putObject(broker.cluster.name(id)), epochs));
    }

    private static void epochs(ObjectNode shown, Map<Integer, Integer> epochs) {
        epochs.forEach((partition, epoch) -> shown.put(Integer.toString(partition), epoch));
    }

    private void partitions(ObjectNode shown, Map<Uuid, Set<Integer>> partitions) {
        partitions.forEach((id, numbers) -> sorted(shown.putArray(broker.cluster.name(id)), numbers));
    }

    private static void sets(ObjectNode shown, Map<String, Set<Integer>> tasks) {
        tasks.forEach((subtopology, numbers) -> sorted(shown.putArray(subtopology), numbers));
    }

    private static void sorted(ArrayNode shown, Set<Integer> numbers) {
        numbers.stream().sorted().forEach(shown::add);
    }
}
