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

/** A filter of JSON lines: a script of rounds in, the answers of Connect's own classes out. {@code --time} times instead. */
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
        // Not System.out: its encoding is the platform's.
        var output = new BufferedWriter(new OutputStreamWriter(
                new FileOutputStream(FileDescriptor.out), StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.write(JSON.writeValueAsString(answer(line, timed)));
            output.write('\n');
            // In bulk a full buffer flushes itself; someone who waits for this answer sends nothing more.
            if (!input.ready()) {
                output.flush();
            }
        }
        output.flush();
    }

    /** One line's answer; a line that cannot be understood gets an {@code oracle_error}. */
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

    /** {@code rounds} as Connect plays them, or {@code error} when it throws. */
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

    /** An exception in one line. */
    private static String describe(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
}
