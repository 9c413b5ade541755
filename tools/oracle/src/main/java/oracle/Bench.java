// SPDX-License-Identifier: Apache-2.0
package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Measures Kafka's own assignors for the benchmark: reads contract lines, and prints the times of calls in ms. */
public final class Bench {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LEAST_CALLS = 5;
    private static final int MOST_CALLS = 20_000;

    /** What was made last: a result that nobody reads might not be made at all. */
    private static volatile Cases.Prepared made;

    private Bench() {}

    /**
     * For each line: builds the group once, assigns for about args[0] seconds to warm up, and as long again to measure;
     * then builds the group from its JSON tree, again for as long.
     */
    public static void main(String[] args) throws IOException {
        double seconds = Double.parseDouble(args[0]);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode group = JSON.readTree(line);
            Cases.Prepared prepared = Cases.prepare(group);
            calls(prepared, seconds);
            var answer = JSON.createObjectNode();
            var times = answer.putArray("ms");
            for (double ms : calls(prepared, seconds)) {
                times.add(ms);
            }
            var making = answer.putArray("make_ms");
            long until = System.nanoTime() + (long) (seconds * 1e9);
            while (making.size() < LEAST_CALLS || System.nanoTime() < until && making.size() < MOST_CALLS) {
                long once = System.nanoTime();
                made = Cases.prepare(group);
                making.add((System.nanoTime() - once) / 1e6);
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static double[] calls(Cases.Prepared prepared, double seconds) {
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
            int members = prepared.assign().size();
            times[count] = (System.nanoTime() - once) / 1e6;
            if (members > 0) {
                count++;
            }
        }
        return java.util.Arrays.copyOf(times, count);
    }
}
