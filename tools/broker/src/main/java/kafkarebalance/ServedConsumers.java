// SPDX-License-Identifier: Apache-2.0
package kafkarebalance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Runs consumers, each of one topic and in its own thread; a JSON line on standard input is a question to one of them.
 *
 * <pre>
 * {"name": "c1", "ask": "open", "topic": "t", "configs": {"group.id": "g", ...}}   subscribes and polls
 * {"name": "c1", "ask": "assignment"}                                             {"answer": [0, 1]}
 * {"name": "c1", "ask": "commit", "partition": 0, "offset": 41}
 * {"name": "c1", "ask": "committed", "partition": 0}                              {"answer": 41}
 * {"name": "c1", "ask": "received"}                                               {"answer": [[0, 41, "value"]]}
 * {"name": "c1", "ask": "close"}
 * {"ask": "produce", "topic": "t", "partition": 0, "values": ["v"], "configs": {...}, "end": "commit"}
 * {"ask": "jar"}                                                                  {"answer": ".../kafka-clients-3.9.1.jar"}
 * </pre>
 *
 * Received are all records since the consumer was opened: partition, offset, value. The "end" of what is produced is
 * "commit" or "abort" in a transaction, else absent. The answer to a question that fails is {"error": ...}. This program calls only methods that kafka-clients 3.9 and
 * 4.4 both have; it runs with the one that comes first on the class path. The end of the input ends the program.
 */
public final class ServedConsumers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(50);
    private static final long ANSWER_S = 30;

    private ServedConsumers() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Living> consumers = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode question = JSON.readTree(line);
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("answer", answer(consumers, question));
            } catch (Exception wrong) {
                answer.put("error", String.valueOf(wrong));
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private static Object answer(Map<String, Living> consumers, JsonNode question) throws Exception {
        String name = question.path("name").asText();
        String asked = question.path("ask").asText();
        if ("jar".equals(asked)) {
            return KafkaConsumer.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        }
        if ("open".equals(asked)) {
            Living made = new Living(name, question);
            consumers.put(name, made);
            made.start();
            return null;
        }
        if ("produce".equals(asked)) {
            produce(question);
            return null;
        }
        Living one = consumers.get(name);
        switch (asked) {
            case "assignment":
                return one.ask(one::assignment);
            case "committed":
                return one.ask(() -> one.committed(one.partition(question)));
            case "received":
                return one.ask(() -> List.copyOf(one.received));
            case "commit":
                OffsetAndMetadata offset = new OffsetAndMetadata(question.path("offset").asLong());
                return one.ask(() -> one.commit(one.partition(question), offset));
            case "close":
                consumers.remove(name).end();
                return null;
            default:
                throw new IllegalArgumentException("ask: " + asked);
        }
    }

    private static Properties properties(JsonNode question, String coder, Class<?> kind) {
        Properties properties = new Properties();
        properties.put("key." + coder, kind);
        properties.put("value." + coder, kind);
        question.path("configs").properties().forEach(one -> properties.put(one.getKey(), one.getValue().asText()));
        return properties;
    }

    private static void produce(JsonNode question) throws Exception {
        String end = question.path("end").asText("");
        Properties properties = properties(question, "serializer", ByteArraySerializer.class);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
            if (!end.isEmpty()) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode value : question.path("values")) {
                byte[] bytes = value.asText().getBytes(StandardCharsets.UTF_8);
                sent.add(producer.send(new ProducerRecord<>(
                    question.path("topic").asText(), question.path("partition").asInt(), null, bytes)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
            if ("commit".equals(end)) {
                producer.commitTransaction();
            } else if ("abort".equals(end)) {
                producer.abortTransaction();
            }
        }
    }

    private static final class Living extends Thread {
        private final BlockingQueue<FutureTask<Object>> questions = new LinkedBlockingQueue<>();
        private final String topic;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final List<Object> received = new ArrayList<>();
        private volatile boolean stopped;

        Living(String name, JsonNode question) {
            super(name);
            setDaemon(true);
            topic = question.path("topic").asText();
            consumer = new KafkaConsumer<>(properties(question, "deserializer", ByteArrayDeserializer.class));
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(topic));
                while (!stopped) {
                    for (FutureTask<Object> next = questions.poll(); next != null; next = questions.poll()) {
                        next.run();
                    }
                    for (ConsumerRecord<byte[], byte[]> one : consumer.poll(POLL)) {
                        String value = new String(one.value(), StandardCharsets.UTF_8);
                        received.add(List.of(one.partition(), one.offset(), value));
                    }
                }
            }
        }

        Object ask(Callable<Object> question) throws Exception {
            FutureTask<Object> task = new FutureTask<>(question);
            questions.add(task);
            return task.get(ANSWER_S, TimeUnit.SECONDS);
        }

        void end() throws InterruptedException {
            stopped = true;
            join(TimeUnit.SECONDS.toMillis(ANSWER_S));
        }

        TopicPartition partition(JsonNode question) {
            return new TopicPartition(topic, question.path("partition").asInt());
        }

        Object assignment() {
            List<Integer> owned = new ArrayList<>();
            consumer.assignment().forEach(one -> owned.add(one.partition()));
            return owned;
        }

        Object committed(TopicPartition partition) {
            OffsetAndMetadata found = consumer.committed(Set.of(partition)).get(partition);
            return found == null ? -1 : found.offset();
        }

        Object commit(TopicPartition partition, OffsetAndMetadata offset) {
            consumer.commitSync(Map.of(partition, offset));
            return null;
        }
    }
}
