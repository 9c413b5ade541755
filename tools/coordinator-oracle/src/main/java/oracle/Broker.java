// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

import com.fasterxml.jackson.databind.JsonNode;
import com.yammer.metrics.core.MetricsRegistry;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.common.runtime.CoordinatorShardBuilder;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.GroupMetadataManager;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.share.persister.NoOpStatePersister;

/**
 * Kafka's group coordinator with parts of a broker, but with a virtual clock and a log in memory. All events run on the
 * caller's thread.
 */
final class Broker {
    static final TopicPartition PARTITION = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, 0);
    /** Nobody reads these metrics. All coordinators share one registry, because each starts threads that never end. */
    private static final GroupCoordinatorMetrics METRICS =
        new GroupCoordinatorMetrics(new MetricsRegistry(), new Metrics());

    final VirtualClock clock;
    final MemoryLog log;
    final Cluster cluster = new Cluster();
    final Background background = new Background();
    GroupCoordinatorService service;
    CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime;
    private final Map<String, Object> settings;
    private GroupCoordinatorShard shard;
    private int epoch;
    private boolean owns;

    Broker(long at, Map<String, Object> settings, BiConsumer<Long, String> onTimer, Consumer<MemoryLog.Entry> onRecord)
        throws ReflectiveOperationException {
        this.settings = new HashMap<>(settings);
        clock = new VirtualClock(at, onTimer);
        log = new MemoryLog(onRecord);
        start();
    }

    /**
     * Unloads the partition's groups, and loads them again from the log. If settings change, the groups are loaded by a
     * new coordinator with these settings.
     */
    void reload(Map<String, Object> changed) throws ReflectiveOperationException {
        unload();
        if (!changed.isEmpty()) {
            settings.putAll(changed);
            start();
        } else {
            own();
        }
    }

    void unload() {
        if (owns) service.onResignation(0, OptionalInt.of(++epoch));
        clock.forgetGroups();
        owns = false;
    }

    /** Changes the cluster's topics to exactly these. Kafka waits for tombstones of deleted topics' offsets. */
    void topics(JsonNode topics) {
        if (log.holds()) throw new IllegalStateException("topics: the log holds appends, so Kafka would wait for ever");
        cluster.change(topics);
        service.onMetadataUpdate(cluster.delta(), cluster.image());
    }

    boolean owns() {
        return owns;
    }

    private void own() {
        service.onElection(0, ++epoch);
        owns = true;
    }

    private void start() throws ReflectiveOperationException {
        GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(settings);
        GroupConfigManager groupConfigs = new GroupConfigManager(config, ShareGroupConfig.fromProps(Map.of()));
        runtime = new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
            .withLogPrefix("")
            .withLogContext(new LogContext(""))
            .withEventProcessor(new OneThread())
            .withPartitionWriter(log)
            .withLoader(log)
            .withCoordinatorShardBuilderSupplier(() -> seen(new GroupCoordinatorShard.Builder(config, groupConfigs)
                .withAuthorizerPlugin(Optional.empty())))
            .withTime(clock)
            .withTimer(clock)
            // A write may wait, while the log holds it, for any virtual time.
            .withWriteTimeout(Duration.ofDays(10_000))
            .withCoordinatorRuntimeMetrics(silent())
            .withCoordinatorMetrics(METRICS)
            .withSerializer(new GroupCoordinatorRecordSerde())
            .withCompression(Compression.NONE)
            .withAppendLingerMs(OptionalInt.of(0))
            .withExecutorService(background)
            .withCachedBufferMaxBytesSupplier(() -> 1 << 20)
            .build();
        // The public builder would start its own threads, so call the only constructor, which is not public.
        Constructor<?> constructor = GroupCoordinatorService.class.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        service = (GroupCoordinatorService) constructor.newInstance(new LogContext(""), config, runtime, METRICS,
            groupConfigs, new NoOpStatePersister(), clock, null, Optional.empty(), clock);
        service.startup(() -> 1);
        if (cluster.hasTopics()) service.onMetadataUpdate(cluster.unchanged(), cluster.image());
        own();
    }

    /** Returns Kafka's object of the group, or null if there is none, or the log was refused. */
    Object group(String groupId) throws ReflectiveOperationException {
        Field field = GroupCoordinatorShard.class.getDeclaredField("groupMetadataManager");
        field.setAccessible(true);
        try {
            return owns && !log.isRefused() ? ((GroupMetadataManager) field.get(shard)).group(groupId) : null;
        } catch (org.apache.kafka.common.errors.GroupIdNotFoundException e) {
            return null;
        }
    }

    /** Returns the address of a client; it has no host name, as in a broker. */
    private static InetAddress client() {
        try {
            return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    static RequestContext context(ApiKeys api, int version, String clientId) {
        return new RequestContext(new RequestHeader(api, (short) version, clientId, 0), "1",
            client(), KafkaPrincipal.ANONYMOUS, ListenerName.normalised("PLAINTEXT"),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    /** Wraps the builder of the shard in order to keep the shard, whose state {@code group} reads. */
    @SuppressWarnings("unchecked")
    private CoordinatorShardBuilder<GroupCoordinatorShard, CoordinatorRecord> seen(
        CoordinatorShardBuilder<GroupCoordinatorShard, CoordinatorRecord> builder) {
        return (CoordinatorShardBuilder<GroupCoordinatorShard, CoordinatorRecord>) Proxy.newProxyInstance(
            getClass().getClassLoader(), new Class<?>[] {CoordinatorShardBuilder.class}, (proxy, method, arguments) -> {
                Object result = method.invoke(builder, arguments);
                if (!method.getName().equals("build")) return proxy;
                shard = (GroupCoordinatorShard) result;
                return shard;
            });
    }

    private static CoordinatorRuntimeMetrics silent() {
        return (CoordinatorRuntimeMetrics) Proxy.newProxyInstance(Broker.class.getClassLoader(),
            new Class<?>[] {CoordinatorRuntimeMetrics.class}, (proxy, method, arguments) -> null);
    }

    /** Runs events at once, one after another, on the caller's thread. */
    private static final class OneThread implements CoordinatorEventProcessor {
        private final ArrayDeque<CoordinatorEvent> waiting = new ArrayDeque<>();
        private boolean running;

        @Override
        public void enqueueLast(CoordinatorEvent event) {
            waiting.addLast(event);
            drain();
        }

        @Override
        public void enqueueFirst(CoordinatorEvent event) {
            waiting.addFirst(event);
            drain();
        }

        private void drain() {
            if (running) return;
            running = true;
            while (!waiting.isEmpty()) {
                CoordinatorEvent event = waiting.poll();
                try {
                    event.run();
                } catch (Throwable t) {
                    event.complete(t);
                }
            }
            running = false;
        }

        @Override
        public void close() { }
    }
}
