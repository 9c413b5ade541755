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
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Runs members of share groups (KIP-932) and of streams groups (KIP-1071); a JSON line on standard input is a command.
 *
 * <pre>
 * {"add": [{"name": "s1", "kind": "share", "group_id": "g", "topics": ["t"]}]}
 * {"add": [{"name": "a1", "kind": "streams", "group_id": "app", "topics": ["t", "u"], "stateful": ["t"],
 *           "repartitioned": ["u"], "threads": 1, "state_dir": "/dir"}]}
 * {"subscribe": {"s1": ["t", "u"]}}   {"more_threads": ["a1"]}   {"close": ["s1", "a1"]}   {"abandon": ["a1"]}
 * </pre>
 *
 * A streams application reads each topic in a subtopology of its own. A stateful one counts the records of each key in
 * memory ("persistent": on disk); a repartitioned one does so after a repartition topic. "configs" replaces settings: group.protocol=classic
 * makes a classic group. "abandon" closes an application as it closes by default: it does not leave its group. The answer to each command is {"failures": {name:
 * text}}, or {"error": text}. A member that is closed has left when the answer comes. The end of the input ends all.
 */
public final class BrokerAssigned {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Duration CLOSE = Duration.ofSeconds(20);

    private final String bootstrapServer;
    private final Map<String, Member> members = new LinkedHashMap<>();

    private BrokerAssigned(String bootstrapServer) {
        this.bootstrapServer = bootstrapServer;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 1) {
            System.err.println("usage: BrokerAssigned BOOTSTRAP_SERVER < lines of JSON");
            System.exit(2);
        }
        new BrokerAssigned(arguments[0]).run();
    }

    private void run() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(line)));
            System.out.flush();
        }
        for (Member member : members.values()) {
            member.close();
        }
        System.exit(0);
    }

    private Map<String, Object> answer(String line) throws InterruptedException {
        try {
            obey(JSON.readTree(line));
            Map<String, String> failures = new TreeMap<>();
            members.forEach((name, member) -> {
                if (member.failure() != null) {
                    failures.put(name, String.valueOf(member.failure()));
                }
            });
            return Map.of("failures", failures);
        } catch (InterruptedException interrupted) {
            throw interrupted;
        } catch (Exception wrong) {
            return Map.of("error", String.valueOf(wrong));
        }
    }

    private void obey(JsonNode command) throws InterruptedException {
        for (JsonNode description : command.path("add")) {
            Member member = "share".equals(description.path("kind").asText())
                ? new Share(bootstrapServer, description)
                : new Application(bootstrapServer, description);
            if (members.putIfAbsent(description.path("name").asText(), member) != null) {
                throw new IllegalArgumentException("name: " + description.path("name") + " is there already");
            }
            member.begin();
        }
        for (Map.Entry<String, JsonNode> one : command.path("subscribe").properties()) {
            ((Share) members.get(one.getKey())).topics = strings(one.getValue());
        }
        for (JsonNode name : command.path("more_threads")) {
            ((Application) members.get(name.asText())).streams.addStreamThread();
        }
        for (JsonNode name : command.path("abandon")) {
            ((Application) members.remove(name.asText())).streams.close(CLOSE);
        }
        for (JsonNode name : command.path("close")) {
            members.remove(name.asText()).close();
        }
    }

    private static List<String> strings(JsonNode array) {
        List<String> list = new ArrayList<>();
        array.forEach(item -> list.add(item.asText()));
        return list;
    }

    private interface Member {
        void begin();

        void close() throws InterruptedException;

        Throwable failure();
    }

    /** A share consumer that polls in its own thread. */
    private static final class Share extends Thread implements Member {
        volatile List<String> topics;
        private final Properties properties = new Properties();
        private volatile boolean stopped;
        private volatile Throwable failure;

        Share(String bootstrapServer, JsonNode description) {
            super("share-" + description.path("name").asText());
            setDaemon(true);
            topics = strings(description.path("topics"));
            properties.put("bootstrap.servers", bootstrapServer);
            properties.put("group.id", description.path("group_id").asText());
            properties.put("client.id", description.path("name").asText());
            properties.put("key.deserializer", ByteArrayDeserializer.class);
            properties.put("value.deserializer", ByteArrayDeserializer.class);
        }

        @Override
        public void begin() {
            start();
        }

        @Override
        public void run() {
            List<String> subscribed = null;
            try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties)) {
                while (!stopped) {
                    if (topics != subscribed) {
                        subscribed = topics;
                        consumer.subscribe(subscribed);
                    }
                    consumer.poll(POLL);
                }
            } catch (Throwable wrong) {
                failure = wrong;
            }
        }

        @Override
        public void close() throws InterruptedException {
            stopped = true;
            join(CLOSE.toMillis());
        }

        @Override
        public Throwable failure() {
            return failure;
        }
    }

    /** A streams application: a process with one member for each of its threads. */
    private static final class Application implements Member {
        private final KafkaStreams streams;
        private volatile Throwable failure;

        Application(String bootstrapServer, JsonNode description) {
            Properties properties = new Properties();
            properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServer);
            properties.put(StreamsConfig.APPLICATION_ID_CONFIG, description.path("group_id").asText());
            properties.put(StreamsConfig.CLIENT_ID_CONFIG, description.path("name").asText());
            properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
            properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, description.path("threads").asInt(1));
            properties.put(StreamsConfig.STATE_DIR_CONFIG, description.path("state_dir").asText());
            properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.BytesSerde.class);
            properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.BytesSerde.class);
            properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 500);
            properties.put("auto.offset.reset", "earliest");
            description.path("configs").properties()
                .forEach(config -> properties.put(config.getKey(), config.getValue().asText()));
            boolean persistent = description.path("persistent").asBoolean();
            StreamsBuilder builder = new StreamsBuilder();
            List<String> stateful = strings(description.path("stateful"));
            List<String> repartitioned = strings(description.path("repartitioned"));
            for (String topic : strings(description.path("topics"))) {
                KStream<Bytes, Bytes> records = builder.stream(topic);
                if (repartitioned.contains(topic)) {
                    count(records.selectKey((key, value) -> value), topic, persistent);
                } else if (stateful.contains(topic)) {
                    count(records, topic, persistent);
                } else {
                    records.foreach((key, value) -> { });
                }
            }
            streams = new KafkaStreams(builder.build(), properties);
            streams.setUncaughtExceptionHandler(wrong -> {
                failure = wrong;
                return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                    .StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
        }

        private static void count(KStream<Bytes, Bytes> records, String topic, boolean persistent) {
            records.groupByKey(Grouped.as("by-" + topic)).count(Materialized.as(persistent
                ? Stores.persistentKeyValueStore("count-" + topic)
                : Stores.inMemoryKeyValueStore("count-" + topic)));
        }

        @Override
        public void begin() {
            streams.start();
        }

        @Override
        public void close() {
            streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
                .withTimeout(CLOSE));
        }

        @Override
        public Throwable failure() {
            return failure;
        }
    }
}
