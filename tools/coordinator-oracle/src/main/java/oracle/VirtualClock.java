package oracle;

import java.lang.reflect.Field;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.function.BiConsumer;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** Time that stands still until it is advanced, and the timers that hang on it. */
final class VirtualClock implements Time, Timer {
    /** Rounds of timers at one moment; `VirtualBroker` has as many. */
    private static final int ROUNDS = 3;

    private record Armed(long at, long sequence, TimerTask task) { }

    private final PriorityQueue<Armed> armed =
        new PriorityQueue<>(Comparator.comparingLong(Armed::at).thenComparingLong(Armed::sequence));
    private final BiConsumer<Long, String> onTimer;
    private long now;
    private long sequence;

    VirtualClock(BiConsumer<Long, String> onTimer) {
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
        // A task counts as cancelled as long as it has no entry; the entry takes the task's hand itself.
        TimerTaskEntry entry = new TimerTaskEntry(task, now + task.delayMs);
        armed.add(new Armed(entry.expirationMs, sequence++, task));
    }

    /**
     * Runs what falls due until then, each at its own moment. A timer that a round of timers arms for its own moment
     * runs in the next round; after some rounds a millisecond passes, as timers may arm themselves anew for ever.
     */
    @Override
    public boolean advanceClock(long ms) {
        long end = now + ms;
        int rounds = 0;
        while (nextAt() <= end) {
            if (nextAt() > now) {
                now = nextAt();
                rounds = 0;
            } else if (rounds == ROUNDS) {
                if (now == end) break;
                now++;
                rounds = 0;
            }
            rounds++;
            for (long armedLater = sequence; nextAt() <= now && armed.peek().sequence < armedLater;) {
                TimerTask task = armed.poll().task;
                String key = keyOf(task);
                if (isOfGroup(key)) onTimer.accept(now, key);
                task.run();
            }
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

    /** Forgets the timers of groups: what a coordinator arms while it is unloaded is nobody's. */
    void forgetGroups() {
        armed.removeIf(one -> isOfGroup(keyOf(one.task)));
    }

    /** The timers of a group, by their names. */
    TreeMap<String, Long> timersOf(String groupId) {
        TreeMap<String, Long> timers = new TreeMap<>();
        for (Armed one : armed) {
            String key = keyOf(one.task);
            if (one.task.isCancelled() || key == null) continue;
            if (key.equals("join-" + groupId) || key.equals("sync-" + groupId)
                || key.startsWith("heartbeat-" + groupId + "-")) timers.put(key, one.at);
        }
        return timers;
    }

    private static boolean isOfGroup(String key) {
        return key != null && (key.startsWith("join-") || key.startsWith("sync-") || key.startsWith("heartbeat-"));
    }

    /** The coordinator's name for a timer; null for timers of the runtime itself. */
    private static String keyOf(TimerTask task) {
        try {
            Field key = task.getClass().getDeclaredField("val$key");
            key.setAccessible(true);
            return (String) key.get(task);
        } catch (NoSuchFieldException e) {
            return null;
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
