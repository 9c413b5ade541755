// SPDX-License-Identifier: Apache-2.0
package connectoracle;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that is set to the time of each round. */
final class VirtualTime implements Time {
    private long nowMs;

    void set(long nowMs) {
        this.nowMs = nowMs;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException("nobody sleeps here");
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nobody waits here");
    }
}
