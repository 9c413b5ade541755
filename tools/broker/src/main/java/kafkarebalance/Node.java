// SPDX-License-Identifier: Apache-2.0
package kafkarebalance;

import java.io.IOException;

/** Kafka's own server. It ends when its standard input ends, so that no broker outlives its test. */
public final class Node {
    private static final long GRACE_MS = 10_000;

    private Node() { }

    public static void main(String[] arguments) {
        Thread watchdog = new Thread(Node::stopAtEndOfInput, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
        kafka.Kafka.main(arguments);
    }

    private static void stopAtEndOfInput() {
        try {
            while (System.in.read() >= 0) { }
        } catch (IOException closed) {
            // A closed input counts as the end of the input.
        }
        Thread halt = new Thread(Node::haltAfterGrace, "halt");
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
