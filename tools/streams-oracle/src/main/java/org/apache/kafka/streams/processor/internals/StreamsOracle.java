// SPDX-License-Identifier: Apache-2.0
package org.apache.kafka.streams.processor.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.internals.KafkaFutureImpl;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ReferenceContainer;
import sun.misc.Unsafe;

/**
 * Reads applications as JSON lines, and answers as the unmodified {@link StreamsPartitionAssignor} with a made-up
 * cluster. It is in Kafka's package because the topics of a subtopology have a constructor for that package only.
 */
public final class StreamsOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private StreamsOracle() {}

    /** Answers every line of standard input, in order, until it ends. */
    public static void main(String[] args) throws IOException {
        var input = new BufferedReader(new InputStreamReader(
                new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8), 1 << 16);
        var output = new BufferedWriter(new OutputStreamWriter(
                new FileOutputStream(FileDescriptor.out), StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode application = JSON.readTree(line);
            ObjectNode answer;
            try {
                answer = answer(application);
            } catch (ReflectiveOperationException e) {
                answer = JSON.createObjectNode().put("oracle_error", e.toString());
            } catch (RuntimeException e) {
                answer = JSON.createObjectNode().put("error", e.getClass().getSimpleName() + ": " + e.getMessage());
            }
            output.write(JSON.writeValueAsString(answer));
            output.write('\n');
            output.flush();
        }
    }

    private static ObjectNode answer(JsonNode application) throws ReflectiveOperationException {
        setFutureId(UUID.fromString(application.get("future_process_id").textValue()));
        Time time = time(application.get("now_ms").longValue());
        Map<String, Object> configs = configs(application);
        StreamsConfig config = new StreamsConfig(configs);
        Admin admin = admin(application.get("end_offsets"));
        TopologyMetadata topology = new Topology(application, config);
        var container = new ReferenceContainer();
        container.mainConsumer = consumer(application.get("committed_offsets"));
        container.adminClient = admin;
        container.time = time;
        container.clientTags = Map.of();
        container.streamsMetadataState =
                new StreamsMetadataState(topology, StreamsMetadataState.UNKNOWN_HOST, new LogContext());
        var leader = new ProcessId(UUID.fromString(application.get("leader_process_id").textValue()));
        container.taskManager =
                new TaskManager(time, null, leader, "", null, null, null, topology, admin, null, null, null);
        configs.put(StreamsConfig.InternalConfig.REFERENCE_CONTAINER_PARTITION_ASSIGNOR, container);
        var assignor = new StreamsPartitionAssignor();
        assignor.configure(configs);
        assignor.setInternalTopicManager(new Topics(application, time, admin, config));
        ObjectNode members = JSON.createObjectNode();
        Cluster cluster = cluster(application);
        var subscriptions = new GroupSubscription(subscriptions(application));
        var clock = ManagementFactory.getThreadMXBean();
        long began = clock.getCurrentThreadCpuTime();
        var answer = assignor.assign(cluster, subscriptions);
        long took = clock.getCurrentThreadCpuTime() - began;
        answer.groupAssignment().forEach((memberId, assignment) -> {
            ObjectNode member = members.putObject(memberId);
            ArrayNode partitions = member.putArray("partitions");
            assignment.partitions().forEach(tp -> partitions.addArray().add(tp.topic()).add(tp.partition()));
            byte[] data = new byte[assignment.userData().remaining()];
            assignment.userData().get(data);
            member.put("user_data", Base64.getEncoder().encodeToString(data));
        });
        ObjectNode found = JSON.createObjectNode().put("assign_ns", took);
        return found.set("members", members);
    }

    private static Map<String, Object> configs(JsonNode application) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("application.id", application.get("application_id").textValue());
        configs.put("bootstrap.servers", "localhost:1");
        application.get("configs").properties().forEach(entry -> {
            String name = entry.getKey().replace('_', '.');
            name = name.replace("traffic.cost", "traffic_cost").replace("non.overlap.cost", "non_overlap_cost");
            if (entry.getValue().isArray()) {
                List<String> tags = strings(entry.getValue());
                tags.forEach(tag -> configs.put("client.tag." + tag, "any"));
                configs.put(name, tags);
            } else if (!entry.getValue().isNull()) {
                configs.put(name, entry.getValue().asText());
            }
        });
        String internal = "org.apache.kafka.streams.processor.internals.assignment.";
        switch (application.get("assignor").textValue()) {
            case "legacy_sticky" -> configs.put("internal.task.assignor.class", internal + "LegacyStickyTaskAssignor");
            case "sticky" -> configs.put("task.assignor.class",
                    "org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor");
            default -> configs.put("internal.task.assignor.class", internal + "HighAvailabilityTaskAssignor");
        }
        return configs;
    }

    private static Map<String, Subscription> subscriptions(JsonNode application) {
        Set<String> sources = new HashSet<>();
        application.get("subtopologies").forEach(one -> sources.addAll(sources(one)));
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : application.get("members")) {
            List<TopicPartition> owned = new ArrayList<>();
            member.get("owned_partitions").forEach(
                    tp -> owned.add(new TopicPartition(tp.get(0).textValue(), tp.get(1).intValue())));
            ByteBuffer data = ByteBuffer.wrap(Base64.getDecoder().decode(member.get("user_data").textValue()));
            Optional<String> rack = Optional.ofNullable(member.get("rack_id").textValue());
            var subscription = new Subscription(new ArrayList<>(sources), data, owned, 1, rack);
            subscriptions.put(member.get("member_id").textValue(), subscription);
        }
        return subscriptions;
    }

    private static Set<String> sources(JsonNode subtopology) {
        Set<String> sources = new HashSet<>(strings(subtopology.get("source_topics")));
        sources.addAll(strings(subtopology.get("repartition_source_topics")));
        return sources;
    }

    private static Cluster cluster(JsonNode application) {
        Map<Integer, Node> nodes = nodes(application);
        Set<String> sources = new HashSet<>();
        application.get("subtopologies").forEach(one -> sources.addAll(sources(one)));
        List<PartitionInfo> partitions = new ArrayList<>();
        application.get("topics").properties().stream().filter(topic -> sources.contains(topic.getKey())).forEach(topic -> {
            for (int p = 0; p < topic.getValue().size(); p++) {
                Node[] replicas = replicas(topic.getValue().get(p), nodes).toArray(Node[]::new);
                partitions.add(new PartitionInfo(topic.getKey(), p, replicas[0], replicas, replicas));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static Map<Integer, Node> nodes(JsonNode application) {
        Map<Integer, Node> nodes = new HashMap<>();
        application.get("brokers").properties().forEach(broker -> {
            int id = Integer.parseInt(broker.getKey());
            nodes.put(id, new Node(id, "localhost", 9000 + id, broker.getValue().textValue()));
        });
        return nodes;
    }

    private static List<Node> replicas(JsonNode ids, Map<Integer, Node> nodes) {
        List<Node> replicas = new ArrayList<>();
        ids.forEach(id -> replicas.add(nodes.get(id.intValue())));
        return replicas;
    }

    private static List<String> strings(JsonNode list) {
        List<String> strings = new ArrayList<>();
        list.forEach(one -> strings.add(one.textValue()));
        return strings;
    }

    private static Time time(long nowMs) {
        return (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
                (proxy, method, args) -> method.getName().equals("milliseconds") ? nowMs : method.invoke(Time.SYSTEM, args));
    }

    /** An Admin that knows the ends of changelogs; if {@code ends} is null, it fails. */
    private static Admin admin(JsonNode ends) {
        return (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), new Class<?>[] {Admin.class}, (proxy, method, args) -> {
            if (!method.getName().equals("listOffsets")) {
                throw new UnsupportedOperationException(method.getName());
            }
            Map<TopicPartition, KafkaFuture<ListOffsetsResult.ListOffsetsResultInfo>> futures = new HashMap<>();
            for (Object each : ((Map<?, ?>) args[0]).keySet()) {
                var partition = (TopicPartition) each;
                var future = new KafkaFutureImpl<ListOffsetsResult.ListOffsetsResultInfo>();
                if (ends.isNull()) {
                    future.completeExceptionally(new RuntimeException("no end offsets"));
                } else {
                    long end = ends.get(partition.topic()).get(partition.partition()).longValue();
                    future.complete(new ListOffsetsResult.ListOffsetsResultInfo(end, -1, Optional.empty()));
                }
                futures.put(partition, future);
            }
            return new ListOffsetsResult(futures);
        });
    }

    @SuppressWarnings("unchecked")
    private static Consumer<byte[], byte[]> consumer(JsonNode committed) {
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(
                Consumer.class.getClassLoader(), new Class<?>[] {Consumer.class}, (proxy, method, args) -> {
                    if (!method.getName().equals("committed")) {
                        throw new UnsupportedOperationException(method.getName());
                    }
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (TopicPartition partition : (Set<TopicPartition>) args[0]) {
                        JsonNode offset = committed.path(partition.topic()).path(partition.partition());
                        offsets.put(partition, offset.isNumber() ? new OffsetAndMetadata(offset.longValue()) : null);
                    }
                    return offsets;
                });
    }

    /** The id of the process of future versions is random once in a JVM, and final. */
    private static void setFutureId(UUID id) throws ReflectiveOperationException {
        Field unsafe = Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        var access = (Unsafe) unsafe.get(null);
        // The class must be initialized, or it overwrites the id.
        Field field = Class.forName(StreamsPartitionAssignor.class.getName()).getDeclaredField("FUTURE_ID");
        access.putObject(access.staticFieldBase(field), access.staticFieldOffset(field), new ProcessId(id));
    }

    /** The subtopologies of a line. */
    private static final class Topology extends TopologyMetadata {
        private final Map<Subtopology, InternalTopologyBuilder.TopicsInfo> infos = new HashMap<>();
        private final Map<Integer, Set<String>> stores = new HashMap<>();

        Topology(JsonNode application, StreamsConfig config) {
            super(new InternalTopologyBuilder(), config);
            for (JsonNode one : application.get("subtopologies")) {
                Map<String, InternalTopicConfig> repartition = new HashMap<>();
                for (String topic : strings(one.get("repartition_source_topics"))) {
                    int count = application.get("topics").get(topic).size();
                    repartition.put(topic, new RepartitionTopicConfig(topic, Map.of(), count, true));
                }
                Map<String, InternalTopicConfig> changelogs = new HashMap<>();
                List<String> names = strings(one.get("changelog_topics"));
                names.addAll(strings(one.get("source_changelog_topics")));
                names.forEach(topic -> changelogs.put(topic, new UnwindowedUnversionedChangelogTopicConfig(topic, Map.of())));
                int id = one.get("subtopology_id").intValue();
                Set<String> sinks = new HashSet<>(strings(one.get("repartition_sink_topics")));
                infos.put(new Subtopology(id, null),
                        new InternalTopologyBuilder.TopicsInfo(sinks, sources(one), repartition, changelogs));
                Set<String> all = new HashSet<>(names);
                for (int i = 0; i < one.get("unlogged_stores").intValue(); i++) {
                    all.add("unlogged-" + i);
                }
                stores.put(id, all);
            }
        }

        @Override
        public Map<Subtopology, InternalTopologyBuilder.TopicsInfo> subtopologyTopicsInfoMapExcluding(Set<String> topologies) {
            return topologies.isEmpty() ? infos : Map.of();
        }

        @Override
        public Map<String, Map<Subtopology, InternalTopologyBuilder.TopicsInfo>> topologyToSubtopologyTopicsInfoMap() {
            return Map.of(UNNAMED_TOPOLOGY, infos);
        }

        @Override
        public Set<String> stateStoreNamesForSubtopology(String topology, int subtopologyId) {
            return stores.get(subtopologyId);
        }

        @Override
        public Collection<Set<String>> copartitionGroups() {
            return List.of();
        }
    }

    /** Internal topics that all exist, but for the new ones of a line. */
    private static final class Topics extends InternalTopicManager {
        private final JsonNode application;

        Topics(JsonNode application, Time time, Admin admin, StreamsConfig config) {
            super(time, admin, config);
            this.application = application;
        }

        @Override
        public Set<String> makeReady(Map<String, InternalTopicConfig> topics) {
            Set<String> made = new HashSet<>(strings(application.get("new_changelog_topics")));
            made.retainAll(topics.keySet());
            return made;
        }

        @Override
        public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(Set<String> topics) {
            Map<Integer, Node> nodes = nodes(application);
            Map<String, List<TopicPartitionInfo>> infos = new HashMap<>();
            for (String topic : topics) {
                List<TopicPartitionInfo> partitions = new ArrayList<>();
                JsonNode all = application.get("topics").path(topic);
                for (int p = 0; p < all.size(); p++) {
                    List<Node> replicas = replicas(all.get(p), nodes);
                    partitions.add(new TopicPartitionInfo(p, replicas.get(0), replicas, replicas));
                }
                infos.put(topic, partitions);
            }
            return infos;
        }
    }
}
