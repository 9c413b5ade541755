// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.lang.reflect.Field;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.function.BiConsumer;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** A clock that moves only when it is advanced, with the timers that depend on it. */
final class VirtualClock implements Time, Timer {
    /** How often a group's timer may run in one millisecond; our {@code VirtualBroker} has an equal limit. */
    private static final int TIMES_AT_A_MOMENT = 3;

    /** The beginnings of the names of groups' timers. */
    private static final List<String> KINDS = List.of("join-", "sync-", "heartbeat-", "session-timeout-",
        "rebalance-timeout-", "initial-rebalance-timeout-");

    /** The field that holds a timer's name, by the class of the timer. */
    private static final ClassValue<Optional<Field>> KEYS = new ClassValue<>() {
        @Override
        protected Optional<Field> computeValue(Class<?> timer) {
            try {
                Field key = timer.getDeclaredField("val$key");
                key.setAccessible(true);
                return Optional.of(key);
            } catch (NoSuchFieldException e) {
                return Optional.empty();
            }
        }
    };

    private record Armed(long at, long sequence, TimerTask task) { }

    private final PriorityQueue<Armed> armed =
        new PriorityQueue<>(Comparator.comparingLong(Armed::at).thenComparingLong(Armed::sequence));
    private final BiConsumer<Long, String> onTimer;
    private long now;
    private long sequence;

    VirtualClock(long at, BiConsumer<Long, String> onTimer) {
        now = at;
        this.onTimer = onTimer;
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException("nothing sleeps here");
    }

    @Override
    public void add(TimerTask task) {
        // Kafka treats a task without an entry as cancelled. The constructor of TimerTaskEntry sets the task's entry.
        TimerTaskEntry entry = new TimerTaskEntry(task, now + task.delayMs);
        armed.add(new Armed(entry.expirationMs, sequence++, task));
    }

    /**
     * Runs each timer that is due within {@code ms}, at its due time. A timer of a group can start itself again and
     * again for the present millisecond; after TIMES_AT_A_MOMENT runs, it waits for the next millisecond.
     */
    @Override
    public boolean advanceClock(long ms) {
        long end = now + ms;
        Map<String, Integer> times = new HashMap<>();
        while (nextAt() <= end) {
            String key = keyOf(armed.peek().task);
            if (nextAt() > now) {
                now = nextAt();
                times.clear();
            } else if (isOfGroup(key) && times.getOrDefault(key, 0) == TIMES_AT_A_MOMENT) {
                if (now == end) break;
                now++;
                times.clear();
            }
            times.merge(key == null ? "" : key, 1, Integer::sum);
            TimerTask task = armed.poll().task;
            if (isOfGroup(key)) onTimer.accept(now, key);
            task.run();
        }
        now = end;
        return true;
    }

    private long nextAt() {
        while (!armed.isEmpty() && armed.peek().task.isCancelled()) armed.poll();
        return armed.isEmpty() ? Long.MAX_VALUE : armed.peek().at;
    }

    @Override
    public int size() {
        return armed.size();
    }

    @Override
    public void close() { }

    /** Removes the timers of groups, because a coordinator that unloads can start some that it never stops. */
    void forgetGroups() {
        armed.removeIf(one -> isOfGroup(keyOf(one.task)));
    }

    /** Returns the group's timers: name -> due time. */
    TreeMap<String, Long> timersOf(String groupId) {
        TreeMap<String, Long> timers = new TreeMap<>();
        for (Armed one : armed) {
            String key = keyOf(one.task);
            if (one.task.isCancelled() || key == null) continue;
            for (String kind : KINDS) {
                if (key.equals(kind + groupId) || key.startsWith(kind + groupId + "-")) timers.put(key, one.at);
            }
        }
        return timers;
    }

    private static boolean isOfGroup(String key) {
        return key != null && KINDS.stream().anyMatch(key::startsWith);
    }

    /** Returns the name that the coordinator gave to a timer; null for timers of the runtime. */
    private static String keyOf(TimerTask task) {
        try {
            Optional<Field> key = KEYS.get(task.getClass());
            return key.isEmpty() ? null : (String) key.get().get(task);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
