// SPDX-License-Identifier: Apache-2.0
package org.apache.kafka.connect.runtime.distributed;

import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.ConfigBackingStore;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Connect's own coordinator of a worker, without a network. It is in Connect's package to call non-public methods.
 *
 * <p>Connect's code makes the worker's report, the leader's answer and the worker's reaction. The caller provides only
 * the generation, the clock and the cluster's configuration.
 */
public final class ScriptedWorker extends WorkerCoordinator {
    private static final LogContext LOG = new LogContext();
    private static final Field SNAPSHOT = snapshotField();

    private final ConnectProtocolCompatibility compatibility;
    private final Metrics metrics;
    private final Recording incremental;
    private int generationId = -1;
    private int lastCompletedGenerationId = -1;

    private ScriptedWorker(
            String id,
            ConnectProtocolCompatibility compatibility,
            Time time,
            int maxDelayMs,
            Supplier<ClusterConfigState> config,
            Metrics metrics) {
        super(
                new GroupRebalanceConfig(10_000, 60_000, 3_000, "connect", Optional.empty(), null, 100, 1_000),
                LOG,
                new ConsumerNetworkClient(LOG, null, null, time, 100, 1_000, 1_000),
                metrics,
                "connect",
                time,
                "http://" + id + "/",
                backingStore(config),
                new Deaf(),
                compatibility,
                maxDelayMs);
        this.compatibility = compatibility;
        this.metrics = metrics;
        incremental = new Recording(time, maxDelayMs);
    }

    /** Makes a worker without work; {@code config} returns its view of the configuration topic. */
    public static ScriptedWorker of(
            String id, boolean eager, Time time, int maxDelayMs, Supplier<ClusterConfigState> config) {
        var compatibility = eager ? ConnectProtocolCompatibility.EAGER : ConnectProtocolCompatibility.COMPATIBLE;
        return new ScriptedWorker(id, compatibility, time, maxDelayMs, config, new Metrics(time));
    }

    /** Releases the metrics that a coordinator registers. */
    public void end() {
        metrics.close();
    }

    /** Encodes the report that the worker sends when it joins. */
    public byte[] join() {
        return metadata().find(compatibility.protocol()).metadata();
    }

    /** Decodes the work in a report, as the leader does. */
    public static ConnectProtocol.Assignment reported(byte[] joined) {
        return IncrementalCooperativeConnectProtocol.deserializeMetadata(ByteBuffer.wrap(joined)).assignment();
    }

    /** Returns the worker's present work. */
    public ConnectProtocol.Assignment running() {
        try {
            var snapshot = (ExtendedAssignment) SNAPSHOT.get(this);
            return snapshot == null ? ExtendedAssignment.empty() : snapshot;
        } catch (IllegalAccessException e) {
            throw new AssertionError(e);
        }
    }

    /** Sets the worker's present work, in this order. */
    public void run(Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        try {
            SNAPSHOT.set(this, new ExtendedAssignment(
                    compatibility.protocolVersion(), ConnectProtocol.Assignment.NO_ERROR, "leader", "http://leader/", 1,
                    connectors, tasks, List.of(), List.of(), 0));
        } catch (IllegalAccessException e) {
            throw new AssertionError(e);
        }
    }

    /** Returns the leader's encoded answers to the reports, by worker. */
    public Map<String, ByteBuffer> lead(
            int generation, int lastCompleted, ClusterConfigState config, List<JoinGroupResponseMember> members) {
        enter(generation, lastCompleted, config);
        String leaderId = members.isEmpty() ? "leader" : members.get(0).memberId();
        return compatibility == ConnectProtocolCompatibility.EAGER
                ? onLeaderElected(leaderId, compatibility.protocol(), members, false)
                : incremental.performAssignment(leaderId, compatibility, members, this);
    }

    /** Returns the incremental assignor's last answer in the assignor's own order; encoding changes this order. */
    public Map<String, ExtendedAssignment> answered() {
        return incremental.answered;
    }

    /** Does the leader's computation of {@code lead} without the codecs; stores its time in ns in {@code tookNs[0]}. */
    public Object compute(
            int generation, int lastCompleted, ClusterConfigState config, List<JoinGroupResponseMember> members,
            Supplier<Long> clock, long[] tookNs) {
        enter(generation, lastCompleted, config);
        Map<String, ConnectorsAndTasks> running = new HashMap<>();
        for (JoinGroupResponseMember member : members) {
            var reported = reported(member.metadata());
            running.put(member.memberId(), new ConnectorsAndTasks.Builder()
                    .with(reported.connectors(), reported.tasks()).build());
        }
        long begun = clock.get();
        Object computed = incremental.performTaskAssignment(config, lastCompleted, generation, running);
        tookNs[0] = clock.get() - begun;
        return computed;
    }

    /** Returns the time in ms at which the leader wants another rebalance; 0 means that it wants none. */
    public long scheduledRebalanceMs() {
        return incremental.scheduledRebalance;
    }

    /** Decodes an answer, as the worker does. */
    public static ExtendedAssignment read(ByteBuffer answer) {
        return IncrementalCooperativeConnectProtocol.deserializeAssignment(answer.duplicate());
    }

    /** Lets the worker apply the answer. */
    public void obey(int generation, String id, ByteBuffer answer) {
        onJoinComplete(generation, id, compatibility.protocol(), answer.duplicate());
    }

    @Override
    public int generationId() {
        return generationId;
    }

    @Override
    public int lastCompletedGenerationId() {
        return lastCompletedGenerationId;
    }

    private void enter(int generation, int lastCompleted, ClusterConfigState config) {
        generationId = generation;
        lastCompletedGenerationId = lastCompleted;
        configSnapshot(config);
    }

    private static Field snapshotField() {
        try {
            Field field = WorkerCoordinator.class.getDeclaredField("assignmentSnapshot");
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException e) {
            throw new AssertionError("this version of Connect keeps the assignment elsewhere", e);
        }
    }

    /** A configuration topic; the coordinator calls only its {@code snapshot}. */
    private static ConfigBackingStore backingStore(Supplier<ClusterConfigState> config) {
        return (ConfigBackingStore) Proxy.newProxyInstance(
                ScriptedWorker.class.getClassLoader(), new Class<?>[] {ConfigBackingStore.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("snapshot")) {
                        return config.get();
                    }
                    throw new UnsupportedOperationException(method.getName());
                });
    }

    /** Connect's assignor; it records its answer before encoding. */
    private static final class Recording extends IncrementalCooperativeAssignor {
        private Map<String, ExtendedAssignment> answered = Map.of();

        Recording(Time time, int maxDelayMs) {
            super(LOG, time, maxDelayMs);
        }

        @Override
        protected Map<String, ByteBuffer> serializeAssignments(
                Map<String, ExtendedAssignment> assignments, short protocolVersion) {
            answered = assignments;
            return super.serializeAssignments(assignments, protocolVersion);
        }
    }

    /** A listener that starts and stops no work. */
    private static final class Deaf implements WorkerRebalanceListener {
        @Override
        public void onAssigned(ExtendedAssignment assignment, int generation) {}

        @Override
        public void onRevoked(String leader, Collection<String> connectors, Collection<ConnectorTaskId> tasks) {}

        @Override
        public void onPollTimeoutExpiry() {}
    }
}
