// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TransactionResult;

/** Reads a command's fields, with defaults for absent ones. Bytes and error codes are strings. */
final class Fields {
    static final ObjectMapper JSON = new ObjectMapper();

    private Fields() { }

    static RequestContext context(ApiKeys api, JsonNode command, int version) {
        return Broker.context(api, number(command, "v", version), text(command, "client", "c"));
    }

    static String group(JsonNode command) {
        return text(command, "g", "g");
    }

    static String topic(JsonNode command) {
        return text(command, "topic", "t");
    }

    static TransactionResult result(JsonNode command) {
        return command.get("commit").asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT;
    }

    static String text(JsonNode node, String field, String otherwise) {
        JsonNode value = node.path(field);
        return value.isMissingNode() || value.isNull() ? otherwise : value.asText();
    }

    static int number(JsonNode node, String field, int otherwise) {
        JsonNode value = node.path(field);
        return value.isNumber() ? value.asInt() : otherwise;
    }

    /** Returns a list of strings; null if the field is absent or null. */
    static List<String> texts(JsonNode node, String field) {
        if (!node.path(field).isArray()) return null;
        List<String> texts = new ArrayList<>();
        node.get(field).forEach(one -> texts.add(one.asText()));
        return texts;
    }

    static byte[] bytes(String text) {
        return text.startsWith("hex:") ? HexFormat.of().parseHex(text.substring(4)) : text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] hex(JsonNode value) {
        return value == null || value.isNull() ? null : HexFormat.of().parseHex(value.asText());
    }

    static String show(byte[] data) {
        for (byte one : data) {
            if (one < 32 || one > 126) return "hex:" + HexFormat.of().formatHex(data);
        }
        return new String(data, StandardCharsets.US_ASCII);
    }

    static Errors code(Throwable error) {
        return Errors.forException(error);
    }

    static String name(Errors error) {
        return error.name();
    }
}
