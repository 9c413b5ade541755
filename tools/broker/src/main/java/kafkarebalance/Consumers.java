// SPDX-License-Identifier: Apache-2.0
package kafkarebalance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Runs many real Kafka consumers in one JVM. Standard input contains the commands, one JSON line
 * each.
 *
 * <pre>
 * Consumers BOOTSTRAP_SERVER
 * {"add": [{"client_id": "c1", "group_id": "g", "assignors": ["range"], "topics": ["t"],
 *           "client_rack": "a", "group_instance_id": "i1", "configs": {"max.poll.interval.ms": "60000"}}]}
 * {"close": ["c1"]}              these consumers leave
 * {"kill": ["c1"]}               these end without LeaveGroup, so their sessions must time out
 * {"stall": ["c1"]}              these stop polling but stay members: the next rebalance waits for them
 * {"subscribe": {"c1": ["u"]}}   these subscribe to other topics; one that begins with ^ is a pattern
 * </pre>
 *
 * A consumer's name is its "name", or its client id if "name" is absent; names must be unique. In configs, null
 * removes a setting. Each line is answered when every group without a stalled member is stable:
 * {"groups": {"g": {"c1": {"member_id": ..., "generation_id": ..., "assignment": [["t", 0], ...]}}}},
 * or with {"error": ...}. A line with "wait": false is answered at once with {"failures": {"c1": ...}}, the consumers
 * that have failed so far. The end of the input closes all consumers and ends the program.
 */
