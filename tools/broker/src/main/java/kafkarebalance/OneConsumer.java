// SPDX-License-Identifier: Apache-2.0
package kafkarebalance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Runs one real Kafka consumer in its own JVM, so that it can be killed, and prints its callbacks.
 *
 * <pre>
 * OneConsumer DESCRIPTION       with {"topics": ["t"], "poll_ms": 100, "waits": false, "configs": {"group.id": "g", ...}}
 * </pre>
 *
 * Standard input contains these lines:
 *
 * <pre>
 * start       subscribes and polls
 * go          returns from the callback revoked, which waits for this line if "waits" is true
 * close       calls KafkaConsumer.close() and ends; the end of the input does this, too
 * </pre>
 *
 * Standard output contains a JSON line for every event, with the time in ms since 1970:
 *
 * <pre>
 * ready       the JVM is warm: another consumer has joined and left a group of its own
 * started     just before it subscribes
 * revoked     callback, with the revoked partitions
 * assigned    callback, with only the new partitions
 * lost        callback, with the lost partitions
 * closing     just before close()
 * closed      after close()
 * </pre>
 *
 * Each line except closed shows the consumer's generation and member id. Each line also contains
 * measurements of the consumer, from which a comparison computes its tolerance: gap_ms, the longest
 * time between two polls since the last line; answer_ms, the longest response time of a heartbeat
 * so far; joining_ms, the sum of the rebalances' durations, each from the first JoinGroup to the
 * last SyncGroup.
 */
public final class OneConsumer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String METRICS = "consumer-coordinator-metrics";

    private final List<String> topics = new ArrayList<>();
    private final Properties properties = new Properties();
    private final Duration poll;
    private final boolean waits;
    private final Semaphore go = new Semaphore(0);
    private final KafkaConsumer<byte[], byte[]> consumer;
    private volatile boolean stopped;
    private long polledMs;
    private long gapMs;

    private OneConsumer(JsonNode description) {
        description.path("topics").forEach(topic -> topics.add(topic.asText()));
        poll = Duration.ofMillis(description.path("poll_ms").asLong());
        waits = description.path("waits").asBoolean();
        properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        description.path("configs").properties().forEach(one -> properties.put(one.getKey(), one.getValue().asText()));
        warmUp();
        consumer = new KafkaConsumer<>(properties);
    }

    /**
     * Joins and leaves another group. The first join loads classes, which takes long: in the real group, the other
     * members could meanwhile begin the next generation before this consumer's SyncGroup.
     */
    private void warmUp() {
        Properties alone = new Properties();
        alone.putAll(properties);
        alone.remove(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG);
        alone.put(ConsumerConfig.GROUP_ID_CONFIG, properties.get(ConsumerConfig.GROUP_ID_CONFIG) + "-" + UUID.randomUUID());
        try (KafkaConsumer<byte[], byte[]> other = new KafkaConsumer<>(alone)) {
            other.subscribe(topics);
            while (other.assignment().isEmpty()) {
                other.poll(poll);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 1) {
            System.err.println("usage: OneConsumer DESCRIPTION < start and close, a line each");
            System.exit(2);
        }
        new OneConsumer(JSON.readTree(arguments[0])).run();
    }

    private void run() throws IOException {
        try (consumer) {
            topics.forEach(consumer::partitionsFor);
            say("ready", List.of());
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            if (!"start".equals(input.readLine())) {
                return;
            }
            Thread reader = new Thread(() -> obey(input), "input");
            reader.setDaemon(true);
            reader.start();
            say("started", List.of());
            consumer.subscribe(topics, new Listener());
            polledMs = System.currentTimeMillis();
            while (!stopped) {
                consumer.poll(poll);
                long now = System.currentTimeMillis();
                gapMs = Math.max(gapMs, now - polledMs);
                polledMs = now;
            }
            say("closing", List.of());
            consumer.close();
            say("closed", List.of());
        }
    }

    /** Obeys each "go"; ends the consumer at another line or at the end of the input. */
    private void obey(BufferedReader input) {
        try {
            while ("go".equals(input.readLine())) {
                go.release();
            }
        } catch (IOException gone) {
            // A closed input counts as the end of the input.
        }
        stopped = true;
        go.release();
    }

    private void say(String event, Collection<TopicPartition> partitions) {
        long now = System.currentTimeMillis();
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("at_ms", now);
        line.put("event", event);
        line.put("partitions", partitions.stream().map(TopicPartition::toString).toList());
        if (!"closed".equals(event)) {
            line.put("generation_id", consumer.groupMetadata().generationId());
            line.put("member_id", consumer.groupMetadata().memberId());
        }
        // A callback runs within a poll that has not ended; the time since the poll before it counts, too.
        line.put("gap_ms", polledMs == 0 ? 0 : Math.max(gapMs, now - polledMs));
        line.put("answer_ms", metric("heartbeat-response-time-max"));
        line.put("joining_ms", metric("rebalance-latency-total"));
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
        System.out.flush();
        gapMs = 0;
    }

    /** Returns the metric's value, rounded; 0 before the first measurement. */
    private long metric(String name) {
        for (Map.Entry<MetricName, ? extends Metric> one : consumer.metrics().entrySet()) {
            if (one.getKey().group().equals(METRICS) && one.getKey().name().equals(name)) {
                double value = ((Number) one.getValue().metricValue()).doubleValue();
                return Double.isFinite(value) ? Math.round(value) : 0;
            }
        }
        return 0;
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("revoked", partitions);
            if (waits && !stopped) {
                go.acquireUninterruptibly();
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say("lost", partitions);
        }
    }
}
