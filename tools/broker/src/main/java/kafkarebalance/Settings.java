// SPDX-License-Identifier: Apache-2.0
package kafkarebalance;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Constructs Kafka's consumer with given settings. Each line of standard input is a JSON string that contains a
 * properties file.
 *
 * <p>If the constructor accepts the settings, the answer is {"assignors": [...]} with the names in order. If not, the
 * answer is {"error": ...} with the reason.
 */
public final class Settings {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Settings() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Properties properties = new Properties();
            properties.load(new StringReader(JSON.readValue(line, String.class)));
            properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
            properties.put(ConsumerConfig.GROUP_ID_CONFIG, "g");
            System.out.println(JSON.writeValueAsString(answer(properties)));
        }
    }

    private static Map<String, Object> answer(Properties properties) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            List<?> names = new ConsumerConfig(withDeserializers(properties))
                    .getList(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG);
            return Map.of("assignors", names.stream().map(Settings::named).toList());
        } catch (KafkaException error) {
            return Map.of("error", String.valueOf(error.getCause() == null ? error : error.getCause()));
        }
    }

    private static Properties withDeserializers(Properties properties) {
        Properties all = new Properties();
        all.putAll(properties);
        all.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        all.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        return all;
    }

    /** Returns the assignor's name in the group protocol. */
    private static String named(Object className) {
        try {
            Class<?> found = Class.forName(String.valueOf(className));
            return ((ConsumerPartitionAssignor) found.getDeclaredConstructor().newInstance()).name();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
