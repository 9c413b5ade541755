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

/** A filter of JSON lines: a group (or a wire request) in, the answer of Kafka's own classes out. */
public final class Oracle {
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private Oracle() {}

    /** Answers every line of standard input, in order, until it ends. */
    public static void main(String[] args) throws IOException {
        var input = new BufferedReader(new InputStreamReader(
                new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8), 1 << 16);
        // Not System.out: its encoding is the platform's.
        var output = new BufferedWriter(new OutputStreamWriter(
                new FileOutputStream(FileDescriptor.out), StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.write(answer(line));
            output.write('\n');
            // Whoever asks one by one waits for this; that no more input is ready says nothing sure.
            output.flush();
        }
        output.flush();
    }

    /** One line's answer; a line that cannot be understood gets an {@code oracle_error}. */
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

    /** An exception in one line. */
    static String describe(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
}
