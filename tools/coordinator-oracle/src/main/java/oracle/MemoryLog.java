// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** One partition of __consumer_offsets in memory; commands can delay the completion of appends or let them fail. */
final class MemoryLog implements PartitionWriter, CoordinatorLoader<CoordinatorRecord> {
    /** A record or, with {@code marker}, the end of a transaction. Outside of transactions, producerId is -1. */
    record Entry(byte[] key, byte[] value, long producerId, TransactionResult marker) { }

    private final List<Entry> entries = new ArrayList<>();
    private final Consumer<Entry> onRecord;
    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final LogConfig config = new LogConfig(Map.of());
    private Listener listener;
    private boolean holding;
    private Errors nextError;
    private boolean refused;

    MemoryLog(Consumer<Entry> onRecord) {
        this.onRecord = onRecord;
    }

    void hold() {
        holding = true;
    }

    boolean holds() {
        return holding;
    }

    /** Returns whether the coordinator refused this log when it was last loaded. */
    boolean isRefused() {
        return refused;
    }

    void release(TopicPartition partition) {
        holding = false;
        if (listener != null) listener.onHighWatermarkUpdated(partition, entries.size());
    }

    void failNext(Errors error) {
        nextError = error;
    }

    void add(Entry entry) {
        entries.add(entry);
    }

    @Override
    public void registerListener(TopicPartition partition, Listener one) {
        listener = one;
    }

    @Override
    public void deregisterListener(TopicPartition partition, Listener one) {
        listener = null;
    }

    @Override
    public LogConfig config(TopicPartition partition) {
        return config;
    }

    @Override
    public long append(TopicPartition partition, VerificationGuard guard, MemoryRecords records, short version)
        throws KafkaException {
        boolean hasRecords = false;
        for (MutableRecordBatch batch : records.batches()) hasRecords |= !batch.isControlBatch();
        if (hasRecords && nextError != null) {
            Errors error = nextError;
            nextError = null;
            throw (KafkaException) error.exception();
        }
        for (MutableRecordBatch batch : records.batches()) {
            for (Record one : batch) {
                long producer = batch.isTransactional() ? batch.producerId() : -1;
                if (batch.isControlBatch()) {
                    boolean commits = ControlRecordType.parse(one.key()) == ControlRecordType.COMMIT;
                    entries.add(new Entry(null, null, producer,
                        commits ? TransactionResult.COMMIT : TransactionResult.ABORT));
                } else {
                    Entry entry = new Entry(bytes(one.key()), bytes(one.value()), producer, null);
                    entries.add(entry);
                    onRecord.accept(entry);
                }
            }
        }
        if (!holding && listener != null) listener.onHighWatermarkUpdated(partition, entries.size());
        return entries.size();
    }

    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    @Override
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
        TopicPartition partition, String transactionalId, long producerId, short producerEpoch, int version) {
        return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
    }

    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition partition, long before) {
        return CompletableFuture.completedFuture(null);
    }

    /** As a broker's loader, it skips records of unknown types, and fails at any other record that cannot be read. */
    @Override
    public CompletableFuture<LoadSummary> load(TopicPartition partition, CoordinatorPlayback<CoordinatorRecord> playback) {
        refused = false;
        try {
            for (int offset = 0; offset < entries.size(); offset++) replay(playback, offset, entries.get(offset));
        } catch (RuntimeException e) {
            refused = true;
            return CompletableFuture.failedFuture(e);
        }
        if (!entries.isEmpty()) {
            playback.updateLastWrittenOffset((long) entries.size());
            playback.updateLastCommittedOffset((long) entries.size());
        }
        return CompletableFuture.completedFuture(new LoadSummary(0, 0, 0, entries.size(), 0));
    }

    private void replay(CoordinatorPlayback<CoordinatorRecord> playback, int offset, Entry entry) {
        if (entry.marker != null) {
            playback.replayEndTransactionMarker(entry.producerId, (short) 0, entry.marker);
            return;
        }
        CoordinatorRecord one;
        try {
            one = serde.deserialize(ByteBuffer.wrap(entry.key), entry.value == null ? null : ByteBuffer.wrap(entry.value));
        } catch (Deserializer.UnknownRecordTypeException e) {
            return;
        }
        playback.replay(offset, entry.producerId, (short) (entry.producerId < 0 ? -1 : 0), one);
    }

    @Override
    public void close() { }
}