public final class Consumers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long LOOK_AGAIN_MS = 200;
    private static final long STABLE_TIMEOUT_MS = 60_000;
    private static final long CLOSE_TIMEOUT_MS = 3_000;
    /** This many equal looks in a row mean stable: a cooperative group is briefly stable between two rebalances. */
    private static final int SAME_LOOKS = 3;

    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final String bootstrapServer;
    private final Map<String, Member> members = new LinkedHashMap<>();

    private Consumers(String bootstrapServer) {
        this.bootstrapServer = bootstrapServer;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 1) {
            System.err.println("usage: Consumers BOOTSTRAP_SERVER < lines of JSON");
            System.exit(2);
        }
        new Consumers(arguments[0]).run();
    }

    private void run() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrapServer))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                System.out.println(JSON.writeValueAsString(answer(admin, line)));
                System.out.flush();
            }
        }
        members.values().forEach(Member::finish);
        long deadline = System.currentTimeMillis() + CLOSE_TIMEOUT_MS;
        for (Member member : members.values()) {
            member.join(Math.max(1, deadline - System.currentTimeMillis()));
        }
        System.exit(0);
    }

    private Map<String, Object> answer(Admin admin, String line) throws InterruptedException {
        try {
            JsonNode command = JSON.readTree(line);
            obey(command);
            return command.path("wait").asBoolean(true)
                ? Map.of("groups", awaitStable(admin))
                : Map.of("failures", failures());
        } catch (InterruptedException interrupted) {
            throw interrupted;
        } catch (Exception wrong) {
            return Map.of("error", String.valueOf(wrong));
        }
    }

    private void obey(JsonNode command) throws InterruptedException {
        for (JsonNode description : command.path("add")) {
            Member member = new Member(bootstrapServer, description);
            if (members.putIfAbsent(member.name, member) != null) {
                throw new IllegalArgumentException("name: " + member.name + " is there already");
            }
            member.start();
        }
        for (JsonNode name : command.path("stall")) {
            find(name.asText()).stalled = true;
        }
        for (JsonNode name : command.path("kill")) {
            end(find(name.asText()), GroupMembershipOperation.REMAIN_IN_GROUP);
        }
        for (JsonNode name : command.path("close")) {
            end(find(name.asText()), GroupMembershipOperation.DEFAULT);
        }
        for (Map.Entry<String, JsonNode> one : command.path("subscribe").properties()) {
            find(one.getKey()).topics = Member.strings(one.getValue());
        }
    }

    private void end(Member member, GroupMembershipOperation operation) throws InterruptedException {
        member.atTheEnd = operation;
        member.finish();
        member.join(CLOSE_TIMEOUT_MS);
        members.remove(member.name);
    }

    private Member find(String name) {
        Member member = members.get(name);
        if (member == null) {
            throw new IllegalArgumentException("name: no consumer " + name);
        }
        return member;
    }

    private Map<String, String> failures() {
        Map<String, String> failures = new TreeMap<>();
        for (Member member : members.values()) {
            if (member.failure != null) {
                failures.put(member.name, String.valueOf(member.failure));
            }
        }
        return failures;
    }

    private Map<String, Map<String, Object>> awaitStable(Admin admin) throws Exception {
        long deadline = System.currentTimeMillis() + STABLE_TIMEOUT_MS;
        Map<String, Map<String, Object>> last = null;
        for (int same = 0; System.currentTimeMillis() < deadline; Thread.sleep(LOOK_AGAIN_MS)) {
            for (Member member : members.values()) {
                if (member.failure != null) {
                    throw new IllegalStateException(member.name + ": " + member.failure, member.failure);
                }
            }
            Map<String, Map<String, Object>> now = look(admin);
            same = now != null && now.equals(last) ? same + 1 : 1;
            last = now;
            if (now != null && same >= SAME_LOOKS) {
                return now;
            }
        }
        throw new IllegalStateException("groups are not stable after " + STABLE_TIMEOUT_MS + " ms");
    }

    /** Group -> consumer -> its state; null while a group is not stable or a consumer lacks its new assignment. */
    private Map<String, Map<String, Object>> look(Admin admin) throws Exception {
        Map<String, List<Member>> byGroup = new TreeMap<>();
        members.values().forEach(m -> byGroup.computeIfAbsent(m.groupId, g -> new ArrayList<>()).add(m));
        byGroup.values().removeIf(group -> group.stream().anyMatch(m -> m.stalled));
        Map<String, ConsumerGroupDescription> described;
        try {
            described = admin.describeConsumerGroups(byGroup.keySet()).all().get();
        } catch (ExecutionException notYet) {
            return null;
        }
        Map<String, Map<String, Object>> groups = new TreeMap<>();
        for (Map.Entry<String, List<Member>> entry : byGroup.entrySet()) {
            ConsumerGroupDescription group = described.get(entry.getKey());
            if (group.groupState() != GroupState.STABLE) {
                return null;
            }
            Map<String, Set<TopicPartition>> owned = new LinkedHashMap<>();
            for (MemberDescription member : group.members()) {
                owned.put(member.consumerId(), member.assignment().topicPartitions());
            }
            Map<String, Object> consumers = new TreeMap<>();
            for (Member member : entry.getValue()) {
                Look look = member.look;
                if (look == null || !look.assignment.equals(owned.get(look.memberId))) {
                    return null;
                }
                consumers.put(member.name, look.toJson());
            }
            groups.put(entry.getKey(), consumers);
        }
        return groups;
    }

    /** A consumer's state at its last poll, because only the consumer's own thread may read the consumer. */
    private record Look(String memberId, int generationId, Set<TopicPartition> assignment) {
        Map<String, Object> toJson() {
            TreeSet<TopicPartition> sorted = new TreeSet<>(
                (a, b) -> a.topic().equals(b.topic()) ? a.partition() - b.partition() : a.topic().compareTo(b.topic()));
            sorted.addAll(assignment);
            List<List<Object>> partitions = new ArrayList<>();
            sorted.forEach(p -> partitions.add(List.of(p.topic(), p.partition())));
            return Map.of("member_id", memberId, "generation_id", generationId, "assignment", partitions);
        }
    }

    private static final class Member extends Thread {
        final String name;
        final String groupId;
        volatile boolean stalled;
        volatile List<String> topics;
        volatile GroupMembershipOperation atTheEnd = GroupMembershipOperation.DEFAULT;
        volatile Look look;
        volatile Throwable failure;
        private volatile boolean stopped;
        private final Properties properties;

        Member(String bootstrapServer, JsonNode description) {
            super("consumer-" + description.path("client_id").asText());
            setDaemon(true);
            String clientId = description.path("client_id").asText();
            name = description.path("name").asText(clientId);
            groupId = description.path("group_id").asText();
            topics = strings(description.path("topics"));
            properties = new Properties();
            properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServer);
            properties.put(ConsumerConfig.GROUP_ID_CONFIG, groupId);
            properties.put(ConsumerConfig.CLIENT_ID_CONFIG, clientId);
            properties.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, "300");
            properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
            properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
            properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
            List<String> assignors = strings(description.path("assignors"));
            if (!assignors.isEmpty()) {
                properties.put(
                    ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG,
                    assignors.stream().map(name -> ASSIGNORS.getOrDefault(name, name)).toList());
            }
            put(ConsumerConfig.CLIENT_RACK_CONFIG, description.path("client_rack"));
            put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, description.path("group_instance_id"));
            for (Map.Entry<String, JsonNode> config : description.path("configs").properties()) {
                properties.remove(config.getKey());
                put(config.getKey(), config.getValue());
            }
        }

        private void put(String key, JsonNode value) {
            if (value.isValueNode() && !value.isNull()) {
                properties.put(key, value.asText());
            }
        }

        void finish() {
            stopped = true;
        }

        @Override
        public void run() {
            try {
                poll(new KafkaConsumer<>(properties));
            } catch (Throwable wrong) {
                failure = wrong;
            }
        }

        private void poll(KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
            List<String> subscribed = null;
            try {
                while (!stopped) {
                    if (stalled) {
                        Thread.sleep(POLL.toMillis());
                        continue;
                    }
                    if (topics != subscribed) {
                        subscribed = topics;
                        if (subscribed.size() == 1 && subscribed.get(0).startsWith("^")) {
                            consumer.subscribe(Pattern.compile(subscribed.get(0)));
                        } else {
                            consumer.subscribe(subscribed);
                        }
                    }
                    consumer.poll(POLL);
                    look = new Look(
                        consumer.groupMetadata().memberId(),
                        consumer.groupMetadata().generationId(),
                        Set.copyOf(consumer.assignment()));
                }
            } finally {
                consumer.close(CloseOptions.groupMembershipOperation(atTheEnd));
            }
        }

        static List<String> strings(JsonNode array) {
            List<String> list = new ArrayList<>();
            array.forEach(item -> list.add(item.asText()));
            return list;
        }
    }
}
