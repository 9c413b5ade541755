// SPDX-License-Identifier: Apache-2.0
package connectoracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * The rounds of a Connect cluster, read from JSON. A null field counts as absent, and a wrong type is a {@link BadInput}.
 *
 * <p>With {@code own_order}, workers keep their work in their own order, as real workers do. By default, they keep it
 * in the order in which the leader decoded their report; the stored vectors were made this way.
 */
record Script(String id, boolean eager, int maxDelayMs, boolean ownOrder, List<Round> rounds) {
    private static final int DEFAULT_MAX_DELAY_MS = 300_000;

    /**
     * One rebalance. {@code config} maps each connector to its number of tasks. {@code apply} lists
     * the workers that apply their assignments; null means all workers.
     */
    record Round(
            long timeMs, List<Worker> workers, Map<String, Integer> config, Set<String> inconsistent,
            Set<String> apply, boolean generationMismatch, boolean newLeader) {}

    /**
     * A worker. If {@code connectors} and {@code tasks} are null, it reports the work that it has.
     * A worker that was not in the round before has no work, unless it is {@code retained}.
     */
    record Worker(String id, Set<String> connectors, Set<ConnectorTaskId> tasks, boolean retained) {}

    static Script of(JsonNode line) {
        String assignor = text(required(line, "assignor"), "assignor");
        boolean eager = switch (assignor) {
            case "connect-eager", "connect/eager" -> true;
            case "connect-incremental", "connect/incremental" -> false;
            default -> throw new BadInput("assignor " + assignor + " is not one of Connect's");
        };
        JsonNode id = value(line, "id");
        JsonNode maxDelay = value(line, "max_delay_ms");
        var rounds = new ArrayList<Round>();
        for (JsonNode round : array(required(line, "rounds"), "rounds")) {
            rounds.add(round(round));
        }
        return new Script(
                id == null ? null : text(id, "id"),
                eager,
                maxDelay == null ? DEFAULT_MAX_DELAY_MS : integer(maxDelay, "max_delay_ms"),
                flag(line, "own_order"),
                rounds);
    }

    private static Round round(JsonNode round) {
        var workers = new ArrayList<Worker>();
        var ids = new HashSet<String>();
        for (JsonNode each : array(required(round, "workers"), "workers")) {
            Worker worker = worker(each);
            if (!ids.add(worker.id())) {
                throw new BadInput("worker " + worker.id() + " stands twice");
            }
            workers.add(worker);
        }
        JsonNode time = required(round, "time_ms");
        if (!time.isIntegralNumber() || !time.canConvertToLong()) {
            throw new BadInput("time_ms is not a 64-bit integer");
        }
        Map<String, Integer> config = new LinkedHashMap<>();
        JsonNode configured = required(round, "config");
        if (!configured.isObject()) {
            throw new BadInput("config is not an object");
        }
        configured.properties().forEach(each -> config.put(each.getKey(), integer(each.getValue(), "task count")));
        return new Round(
                time.longValue(), workers, config, texts(round, "inconsistent"), apply(round),
                flag(round, "generation_mismatch"), flag(round, "new_leader"));
    }

    private static Worker worker(JsonNode worker) {
        String id = text(required(worker, "id"), "id");
        boolean retained = flag(worker, "retained");
        if (value(worker, "connectors") == null && value(worker, "tasks") == null) {
            return new Worker(id, null, null, retained);
        }
        Set<ConnectorTaskId> tasks = new LinkedHashSet<>();
        JsonNode given = value(worker, "tasks");
        if (given != null) {
            for (JsonNode task : array(given, "tasks")) {
                if (!task.isArray() || task.size() != 2) {
                    throw new BadInput("tasks holds pairs of connector and number");
                }
                tasks.add(new ConnectorTaskId(text(task.get(0), "connector"), integer(task.get(1), "task")));
            }
        }
        return new Worker(id, texts(worker, "connectors"), tasks, retained);
    }

    private static Set<String> apply(JsonNode round) {
        JsonNode apply = value(round, "apply");
        if (apply == null || apply.isTextual() && apply.textValue().equals("all")) {
            return null;
        }
        return apply.isTextual() && apply.textValue().equals("none") ? Set.of() : texts(round, "apply");
    }

    private static JsonNode value(JsonNode object, String name) {
        JsonNode value = object.get(name);
        return value == null || value.isNull() ? null : value;
    }

    private static JsonNode required(JsonNode object, String name) {
        JsonNode value = value(object, name);
        if (value == null) {
            throw new BadInput(name + " is missing");
        }
        return value;
    }

    private static JsonNode array(JsonNode value, String what) {
        if (!value.isArray()) {
            throw new BadInput(what + " is not an array");
        }
        return value;
    }

    private static String text(JsonNode value, String what) {
        if (!value.isTextual()) {
            throw new BadInput(what + " is not a string");
        }
        return value.textValue();
    }

    private static int integer(JsonNode value, String what) {
        if (!value.isIntegralNumber() || !value.canConvertToInt()) {
            throw new BadInput(what + " is not a 32-bit integer");
        }
        return value.intValue();
    }

    private static boolean flag(JsonNode object, String name) {
        JsonNode value = value(object, name);
        if (value != null && !value.isBoolean()) {
            throw new BadInput(name + " is not true or false");
        }
        return value != null && value.booleanValue();
    }

    /** Reads an array of strings, in order and without duplicates; an absent array is empty. */
    private static Set<String> texts(JsonNode object, String name) {
        Set<String> texts = new LinkedHashSet<>();
        JsonNode value = value(object, name);
        if (value != null) {
            array(value, name).forEach(text -> texts.add(text(text, name)));
        }
        return texts;
    }
}
