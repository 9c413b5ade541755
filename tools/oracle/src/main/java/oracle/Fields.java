// SPDX-License-Identifier: Apache-2.0
package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.TopicPartition;

/** Reads and writes fields. When read, a null field counts as absent, and a wrong type is a {@link BadInput}. */
final class Fields {
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private Fields() {}

    /** Returns the field's value, or Java's null if the field is absent or null. */
    static JsonNode value(JsonNode object, String name) {
        JsonNode value = object.get(name);
        return value == null || value.isNull() ? null : value;
    }

    /** Returns a required string. */
    static String text(JsonNode object, String name) {
        String text = textOrNull(object, name);
        if (text == null) {
            throw new BadInput(name + " is missing");
        }
        return text;
    }

    /** Returns a string or null. */
    static String textOrNull(JsonNode object, String name) {
        JsonNode value = value(object, name);
        return value == null ? null : textOf(value, name);
    }

    /** Returns the value as a string; {@code what} names it in the error. */
    static String textOf(JsonNode value, String what) {
        if (!value.isTextual()) {
            throw new BadInput(what + " is not a string");
        }
        return value.textValue();
    }

    /** Returns a required 32-bit integer. */
    static int integer(JsonNode object, String name) {
        JsonNode value = value(object, name);
        if (value == null) {
            throw new BadInput(name + " is missing");
        }
        return integerOf(value, name);
    }

    /** Returns a 32-bit integer, or {@code otherwise} if the field is absent. */
    static int integer(JsonNode object, String name, int otherwise) {
        JsonNode value = value(object, name);
        return value == null ? otherwise : integerOf(value, name);
    }

    /** Returns the value as a 32-bit integer; {@code what} names it in the error. */
    static int integerOf(JsonNode value, String what) {
        if (!value.isIntegralNumber() || !value.canConvertToInt()) {
            throw new BadInput(what + " is not a 32-bit integer");
        }
        return value.intValue();
    }

    /** Returns an array; an absent array counts as empty. */
    static JsonNode array(JsonNode object, String name) {
        JsonNode value = value(object, name);
        if (value == null) {
            return NODES.arrayNode();
        }
        if (!value.isArray()) {
            throw new BadInput(name + " is not an array");
        }
        return value;
    }

    /** Returns an array of strings; an absent array counts as empty. */
    static List<String> texts(JsonNode object, String name) {
        var texts = new ArrayList<String>();
        for (JsonNode text : array(object, name)) {
            texts.add(textOf(text, name));
        }
        return texts;
    }

    /** Returns an array of {@code [topic, partition]}; an absent array counts as empty. */
    static List<TopicPartition> pairs(JsonNode object, String name) {
        var pairs = new ArrayList<TopicPartition>();
        for (JsonNode pair : array(object, name)) {
            if (!pair.isArray() || pair.size() != 2) {
                throw new BadInput(name + " holds pairs of topic and partition");
            }
            pairs.add(new TopicPartition(textOf(pair.get(0), name), integerOf(pair.get(1), name)));
        }
        return pairs;
    }

    /** Returns bytes from a hexadecimal string, or null. */
    static ByteBuffer bytesOrNull(JsonNode object, String name) {
        String hex = textOrNull(object, name);
        return hex == null ? null : ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    /** Puts partitions as an array of {@code [topic, partition]}. */
    static void put(ObjectNode object, String name, List<TopicPartition> partitions) {
        var array = object.putArray(name);
        for (TopicPartition partition : partitions) {
            array.addArray().add(partition.topic()).add(partition.partition());
        }
    }

    /** Puts the remaining bytes of a buffer in hexadecimal, or null. */
    static void put(ObjectNode object, String name, ByteBuffer buffer) {
        if (buffer == null) {
            object.putNull(name);
            return;
        }
        var bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        object.put(name, HexFormat.of().formatHex(bytes));
    }
}
