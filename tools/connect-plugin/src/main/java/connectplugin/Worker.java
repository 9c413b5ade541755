// SPDX-License-Identifier: Apache-2.0
package connectplugin;

import java.io.IOException;
import org.apache.kafka.connect.cli.ConnectDistributed;

/** Connect's own worker. It ends when its standard input ends, so that no worker outlives its test. */
public final class Worker {
    private static final long GRACE_MS = 10_000;

    private Worker() {}

    public static void main(String[] arguments) {
        Thread watchdog = new Thread(Worker::stopAtEndOfInput, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
        ConnectDistributed.main(arguments);
    }

    private static void stopAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {}
        } catch (IOException closed) {
            // A closed input counts as the end of the input.
        }
        Thread halt = new Thread(Worker::haltAfterGrace, "halt");
        halt.setDaemon(true);
        halt.start();
        System.exit(0);
    }

    private static void haltAfterGrace() {
        try {
            Thread.sleep(GRACE_MS);
        } catch (InterruptedException ignored) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(1);
    }
}
