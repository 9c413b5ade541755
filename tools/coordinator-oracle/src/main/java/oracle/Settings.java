// SPDX-License-Identifier: Apache-2.0
package oracle;

import static oracle.Fields.number;
import static oracle.Fields.texts;
import static org.apache.kafka.coordinator.group.GroupCoordinatorConfig.*;

import java.util.HashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

/** Reads the settings of a coordinator from the command {@code init}. */
final class Settings {
    // Kafka's own limits, which the settings of a run may exceed.
    private static final int SHORTEST_SESSION_MS = 45_000;
    private static final int LONGEST_SESSION_MS = 60_000;
    private static final int SHORTEST_HEARTBEAT_MS = 5_000;
    private static final int LONGEST_HEARTBEAT_MS = 15_000;

    private Settings() { }

    static Map<String, Object> of(JsonNode command) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(GROUP_INITIAL_REBALANCE_DELAY_MS_CONFIG, number(command, "init_delay", 3000));
        settings.put(GROUP_MAX_SIZE_CONFIG, number(command, "max_size", Integer.MAX_VALUE));
        settings.put(GROUP_MIN_SESSION_TIMEOUT_MS_CONFIG, number(command, "min_st", 6000));
        settings.put(GROUP_MAX_SESSION_TIMEOUT_MS_CONFIG, number(command, "max_st", 1_800_000));
        settings.put(OFFSET_METADATA_MAX_SIZE_CONFIG, number(command, "meta_max", 4096));
        settings.put(OFFSETS_RETENTION_MINUTES_CONFIG, number(command, "ret_min", 10080));
        // No timer removes expired offsets; only the command "cleanup" does.
        settings.put(OFFSETS_RETENTION_CHECK_INTERVAL_MS_CONFIG, Long.MAX_VALUE / 4);
        consumer(command, settings);
        share(command, settings);
        streams(command, settings);
        return settings;
    }

    private static void consumer(JsonNode command, Map<String, Object> settings) {
        session(command, "cst", CONSUMER_GROUP_SESSION_TIMEOUT_MS_CONFIG, CONSUMER_GROUP_MIN_SESSION_TIMEOUT_MS_CONFIG,
            CONSUMER_GROUP_MAX_SESSION_TIMEOUT_MS_CONFIG, settings);
        heartbeat(command, "chi", CONSUMER_GROUP_HEARTBEAT_INTERVAL_MS_CONFIG,
            CONSUMER_GROUP_MIN_HEARTBEAT_INTERVAL_MS_CONFIG, CONSUMER_GROUP_MAX_HEARTBEAT_INTERVAL_MS_CONFIG, settings);
        copy(command, "cmax", CONSUMER_GROUP_MAX_SIZE_CONFIG, settings);
        copy(command, "cai", CONSUMER_GROUP_ASSIGNMENT_INTERVAL_MS_CONFIG, settings);
        copy(command, "rri", CONSUMER_GROUP_REGEX_REFRESH_INTERVAL_MS_CONFIG, settings);
        if (command.has("policy")) {
            settings.put(CONSUMER_GROUP_MIGRATION_POLICY_CONFIG, command.get("policy").asText());
        }
        if (command.has("assignors")) {
            settings.put(CONSUMER_GROUP_ASSIGNORS_CONFIG, texts(command, "assignors"));
        }
    }

    private static void share(JsonNode command, Map<String, Object> settings) {
        session(command, "sst", SHARE_GROUP_SESSION_TIMEOUT_MS_CONFIG, SHARE_GROUP_MIN_SESSION_TIMEOUT_MS_CONFIG,
            SHARE_GROUP_MAX_SESSION_TIMEOUT_MS_CONFIG, settings);
        heartbeat(command, "shi", SHARE_GROUP_HEARTBEAT_INTERVAL_MS_CONFIG,
            SHARE_GROUP_MIN_HEARTBEAT_INTERVAL_MS_CONFIG, SHARE_GROUP_MAX_HEARTBEAT_INTERVAL_MS_CONFIG, settings);
        copy(command, "smax", SHARE_GROUP_MAX_SIZE_CONFIG, settings);
        copy(command, "sai", SHARE_GROUP_ASSIGNMENT_INTERVAL_MS_CONFIG, settings);
    }

    private static void streams(JsonNode command, Map<String, Object> settings) {
        session(command, "tst", STREAMS_GROUP_SESSION_TIMEOUT_MS_CONFIG, STREAMS_GROUP_MIN_SESSION_TIMEOUT_MS_CONFIG,
            STREAMS_GROUP_MAX_SESSION_TIMEOUT_MS_CONFIG, settings);
        heartbeat(command, "thi", STREAMS_GROUP_HEARTBEAT_INTERVAL_MS_CONFIG,
            STREAMS_GROUP_MIN_HEARTBEAT_INTERVAL_MS_CONFIG, STREAMS_GROUP_MAX_HEARTBEAT_INTERVAL_MS_CONFIG, settings);
        copy(command, "tmax", STREAMS_GROUP_MAX_SIZE_CONFIG, settings);
        copy(command, "tai", STREAMS_GROUP_ASSIGNMENT_INTERVAL_MS_CONFIG, settings);
        copy(command, "tird", STREAMS_GROUP_INITIAL_REBALANCE_DELAY_MS_CONFIG, settings);
        copy(command, "tsr", STREAMS_GROUP_NUM_STANDBY_REPLICAS_CONFIG, settings);
        copy(command, "twu", STREAMS_GROUP_NUM_WARMUP_REPLICAS_CONFIG, settings);
        if (command.has("tags")) {
            // This setting is a list, but Kafka 4.4.0 reads it as a string before it is parsed.
            settings.put(STREAMS_GROUP_RACK_AWARE_ASSIGNMENT_TAGS_CONFIG, String.join(",", texts(command, "tags")));
        }
    }

    private static void session(JsonNode command, String field, String name, String least, String most,
        Map<String, Object> settings) {
        within(command, field, name, least, SHORTEST_SESSION_MS, most, LONGEST_SESSION_MS, settings);
    }

    private static void heartbeat(JsonNode command, String field, String name, String least, String most,
        Map<String, Object> settings) {
        within(command, field, name, least, SHORTEST_HEARTBEAT_MS, most, LONGEST_HEARTBEAT_MS, settings);
    }

    /** Copies a numeric setting; widens its allowed range so that the value fits. */
    private static void within(JsonNode command, String field, String name, String least, int low, String most, int high,
        Map<String, Object> settings) {
        if (!command.has(field)) return;
        int value = command.get(field).asInt();
        settings.put(name, value);
        settings.put(least, Math.min(low, value));
        settings.put(most, Math.max(high, value));
    }

    private static void copy(JsonNode command, String field, String name, Map<String, Object> settings) {
        if (command.has(field)) settings.put(name, command.get(field).asInt());
    }
}
