// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;

/**
 * The cluster's topics, as Kafka's metadata. Each change gives the metadata the next version, from 1. A rack is one
 * broker; a partition without racks has a replica on broker 0, which has no rack.
 */
final class Cluster {
    private final Map<Uuid, String> names = new HashMap<>();
    private final Map<String, Integer> brokers = new HashMap<>();
    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta delta = deltaOf(image);
    private long version;

    MetadataImage image() {
        return image;
    }

    /** Returns the newest change. */
    MetadataDelta delta() {
        return delta;
    }

    boolean hasTopics() {
        return version > 0;
    }

    /** Returns a change without effect, for a new coordinator that reads the whole metadata. */
    MetadataDelta unchanged() {
        return deltaOf(image);
    }

    /** Replaces the cluster's topics. A topic keeps its partitions unless its id changes. */
    void change(JsonNode topics) {
        delta = deltaOf(image);
        for (String name : List.copyOf(image.topics().topicsByName().keySet())) {
            Uuid id = image.topics().getTopic(name).id();
            if (!topics.has(name) || !idOf(name, topics.get(name)).equals(id)) {
                delta.replay(new RemoveTopicRecord().setTopicId(id));
            }
        }
        for (Iterator<Map.Entry<String, JsonNode>> i = topics.fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> one = i.next();
            change(one.getKey(), one.getValue());
        }
        image = delta.apply(new MetadataProvenance(++version, 0, 0, true));
    }

    private void change(String name, JsonNode topic) {
        Uuid id = idOf(name, topic);
        TopicImage before = image.topics().getTopic(id);
        int count = topic.isObject() ? topic.get("partitions").asInt() : topic.asInt();
        if (before == null) delta.replay(new TopicRecord().setName(name).setTopicId(id));
        if (before != null && before.partitions().size() > count) {
            throw new IllegalArgumentException("topic " + name + " loses partitions: give it another id");
        }
        for (int partition = 0; partition < count; partition++) {
            List<Integer> replicas = replicas(topic.path("racks").path(partition));
            if (before != null && before.partitions().containsKey(partition)
                && before.partitions().get(partition).replicas.length == replicas.size()
                && Arrays.stream(before.partitions().get(partition).replicas).boxed().toList().equals(replicas)) continue;
            delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition).setReplicas(replicas)
                .setIsr(replicas).setLeader(replicas.get(0)).setLeaderEpoch(0).setPartitionEpoch(0));
        }
        names.put(id, name);
    }

    private List<Integer> replicas(JsonNode racks) {
        List<Integer> replicas = new ArrayList<>();
        racks.forEach(rack -> replicas.add(broker(rack.asText())));
        return replicas.isEmpty() ? List.of(0) : replicas;
    }

    private int broker(String rack) {
        return brokers.computeIfAbsent(rack, key -> {
            int id = brokers.size() + 1;
            delta.replay(new RegisterBrokerRecord().setBrokerId(id).setRack(rack).setIncarnationId(new Uuid(0, id)));
            return id;
        });
    }

    private static MetadataDelta deltaOf(MetadataImage image) {
        return new MetadataDelta.Builder().setImage(image).build();
    }

    // Names and ids ---------------------------------------------------------------------------------------------------

    /** Returns the id of a topic that exists, else of the name as it is. */
    Uuid id(String name) {
        TopicImage topic = image.topics().getTopic(name);
        return topic == null ? padded(name) : topic.id();
    }

    /** Returns the id that a broker stores with a committed offset: zero if the topic does not exist. */
    Uuid committedId(String name) {
        TopicImage topic = image.topics().getTopic(name);
        return topic == null ? Uuid.ZERO_UUID : topic.id();
    }

    /** Returns the name of a topic that exists or existed. */
    String name(Uuid id) {
        return names.getOrDefault(id, id.toString());
    }

    private static Uuid idOf(String name, JsonNode topic) {
        return padded(Fields.text(topic, "id", name));
    }

    /** Returns the UTF-8 bytes of the text, padded with zeros or cut to 16 bytes. */
    private static Uuid padded(String text) {
        ByteBuffer bytes = ByteBuffer.wrap(Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), 16));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }
}
