// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.TimeUnit;

/** Keeps the coordinator's background tasks (the resolution of patterns) until {@code run} runs them. */
final class Background extends AbstractExecutorService {
    private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();

    void run() {
        while (!waiting.isEmpty()) waiting.poll().run();
    }

    @Override
    public void execute(Runnable task) {
        waiting.add(task);
    }

    @Override
    public void shutdown() { }

    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return true;
    }
}
