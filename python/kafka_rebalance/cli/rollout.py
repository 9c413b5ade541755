# SPDX-License-Identifier: Apache-2.0
"""Plays the deploy of a Deployment or StatefulSet as Kubernetes would make it, and prints what it
does to the group, and which settings make it cheaper. With --gate, it waits until a live group is
stable, as planned; then the exit code is 0, else 4.
"""

import argparse
from functools import partial
from time import monotonic, sleep
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import ClusterError, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.report.text.sentences import print_note, print_wrapped
from kafka_rebalance.rollout.controllers import Assumed
from kafka_rebalance.rollout.forecast import rollout
from kafka_rebalance.rollout.gate import differences
from kafka_rebalance.rollout.manifests import Workload, read_manifest
from kafka_rebalance.simulator.scenario import Costs
from kafka_rebalance.simulator.typed_values import build, settings

from . import DONE, FINDINGS_FAIL, SOME_ERRORS
from .groups import BadGroup, add_input, cluster_groups, one_group
from .lines import open_input
from .options import REPEATED, add_table, member_options, of_topic, seconds, whole

_MOST_BYTES = 4 * 2**20
_EVERY_S = 0.5


def add_options(parser: argparse.ArgumentParser) -> None:
    add_table(parser, "manifest MANIFEST: YAML; - for standard input")
    add_input(parser)
    setting = {"dest": "member", **REPEATED}
    rate = {"type": of_topic, "action": "append"}
    options = """
    --name NAME: which workload, if there are several
    --replicas N: pods, if an autoscaler sets their number
    --setting SETTING=VALUE: of pods: pod_start=2s, start_up=8s, shut_down=1s, on_sigterm=closes,
      dies or ignores; of members, as in `simulate --member`: session_timeout=45s, process=500ms; of
      brokers: group_consumer_session_timeout=45s (repeatable)
    --rate TOPIC=N: records a second
    """
    add_table(parser, options, replicas=whole(1), setting=setting, rate=rate)
    gate: dict[str, Any] = {"for": {"type": seconds, "default": 300, "dest": "for_s"}}
    gate["per_pod"] = {"type": whole(1), "default": 1}
    table = """
    --gate: wait until the group is as planned
    --for S: wait at most S seconds (default: %(default)s)
    --per-pod N: members of a pod
    """
    add_table(parser.add_argument_group("gate"), table, **gate)
    parser.set_defaults(changes=[])


def run(args: argparse.Namespace) -> int:
    workload, live = _workload(args), args.bootstrap_server
    if args.gate and (live is None or args.group is None):
        args.parser.error("--gate needs --bootstrap-server and --group")
    group = None
    if not args.gate or args.file is not None:  # with --gate, FILE holds the earlier group
        args.bootstrap_server = None if args.gate else live
        group = one_group(args)
        if group is None:
            return SOME_ERRORS
    args.bootstrap_server = live
    if args.gate or group is None:
        return _gate(args, workload, group)
    return _forecast(args, group, workload)


def _workload(args: argparse.Namespace) -> Workload:
    with open_input(args.manifest) as source:
        text = source.read(_MOST_BYTES + 1)
    try:
        if len(text) > _MOST_BYTES:
            raise GroupError("documents", f"are longer than {_MOST_BYTES // 2**20} MiB")
        return read_manifest(
            text.decode("utf-8", "replace"),
            name=args.name,
            replicas=args.replicas,
            on_bad=lambda why: print_note(f"{args.manifest}: {why}"),
        )
    except GroupError as error:
        raise GroupError(args.manifest, str(error)) from None


def _forecast(args: argparse.Namespace, group: GroupSpec, workload: Workload) -> int:
    path, kinds = "--setting", (ConsumerConfig, Costs, Assumed, CoordinatorConfig)
    config, work, assumed, broker = settings(path, member_options(args), *kinds)
    found = rollout(
        group,
        workload,
        assumed=build(path, Assumed, assumed),
        config=build(path, ConsumerConfig, config),
        work=build(path, Costs, work),
        broker=build(path, CoordinatorConfig, broker),
        rate=dict(args.rate or ()),
    )
    if args.json:
        print(contract.dumps(found.to_dict()))
    else:
        from kafka_rebalance.report.plans.rollout import print_forecast

        print_forecast(found)
    return DONE


def _gate(args: argparse.Namespace, workload: Workload, before: GroupSpec | None) -> int:
    """Waits, at most `--for` seconds, until two descriptions of the group in a row are equal and as
    planned; returns the exit code.
    """
    differs = partial(differences, per_pod=args.per_pod, before=before, engine=args.engine)
    ends_s = monotonic() + args.for_s
    found, last = ["it was never seen at rest"], None
    while found and monotonic() < ends_s:
        now, group = _look(args)
        if group is not None:
            now = differs(group, workload)
        if now and now != found:
            print_note(f"{args.group}: {'; '.join(now)}; waiting")
        if now or group == last:
            found = now
        last = group
        sleep(_EVERY_S if found else 0)
    told = "stable, as planned: every partition has its reader"
    if found:
        told = f"not as planned after {args.for_s:g} s: {'; '.join(found)}"
    if args.json:
        print(contract.dumps({"group_id": args.group, "differences": found}))
    else:
        print_wrapped(f"{args.group}: {told}.", more="  ")
    return FINDINGS_FAIL if found else DONE


def _look(args: argparse.Namespace) -> tuple[list[str], GroupSpec | None]:
    """Returns ([], the group's description); or (why the group has not settled, None)."""
    from kafka_rebalance.follow.cluster import has_target

    try:
        ((group, line),) = cluster_groups(args, [args.group], None)
    except ClusterError as error:  # in a deploy, brokers may be down for a time
        return [str(error)], None
    if isinstance(group, BadGroup):
        return [group.error], None
    if not has_target(line) or any("assigned_partitions" in one for one in line["members"]):
        return ["members have not yet reached their targets"], None
    return [], group
