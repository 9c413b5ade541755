// SPDX-License-Identifier: Apache-2.0
package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;

/** Encodes and decodes with Kafka's own codecs; bytes are written in hexadecimal. */
final class Wire {
    private Wire() {}

    /** Returns the bytes or the decoded fields, or {@code error} if Kafka's codec throws. */
    static ObjectNode answer(JsonNode request) {
        String wire = Fields.text(request, "wire");
        ObjectNode answer = Fields.NODES.objectNode();
        switch (wire) {
            case "encode_subscription" -> encodeSubscription(request, answer);
            case "decode_subscription" -> decodeSubscription(request, answer);
            case "encode_assignment" -> encodeAssignment(request, answer);
            case "decode_assignment" -> decodeAssignment(request, answer);
            case "encode_sticky" -> encodeSticky(request, answer);
            case "decode_sticky" -> decodeSticky(request, answer);
            case "encode_cooperative" -> encodeCooperative(request, answer);
            case "decode_cooperative" -> decodeCooperative(request, answer);
            default -> throw new BadInput("wire request " + wire + " is unknown");
        }
        return answer;
    }

    private static void encodeSubscription(JsonNode request, ObjectNode answer) {
        var subscription = new Subscription(
                Fields.texts(request, "topics"),
                Fields.bytesOrNull(request, "user_data"),
                Fields.pairs(request, "owned_partitions"),
                Fields.integer(request, "generation_id", -1),
                Optional.ofNullable(Fields.textOrNull(request, "rack_id")));
        short version = (short) Fields.integer(request, "version");
        guarded(answer, () ->
                Fields.put(answer, "bytes", ConsumerProtocol.serializeSubscription(subscription, version)));
    }

    private static void decodeSubscription(JsonNode request, ObjectNode answer) {
        ByteBuffer bytes = bytes(request);
        guarded(answer, () -> {
            short version = ConsumerProtocol.deserializeVersion(bytes.duplicate());
            Subscription subscription = ConsumerProtocol.deserializeSubscription(bytes);
            answer.put("version", version);
            var topics = answer.putArray("topics");
            subscription.topics().forEach(topics::add);
            Fields.put(answer, "user_data", subscription.userData());
            Fields.put(answer, "owned_partitions", subscription.ownedPartitions());
            answer.put("generation_id", subscription.generationId().orElse(null));
            answer.put("rack_id", subscription.rackId().orElse(null));
        });
    }

    private static void encodeAssignment(JsonNode request, ObjectNode answer) {
        var assignment = new Assignment(
                Fields.pairs(request, "partitions"), Fields.bytesOrNull(request, "user_data"));
        short version = (short) Fields.integer(request, "version");
        guarded(answer, () ->
                Fields.put(answer, "bytes", ConsumerProtocol.serializeAssignment(assignment, version)));
    }

    private static void decodeAssignment(JsonNode request, ObjectNode answer) {
        ByteBuffer bytes = bytes(request);
        guarded(answer, () -> {
            short version = ConsumerProtocol.deserializeVersion(bytes.duplicate());
            Assignment assignment = ConsumerProtocol.deserializeAssignment(bytes);
            answer.put("version", version);
            Fields.put(answer, "partitions", assignment.partitions());
            Fields.put(answer, "user_data", assignment.userData());
        });
    }

    private static void encodeSticky(JsonNode request, ObjectNode answer) {
        var assignment = new Assignment(Fields.pairs(request, "partitions"));
        int generation = Fields.integer(request, "generation_id");
        guarded(answer, () -> {
            var assignor = new StickyAssignor();
            assignor.onAssignment(assignment, Cases.generation(generation));
            Fields.put(answer, "bytes", assignor.subscriptionUserData(Set.of()));
        });
    }

    private static void decodeSticky(JsonNode request, ObjectNode answer) {
        var subscription = new Subscription(List.of(), Fields.bytesOrNull(request, "bytes"));
        guarded(answer, () -> new OpenSticky().read(subscription, answer));
    }

    private static void encodeCooperative(JsonNode request, ObjectNode answer) {
        int generation = Fields.integer(request, "generation_id");
        guarded(answer, () -> {
            var assignor = new CooperativeStickyAssignor();
            assignor.onAssignment(new Assignment(List.of()), Cases.generation(generation));
            Fields.put(answer, "bytes", assignor.subscriptionUserData(Set.of()));
        });
    }

    private static void decodeCooperative(JsonNode request, ObjectNode answer) {
        var subscription = new Subscription(
                List.of(),
                Fields.bytesOrNull(request, "bytes"),
                Fields.pairs(request, "owned_partitions"),
                Fields.integer(request, "generation_id", -1),
                Optional.empty());
        guarded(answer, () -> new OpenCooperative().read(subscription, answer));
    }

    private static ByteBuffer bytes(JsonNode request) {
        ByteBuffer bytes = Fields.bytesOrNull(request, "bytes");
        if (bytes == null) {
            throw new BadInput("bytes is missing");
        }
        return bytes;
    }

    /** Runs the codec; an exception of Kafka's codec becomes the answer's {@code error}. */
    private static void guarded(ObjectNode answer, Runnable codec) {
        try {
            codec.run();
        } catch (Exception | StackOverflowError e) {
            answer.removeAll();
            answer.put("error", Oracle.describe(e));
        }
    }

    /** Puts the owned partitions and generation that an assignor read from a member's subscription. */
    private static void member(ObjectNode answer, List<TopicPartition> owned, Optional<Integer> generation) {
        Fields.put(answer, "owned_partitions", owned);
        answer.put("generation_id", generation.orElse(null));
    }

    /** Gives access to StickyAssignor's protected decoder of user data. */
    private static final class OpenSticky extends StickyAssignor {
        void read(Subscription subscription, ObjectNode answer) {
            MemberData data = memberData(subscription);
            Wire.member(answer, data.partitions, data.generation);
        }
    }

    /** Gives access to CooperativeStickyAssignor's protected decoder of user data. */
    private static final class OpenCooperative extends CooperativeStickyAssignor {
        void read(Subscription subscription, ObjectNode answer) {
            MemberData data = memberData(subscription);
            Wire.member(answer, data.partitions, data.generation);
        }
    }
}
