// SPDX-License-Identifier: Apache-2.0
package connectoracle;

import connectoracle.Script.Round;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ScriptedWorker;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Plays a script's rounds (rebalances) with Connect's workers. The leader is a coordinator that is not among them. */
final class Cluster implements AutoCloseable {
    private static final long CONFIG_OFFSET = 1;

    private final Script script;
    private final VirtualTime time = new VirtualTime();
    private final Map<String, ScriptedWorker> workers = new HashMap<>();
    private Set<String> before = Set.of();
    private ScriptedWorker leader;
    private ClusterConfigState config = ClusterConfigState.EMPTY;
    private int generation;

    Cluster(Script script) {
        this.script = script;
        leader = worker("leader");
    }

    @Override
    public void close() {
        leader.end();
        workers.values().forEach(ScriptedWorker::end);
    }

    /** Plays one rebalance: workers report, the leader assigns, workers apply their assignments. */
    ObjectNode step(Round round) {
        List<JoinGroupResponseMember> members = prepare(round);
        Map<String, ByteBuffer> answers = leader.lead(generation, lastCompleted(round), config, members);
        return apply(round, members, answers);
    }

    /** Plays one rebalance; returns the time of the leader's computation in ns, with or without the codecs. */
    long time(Round round, boolean wire) {
        List<JoinGroupResponseMember> members = prepare(round);
        if (wire) {
            long begun = System.nanoTime();
            leader.lead(generation, lastCompleted(round), config, members);
            return System.nanoTime() - begun;
        }
        var tookNs = new long[1];
        leader.compute(generation, lastCompleted(round), config, members, System::nanoTime, tookNs);
        return tookNs[0];
    }

    private int lastCompleted(Round round) {
        return generation - 1 - (round.generationMismatch() ? 1 : 0);
    }

    /** Returns the members as the leader receives them, in the order of the round. */
    private List<JoinGroupResponseMember> prepare(Round round) {
        generation++;
        time.set(round.timeMs());
        config = config(round);
        if (round.newLeader()) {
            leader.end();
            leader = worker("leader");
        }
        var members = new ArrayList<JoinGroupResponseMember>();
        for (Script.Worker each : round.workers()) {
            String id = each.id();
            if (!before.contains(id) && !each.retained() || !workers.containsKey(id)) {
                ScriptedWorker old = workers.put(id, worker(id));
                if (old != null) {
                    old.end();
                }
            }
            ScriptedWorker worker = workers.get(id);
            if (each.connectors() != null) {
                worker.run(new ArrayList<>(each.connectors()), new ArrayList<>(each.tasks()));
            }
            members.add(new JoinGroupResponseMember().setMemberId(id).setMetadata(worker.join()));
        }
        before = new HashSet<>();
        members.forEach(member -> before.add(member.memberId()));
        return members;
    }

    private ObjectNode apply(
            Round round, List<JoinGroupResponseMember> members, Map<String, ByteBuffer> answers) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        if (!script.eager()) {
            // All workers receive the same delay.
            answer.put("delay", leader.answered().get(members.get(0).memberId()).delay());
            answer.put("scheduled_rebalance_ms", leader.scheduledRebalanceMs());
        }
        ObjectNode told = answer.putObject("workers");
        for (JoinGroupResponseMember member : members) {
            String id = member.memberId();
            ScriptedWorker worker = workers.get(id);
            ByteBuffer bytes = answers.get(id);
            // The eager answer is in the order of the decoded bytes, the incremental answer in that
            // before encoding.
            ExtendedAssignment assigned =
                    script.eager() ? ScriptedWorker.read(bytes) : leader.answered().get(id);
            ObjectNode own = told.putObject(id);
            put(own, "assigned_", assigned.connectors(), assigned.tasks());
            if (round.apply() == null || round.apply().contains(id)) {
                if (!script.eager() && !script.ownOrder()) {
                    var reported = ScriptedWorker.reported(member.metadata());
                    worker.run(new ArrayList<>(reported.connectors()), new ArrayList<>(reported.tasks()));
                }
                worker.obey(generation, id, bytes);
            }
            if (script.eager()) {
                own.put("error_code", assigned.error());
            } else {
                put(own, "revoked_", assigned.revokedConnectors(), assigned.revokedTasks());
                put(own.putObject("running"), ScriptedWorker.reported(member.metadata()));
                put(own.putObject("after"), worker.running());
            }
        }
        return answer;
    }

    private ScriptedWorker worker(String id) {
        Supplier<ClusterConfigState> current = () -> config;
        return ScriptedWorker.of(id, script.eager(), time, script.maxDelayMs(), current);
    }

    private static ClusterConfigState config(Round round) {
        Map<String, Map<String, String>> connectors = new HashMap<>();
        Map<ConnectorTaskId, Map<String, String>> tasks = new HashMap<>();
        round.config().forEach((name, count) -> {
            connectors.put(name, Map.of());
            for (int n = 0; n < count; n++) {
                tasks.put(new ConnectorTaskId(name, n), Map.of());
            }
        });
        return new ClusterConfigState(
                CONFIG_OFFSET, null, round.config(), connectors, Map.of(), tasks, Map.of(), Map.of(), Map.of(),
                Set.of(), round.inconsistent());
    }

    private static void put(ObjectNode object, ConnectProtocol.Assignment running) {
        put(object, "", running.connectors(), running.tasks());
    }

    private static void put(
            ObjectNode object, String what, Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        var names = object.putArray(what + "connectors");
        connectors.forEach(names::add);
        var pairs = object.putArray(what + "tasks");
        tasks.forEach(task -> pairs.addArray().add(task.connector()).add(task.task()));
    }
}
