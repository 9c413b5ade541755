// SPDX-License-Identifier: Apache-2.0
package serveroracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Supplier;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** Measures the assignors of Kafka's brokers: reads contract lines, and prints the times of calls in ms. */
public final class Bench {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LEAST_CALLS = 5;
    private static final int MOST_CALLS = 20_000;

    private Bench() {}

    /** An assignor that stores the input from the coordinator. */
    private static final class Keeping implements ConsumerGroupPartitionAssignor {
        private final ConsumerGroupPartitionAssignor inner;
        private GroupSpec spec;
        private SubscribedTopicDescriber describer;

        Keeping(ConsumerGroupPartitionAssignor inner) {
            this.inner = inner;
        }

        @Override
        public String name() {
            return inner.name();
        }

        @Override
        public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
            spec = group;
            describer = topics;
            return inner.assign(group, topics);
        }

        GroupAssignment again() {
            return inner.assign(spec, describer);
        }
    }

    /**
     * Prints for each line {@code ms}, the times of a whole target from the members' names, as the
     * coordinator computes it, and {@code assign_ms}, the times of the assignor alone: its names
     * are resolved, and its inverted target exists. Each is warmed up for about args[0] seconds,
     * and measured for as long.
     */
    public static void main(String[] args) throws IOException {
        double seconds = Double.parseDouble(args[0]);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode group = JSON.readTree(line);
            var assignor = new Keeping(Targets.consumerAssignor(group.get("assignor").textValue()));
            var target = Targets.consumer(group, assignor);
            var answer = JSON.createObjectNode();
            measure(answer.putArray("ms"), target, seconds);
            measure(answer.putArray("assign_ms"), assignor::again, seconds);
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static void measure(ArrayNode times, Supplier<?> call, double seconds) {
        calls(call, seconds);
        for (double ms : calls(call, seconds)) {
            times.add(ms);
        }
    }

    private static double[] calls(Supplier<?> call, double seconds) {
        double[] times = new double[MOST_CALLS];
        int count = 0;
        long start = System.nanoTime();
        // Fewer than LEAST_CALLS calls are enough after 10 * seconds. This limits the warm-up, too.
        while (count < MOST_CALLS) {
            double spent = (System.nanoTime() - start) / 1e9;
            if (spent > seconds && (count >= LEAST_CALLS || spent > 10 * seconds)) {
                break;
            }
            long once = System.nanoTime();
            Object answer = call.get();
            times[count] = (System.nanoTime() - once) / 1e6;
            if (answer != null) {
                count++;
            }
        }
        return Arrays.copyOf(times, count);
    }
}
