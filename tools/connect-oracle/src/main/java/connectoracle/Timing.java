// SPDX-License-Identifier: Apache-2.0
package connectoracle;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.List;

/**
 * Measures the leader's computation in a script's last round, in a warm JVM. A round changes the leader's memory, so
 * each repetition plays the whole script with a new leader, and times only the last round.
 */
final class Timing {
    private static final long WARM_NS = 8_000_000_000L;
    private static final int WARM_AT_LEAST = 100;
    private static final int TIMED = 101;

    private Timing() {}

    /** Returns {@code best_ms} and {@code median_ms} of the computation; {@code wire_…} includes decoding and encoding. */
    static ObjectNode answer(Script script) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        put(answer, "", script, false);
        put(answer, "wire_", script, true);
        return answer.put("rounds", script.rounds().size()).put("repetitions", TIMED);
    }

    private static void put(ObjectNode answer, String what, Script script, boolean wire) {
        long end = System.nanoTime() + WARM_NS;
        for (int n = 0; n < WARM_AT_LEAST || System.nanoTime() < end; n++) {
            last(script, wire);
        }
        var tookNs = new long[TIMED];
        for (int n = 0; n < TIMED; n++) {
            tookNs[n] = last(script, wire);
        }
        Arrays.sort(tookNs);
        answer.put(what + "best_ms", tookNs[0] / 1e6).put(what + "median_ms", tookNs[TIMED / 2] / 1e6);
    }

    private static long last(Script script, boolean wire) {
        List<Script.Round> rounds = script.rounds();
        if (rounds.isEmpty() || script.eager()) {
            throw new BadInput("timed is the last round of an incremental script");
        }
        try (var cluster = new Cluster(script)) {
            for (Script.Round round : rounds.subList(0, rounds.size() - 1)) {
                cluster.step(round);
            }
            return cluster.time(rounds.get(rounds.size() - 1), wire);
        }
    }
}
