// SPDX-License-Identifier: Apache-2.0
package connectoracle;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Reads scripts as JSON lines, and plays them with Connect's classes; {@code --time} measures their last rounds. */
public final class ConnectOracle {
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private ConnectOracle() {}

    /** Answers every line of standard input, in order, until it ends. */
    public static void main(String[] args) throws IOException {
        boolean timed = List.of(args).equals(List.of("--time"));
        if (args.length > 0 && !timed) {
            System.err.println("usage: connect-oracle [--time] < scripts, one a line");
            System.exit(2);
        }
        var input = new BufferedReader(new InputStreamReader(
                new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8), 1 << 16);
        // System.out would use the platform's encoding.
        var output = new BufferedWriter(new OutputStreamWriter(
                new FileOutputStream(FileDescriptor.out), StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.write(JSON.writeValueAsString(answer(line, timed)));
            output.write('\n');
            // Flush only if no more input is ready, because the caller may then wait for this answer.
            if (!input.ready()) {
                output.flush();
            }
        }
        output.flush();
    }

    /** Returns the answer to one line, or {@code oracle_error} for a line that is not a script. */
    private static ObjectNode answer(String line, boolean timed) {
        try {
            JsonNode read = JSON.readTree(line);
            if (read == null || !read.isObject()) {
                throw new BadInput("a line is one JSON object");
            }
            Script script = Script.of(read);
            return timed ? Timing.answer(script) : play(script);
        } catch (IOException | RuntimeException e) {
            return JsonNodeFactory.instance.objectNode().put("oracle_error", describe(e));
        }
    }

    /** Plays the script; returns {@code rounds}, or {@code error} if Connect throws. */
    private static ObjectNode play(Script script) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        if (script.id() != null) {
            answer.put("id", script.id());
        }
        try (var cluster = new Cluster(script)) {
            var rounds = JsonNodeFactory.instance.arrayNode();
            script.rounds().forEach(round -> rounds.add(cluster.step(round)));
            answer.set("rounds", rounds);
        } catch (RuntimeException | StackOverflowError e) {
            answer.put("error", describe(e));
        }
        return answer;
    }

    /** Formats an exception as one line. */
    private static String describe(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
}
