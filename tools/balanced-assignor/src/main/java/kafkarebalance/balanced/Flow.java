// SPDX-License-Identifier: Apache-2.0
package kafkarebalance.balanced;

import java.util.Arrays;
import java.util.PriorityQueue;

/**
 * Finds flows in small integer networks: a largest flow, and the cheapest of the largest flows.
 *
 * <p>Mirror of {@code python/kafka_rebalance/assignors/balance/flow.py}, which explains the method. Arc {@code 2i}
 * is the i-th arc added, {@code 2i + 1} is its reverse.
 */
final class Flow {
    static final int UNLIMITED = Integer.MAX_VALUE;
    private static final int UNREACHED = -1;

    private record Reached(long far, int node) implements Comparable<Reached> {
        @Override
        public int compareTo(Reached other) {
            return Long.compare(far, other.far);
        }
    }

    private final int[][] arcsOf;
    private final int[] degree;
    private final long[] potential;
    private int arcs;
    private int[] head = new int[64];
    private int[] room = new int[64];
    private long[] cost = new long[64];

    Flow(int nodes) {
        arcsOf = new int[nodes][4];
        degree = new int[nodes];
        potential = new long[nodes];
    }

    /** Adds an arc and returns its number; {@code price} is not negative. */
    int add(int tail, int to, int capacity, long price) {
        int arc = arcs;
        append(tail, to, capacity, price);
        append(to, tail, 0, -price);
        return arc;
    }

    private void append(int tail, int to, int capacity, long price) {
        if (arcs == head.length) {
            head = Arrays.copyOf(head, 2 * arcs);
            room = Arrays.copyOf(room, 2 * arcs);
            cost = Arrays.copyOf(cost, 2 * arcs);
        }
        if (degree[tail] == arcsOf[tail].length) {
            arcsOf[tail] = Arrays.copyOf(arcsOf[tail], 2 * degree[tail]);
        }
        arcsOf[tail][degree[tail]++] = arcs;
        head[arcs] = to;
        room[arcs] = capacity;
        cost[arcs++] = price;
    }

    int sent(int arc) {
        return room[arc + 1];
    }

    /** Sends as much as possible along tight arcs; returns the amount. */
    int largest(int source, int sink) {
        int total = 0;
        for (int[] level = levels(source); level[sink] != UNREACHED; level = levels(source)) {
            int[] unused = new int[arcsOf.length];
            for (int sent = augment(source, sink, level, unused); sent > 0;
                    sent = augment(source, sink, level, unused)) {
                total += sent;
            }
        }
        return total;
    }

    /** Sends as much flow as possible at the least cost. */
    void cheapest(int source, int sink) {
        for (long[] far = distances(source); far[sink] != UNREACHED; far = distances(source)) {
            for (int node = 0; node < far.length; node++) {
                potential[node] += far[node] == UNREACHED ? far[sink] : Math.min(far[node], far[sink]);
            }
            largest(source, sink);
        }
    }

    /** Returns, for each node, whether more flow can reach it along tight arcs. */
    boolean[] reachable(int source) {
        int[] level = levels(source);
        boolean[] reached = new boolean[level.length];
        for (int node = 0; node < level.length; node++) {
            reached[node] = level[node] != UNREACHED;
        }
        return reached;
    }

    private long reduced(int tail, int arc) {
        return cost[arc] + potential[tail] - potential[head[arc]];
    }

    /** Returns for each node its distance from the source, counted in tight arcs with room. */
    private int[] levels(int source) {
        int[] level = new int[arcsOf.length];
        Arrays.fill(level, UNREACHED);
        int[] queue = new int[arcsOf.length];
        int waiting = 1;
        queue[0] = source;
        level[source] = 0;
        for (int next = 0; next < waiting; next++) {
            int node = queue[next];
            for (int i = 0; i < degree[node]; i++) {
                int arc = arcsOf[node][i];
                if (room[arc] > 0 && level[head[arc]] == UNREACHED && reduced(node, arc) == 0) {
                    level[head[arc]] = level[node] + 1;
                    queue[waiting++] = head[arc];
                }
            }
        }
        return level;
    }

    /**
     * Sends flow along one path and returns the amount (0: no path is left).
     *
     * <p>The first {@code unused[n]} arcs of node n are not tried again: they cannot reach the sink.
     */
    private int augment(int source, int sink, int[] level, int[] unused) {
        int[] path = new int[level.length];
        int steps = 0;
        int node = source;
        while (node != sink) {
            int arc = nextArc(node, level, unused);
            if (arc >= 0) {
                path[steps++] = arc;
                node = head[arc];
            } else if (steps == 0) {
                return 0;
            } else {
                node = head[path[--steps] ^ 1];
                unused[node]++;
            }
        }
        int sent = UNLIMITED;
        for (int i = 0; i < steps; i++) {
            sent = Math.min(sent, room[path[i]]);
        }
        for (int i = 0; i < steps; i++) {
            room[path[i]] -= sent;
            room[path[i] ^ 1] += sent;
        }
        return sent;
    }

    private int nextArc(int node, int[] level, int[] unused) {
        for (; unused[node] < degree[node]; unused[node]++) {
            int arc = arcsOf[node][unused[node]];
            if (room[arc] > 0 && level[head[arc]] == level[node] + 1 && reduced(node, arc) == 0) {
                return arc;
            }
        }
        return -1;
    }

    /** Returns for each node the least reduced cost from the source (Dijkstra; costs are not negative). */
    private long[] distances(int source) {
        long[] distance = new long[arcsOf.length];
        Arrays.fill(distance, UNREACHED);
        var heap = new PriorityQueue<Reached>();
        heap.add(new Reached(0, source));
        while (!heap.isEmpty()) {
            Reached next = heap.poll();
            int node = next.node;
            if (distance[node] != UNREACHED) {
                continue;
            }
            distance[node] = next.far;
            for (int i = 0; i < degree[node]; i++) {
                int arc = arcsOf[node][i];
                if (room[arc] > 0 && distance[head[arc]] == UNREACHED) {
                    heap.add(new Reached(next.far + reduced(node, arc), head[arc]));
                }
            }
        }
        return distance;
    }
}
