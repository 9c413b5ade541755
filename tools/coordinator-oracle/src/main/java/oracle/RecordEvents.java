// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.nio.ByteBuffer;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

/** Shows a record of the log in an event. */
final class RecordEvents {
    private RecordEvents() { }

    static void show(MemoryLog.Entry entry, ObjectNode event) {
        CoordinatorRecord one = new GroupCoordinatorRecordSerde().deserialize(ByteBuffer.wrap(entry.key()),
            entry.value() == null ? null : ByteBuffer.wrap(entry.value()));
        if (one.key() instanceof OffsetCommitKey key) {
            event.put("type", "offset").put("key", key.group() + "/" + key.topic() + "/" + key.partition());
        } else if (one.key() instanceof GroupMetadataKey key) {
            event.put("type", "group").put("key", key.group());
        } else {
            event.put("type", CoordinatorRecordType.fromId(one.key().apiKey()).name())
                .put("key_version", one.key().apiKey())
                .set("k", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(one.key()));
            event.set("value", one.value() == null ? null
                : CoordinatorRecordJsonConverters.writeRecordValueAsJson(one.value().message(), one.value().version()));
        }
        event.put("kb", HexFormat.of().formatHex(entry.key()))
            .put("vb", entry.value() == null ? null : HexFormat.of().formatHex(entry.value()));
        if (one.value() != null) value(one, event);
    }

    private static void value(CoordinatorRecord one, ObjectNode event) {
        if (one.value().message() instanceof OffsetCommitValue value) {
            event.put("ver", one.value().version())
                .put("off", value.offset()).put("cts", value.commitTimestamp()).put("ets", value.expireTimestamp());
        } else if (one.value().message() instanceof GroupMetadataValue value) {
            event.put("ver", one.value().version()).put("gen", value.generation())
                .put("proto", value.protocol()).put("ptype", value.protocolType())
                .put("leader", value.leader()).put("ts", value.currentStateTimestamp());
            ArrayNode members = event.putArray("members");
            value.members().forEach(member -> members.addObject().put("id", member.memberId())
                .put("inst", member.groupInstanceId()).put("rt", member.rebalanceTimeout())
                .put("st", member.sessionTimeout()).put("sub", Fields.show(member.subscription()))
                .put("asg", Fields.show(member.assignment())));
        }
    }
}
