// SPDX-License-Identifier: Apache-2.0
package kafkarebalance;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;

/**
 * Kafka's own server, which formats its directory before its first start: `Node CONFIG CLUSTER_ID VOTER`.
 *
 * It ends when its standard input ends, so that no broker outlives its test.
 */
public final class Node {
    private static final long GRACE_MS = 10_000;

    private Node() { }

    public static void main(String[] arguments) {
        Thread watchdog = new Thread(Node::stopAtEndOfInput, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
        format(arguments[0], arguments[1], arguments[2]);
        kafka.Kafka.main(new String[] {arguments[0]});
    }

    /** Writes the cluster id into the directory; VOTER says whether the node is the only voter. */
    private static void format(String config, String cluster, String voter) {
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        String[] command = {"format", "--ignore-formatted", voter, "-t", cluster, "-c", config};
        int code = kafka.tools.StorageTool.execute(command, new PrintStream(output, true));
        if (code != 0) {
            System.err.println("formatting failed:\n" + output);
            System.exit(code);
        }
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
