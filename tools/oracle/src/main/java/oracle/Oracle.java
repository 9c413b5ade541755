// SPDX-License-Identifier: Apache-2.0
package oracle;

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

/** Reads groups and wire requests as JSON lines, and answers each with Kafka's own classes. */
public final class Oracle {
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private Oracle() {}

    /** Answers every line of standard input, in order, until it ends. */
    public static void main(String[] args) throws IOException {
        var input = new BufferedReader(new InputStreamReader(
                new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8), 1 << 16);
        // System.out would use the platform's encoding.
        var output = new BufferedWriter(new OutputStreamWriter(
                new FileOutputStream(FileDescriptor.out), StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.write(answer(line));
            output.write('\n');
            // Always flush: a caller may wait for this answer, even if more input seems ready.
            output.flush();
        }
        output.flush();
    }

    /** Returns the answer to one line, or {@code oracle_error} for a line that is not a request. */
    private static String answer(String line) throws IOException {
        ObjectNode answer;
        try {
            JsonNode question = JSON.readTree(line);
            if (question == null || !question.isObject()) {
                throw new BadInput("a line is one JSON object");
            }
            answer = question.has("wire") ? Wire.answer(question) : Cases.answer(question);
        } catch (Exception | StackOverflowError e) {
            answer = JsonNodeFactory.instance.objectNode().put("oracle_error", describe(e));
        }
        return JSON.writeValueAsString(answer);
    }

    /** Formats an exception as one line. */
    static String describe(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
}
