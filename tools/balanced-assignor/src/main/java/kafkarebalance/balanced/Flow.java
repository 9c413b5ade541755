// SPDX-License-Identifier: Apache-2.0
package kafkarebalance.balanced;

import java.util.Arrays;
import java.util.PriorityQueue;

/**
 * Finds flows in small integer networks: a largest flow, and the cheapest of the largest flows.
 *
 * <p>Mirror of {@code flow.py}, which explains the method. Arc {@code 2i} is the i-th arc added, {@code 2i + 1} is its
 * reverse. A node's arcs are a list: {@code first} by node, then {@code next} by arc.
 */
final class Flow {
    static final int UNLIMITED = Integer.MAX_VALUE;
    static final int UNREACHED = -1;
    private static final int NONE = -1;

    private record Reached(long far, int node) {}

    private final int[] first;
    private final int[] last;
    private final long[] potential;
    private final int[] path;
    private int arcs;
    private int[] next = new int[64];
    private int[] head = new int[64];
    private int[] room = new int[64];
    private long[] cost = new long[64];

    Flow(int nodes) {
        first = new int[nodes];
        last = new int[nodes];
        potential = new long[nodes];
        path = new int[nodes];
        Arrays.fill(first, NONE);
    }

    /** Adds an arc and returns its number; {@code price} is not negative. */
    int add(int tail, int to, int capacity, long price) {
        append(tail, to, capacity, price);
        append(to, tail, 0, -price);
        return arcs - 2;
    }

    private void append(int tail, int to, int capacity, long price) {
        if (arcs == head.length) {
            next = Arrays.copyOf(next, 2 * arcs);
            head = Arrays.copyOf(head, 2 * arcs);
            room = Arrays.copyOf(room, 2 * arcs);
            cost = Arrays.copyOf(cost, 2 * arcs);
        }
        if (first[tail] == NONE) {
            first[tail] = arcs;
        } else {
            next[last[tail]] = arcs;
        }
        last[tail] = arcs;
        next[arcs] = NONE;
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
            int[] untried = first.clone();
            for (int sent = 1; sent > 0; total += sent) {
                sent = augment(source, sink, level, untried);
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

    /** Returns for each node its distance from the source, counted in tight arcs with room, or UNREACHED. */
    int[] levels(int source) {
        int[] level = new int[first.length];
        Arrays.fill(level, UNREACHED);
        int[] queue = new int[first.length];
        queue[0] = source;
        level[source] = 0;
        for (int at = 0, waiting = 1; at < waiting; at++) {
            for (int arc = first[queue[at]]; arc != NONE; arc = next[arc]) {
                if (level[head[arc]] == UNREACHED && isOpen(queue[at], arc)) {
                    level[head[arc]] = level[queue[at]] + 1;
                    queue[waiting++] = head[arc];
                }
            }
        }
        return level;
    }

    private long reduced(int tail, int arc) {
        return cost[arc] + potential[tail] - potential[head[arc]];
    }

    private boolean isOpen(int tail, int arc) {
        return room[arc] > 0 && reduced(tail, arc) == 0;
    }

    /**
     * Sends flow along one path and returns the amount (0: no path is left).
     *
     * <p>A node's arcs before {@code untried} are not tried again: they cannot reach the sink.
     */
    private int augment(int source, int sink, int[] level, int[] untried) {
        int steps = 0;
        for (int node = source; node != sink; ) {
            int arc = untried[node];
            if (arc == NONE && steps == 0) {
                return 0;
            } else if (arc == NONE) {
                node = head[path[--steps] ^ 1];
                untried[node] = next[untried[node]];
            } else if (level[head[arc]] == level[node] + 1 && isOpen(node, arc)) {
                path[steps++] = arc;
                node = head[arc];
            } else {
                untried[node] = next[arc];
            }
        }
        int sent = Arrays.stream(path, 0, steps).map(arc -> room[arc]).min().orElse(0);
        for (int i = 0; i < steps; i++) {
            room[path[i]] -= sent;
            room[path[i] ^ 1] += sent;
        }
        return sent;
    }

    /** Returns for each node the least reduced cost from the source (Dijkstra; costs are not negative). */
    private long[] distances(int source) {
        long[] distance = new long[first.length];
        Arrays.fill(distance, UNREACHED);
        var heap = new PriorityQueue<Reached>((one, other) -> Long.compare(one.far, other.far));
        heap.add(new Reached(0, source));
        while (!heap.isEmpty()) {
            Reached least = heap.poll();
            if (distance[least.node] != UNREACHED) {
                continue;
            }
            distance[least.node] = least.far;
            for (int arc = first[least.node]; arc != NONE; arc = next[arc]) {
                if (room[arc] > 0 && distance[head[arc]] == UNREACHED) {
                    heap.add(new Reached(least.far + reduced(least.node, arc), head[arc]));
                }
            }
        }
        return distance;
    }
}
