// SPDX-License-Identifier: Apache-2.0
package oracle;

import static oracle.Fields.*;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/** The requests of consumer groups and share groups, whose broker assigns. */
final class AssigningGroups {
    private final Broker broker;

    AssigningGroups(Broker broker) {
        this.broker = broker;
    }

    void consumerHeartbeat(JsonNode command, ObjectNode answer) {
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setMemberEpoch(number(command, "epoch", 0))
            .setInstanceId(text(command, "inst", null)).setRackId(text(command, "rack", null))
            .setRebalanceTimeoutMs(number(command, "rt", -1)).setSubscribedTopicNames(texts(command, "topics"))
            .setSubscribedTopicRegex(text(command, "regex", null)).setServerAssignor(text(command, "assignor", null))
            .setTopicPartitions(numbered(command.path("owned"), (topic, partitions) ->
                new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                    .setTopicId(broker.cluster.id(topic)).setPartitions(partitions)));
        broker.service.consumerGroupHeartbeat(context(ApiKeys.CONSUMER_GROUP_HEARTBEAT, command, 1), request)
            .whenComplete((response, error) -> {
                if (refused(answer, error, () -> Errors.forCode(response.errorCode()), () -> response.errorMessage())) return;
                alive(answer, response.memberId(), response.memberEpoch(), response.heartbeatIntervalMs());
                assigned(answer, response.assignment() == null ? null : response.assignment().topicPartitions(),
                    (shown, one) -> sorted(shown, broker.cluster.name(one.topicId()), one.partitions()));
            });
    }

    void shareHeartbeat(JsonNode command, ObjectNode answer) {
        ShareGroupHeartbeatRequestData request = new ShareGroupHeartbeatRequestData().setGroupId(group(command))
            .setMemberId(text(command, "m", "")).setMemberEpoch(number(command, "epoch", 0))
            .setRackId(text(command, "rack", null)).setSubscribedTopicNames(texts(command, "topics"));
        broker.service.shareGroupHeartbeat(context(ApiKeys.SHARE_GROUP_HEARTBEAT, command, 1), request)
            .whenComplete((response, error) -> {
                if (refused(answer, error, () -> Errors.forCode(response.errorCode()), () -> response.errorMessage())) return;
                alive(answer, response.memberId(), response.memberEpoch(), response.heartbeatIntervalMs());
                assigned(answer, response.assignment() == null ? null : response.assignment().topicPartitions(),
                    (shown, one) -> sorted(shown, broker.cluster.name(one.topicId()), one.partitions()));
            });
    }

    void describeConsumer(JsonNode command, ObjectNode answer) {
        broker.service.consumerGroupDescribe(context(ApiKeys.CONSUMER_GROUP_DESCRIBE, command, 1), List.of(group(command)))
            .whenComplete((response, error) -> {
                ConsumerGroupDescribeResponseData.DescribedGroup one = error == null ? response.get(0) : null;
                if (refused(answer, error, () -> Errors.forCode(one.errorCode()), () -> one.errorMessage())) return;
                answer.put("state", one.groupState()).put("epoch", one.groupEpoch())
                    .put("assignment_epoch", one.assignmentEpoch()).put("assignor", one.assignorName());
                ObjectNode members = answer.putObject("members");
                one.members().forEach(member -> {
                    ObjectNode shown = members.putObject(member.memberId()).put("epoch", member.memberEpoch())
                        .put("inst", member.instanceId()).put("rack", member.rackId())
                        .put("regex", member.subscribedTopicRegex()).put("type", member.memberType());
                    member.subscribedTopicNames().stream().sorted().forEach(shown.putArray("topics")::add);
                    ObjectNode owned = shown.putObject("asg");
                    member.assignment().topicPartitions().forEach(t -> sorted(owned, t.topicName(), t.partitions()));
                    ObjectNode target = shown.putObject("target");
                    member.targetAssignment().topicPartitions().forEach(t -> sorted(target, t.topicName(), t.partitions()));
                });
            });
    }

    void describeShare(JsonNode command, ObjectNode answer) {
        broker.service.shareGroupDescribe(context(ApiKeys.SHARE_GROUP_DESCRIBE, command, 1), List.of(group(command)))
            .whenComplete((response, error) -> {
                ShareGroupDescribeResponseData.DescribedGroup one = error == null ? response.get(0) : null;
                if (refused(answer, error, () -> Errors.forCode(one.errorCode()), () -> one.errorMessage())) return;
                answer.put("state", one.groupState()).put("epoch", one.groupEpoch())
                    .put("assignment_epoch", one.assignmentEpoch()).put("assignor", one.assignorName());
                ObjectNode members = answer.putObject("members");
                one.members().forEach(member -> {
                    ObjectNode shown = members.putObject(member.memberId()).put("epoch", member.memberEpoch())
                        .put("rack", member.rackId());
                    member.subscribedTopicNames().stream().sorted().forEach(shown.putArray("topics")::add);
                    ObjectNode owned = shown.putObject("asg");
                    member.assignment().topicPartitions().forEach(t -> sorted(owned, t.topicName(), t.partitions()));
                });
            });
    }

    // Common parts of the requests and answers of all groups ----------------------------------------------------------

    /** Shows the error, and returns whether there is one. */
    static boolean refused(ObjectNode answer, Throwable error, Supplier<Errors> code, Supplier<String> message) {
        Errors shown = error == null ? code.get() : Fields.code(error);
        answer.put("err", name(shown)).put("msg", error == null ? message.get() : error.getMessage());
        return shown != Errors.NONE;
    }

    static void alive(ObjectNode answer, String memberId, int epoch, int interval) {
        answer.put("member", memberId).put("epoch", epoch).put("interval", interval);
    }

    private static <T> void assigned(ObjectNode answer, List<T> topics, BiConsumer<ObjectNode, T> show) {
        if (topics == null) {
            answer.putNull("asg");
            return;
        }
        ObjectNode shown = answer.putObject("asg");
        topics.forEach(one -> show.accept(shown, one));
    }

    static void sorted(ObjectNode shown, String name, List<Integer> numbers) {
        ArrayNode list = shown.putArray(name);
        numbers.stream().sorted().forEach(list::add);
    }

    /** Reads {name: [number]}; null if the field is absent or null. */
    static <T> List<T> numbered(JsonNode given, BiFunction<String, List<Integer>, T> make) {
        if (!given.isObject()) return null;
        List<T> made = new ArrayList<>();
        for (Iterator<Map.Entry<String, JsonNode>> i = given.fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> one = i.next();
            List<Integer> numbers = new ArrayList<>();
            one.getValue().forEach(number -> numbers.add(number.asInt()));
            made.add(make.apply(one.getKey(), numbers));
        }
        return made;
    }
}
