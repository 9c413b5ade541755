# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance rollout`: plays a deploy on Kubernetes, or waits until it is as planned."""

import argparse
from functools import partial
from itertools import islice
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
from .groups import BadGroup, add_input, read_groups, report_bad
from .lines import open_input
from .options import cluster_configs, member_options, of_topic, seconds, whole

_MOST_BYTES = 4 * 2**20
_EVERY_S = 0.5


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plays the deploy of a Deployment or StatefulSet as Kubernetes would make it, and prints "
        "what it does to the group, and which settings make it cheaper. With --gate, it waits "
        "until a live group has settled as planned; then the exit code is 0, else 4."
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="YAML; - for standard input")
    add_input(parser)
    parser.add_argument("--name", metavar="NAME", help="which workload, if there are several")
    parser.add_argument(
        "--replicas", type=whole(1), metavar="N", help="pods, if an autoscaler sets their number"
    )
    parser.add_argument(
        "--setting",
        dest="member",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="of pods: pod_start=2s, start_up=8s, shut_down=1s, on_sigterm=closes, dies or "
        "ignores; of members, as in `simulate --member`: session_timeout=45s, process=500ms; of "
        "brokers: group_consumer_session_timeout=45s (repeatable)",
    )
    parser.add_argument(
        "--rate", type=of_topic, action="append", metavar="TOPIC=N", help="records a second"
    )
    gate = parser.add_argument_group("gate")
    gate.add_argument("--gate", action="store_true", help="wait until the group is as planned")
    gate.add_argument(
        "--for", type=seconds, default=300, metavar="S", dest="for_s",
        help="wait at most S seconds (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument("--per-pod", type=whole(1), default=1, metavar="N", help="members of a pod")
    parser.set_defaults(changes=[])


def run(args: argparse.Namespace) -> int:
    with open_input(args.manifest) as source:
        text = source.read(_MOST_BYTES + 1)
    try:
        if len(text) > _MOST_BYTES:
            raise GroupError("documents", f"are longer than {_MOST_BYTES // 2**20} MiB")
        workload = read_manifest(
            text.decode("utf-8", "replace"),
            name=args.name,
            replicas=args.replicas,
            on_bad=lambda why: print_note(f"{args.manifest}: {why}"),
        )
    except GroupError as error:
        raise GroupError(args.manifest, str(error)) from None
    if not args.gate:
        group = _one_group(args)
        return SOME_ERRORS if group is None else _forecast(args, group, workload)
    before, live = None, args.bootstrap_server
    if live is None or args.group is None:
        args.parser.error("--gate needs --bootstrap-server and --group")
    if args.file is not None:
        args.bootstrap_server = None  # FILE has the group before the deploy
        before = _one_group(args)
        if before is None:
            return SOME_ERRORS
    args.bootstrap_server = live
    return _gate(args, workload, before)


def _one_group(args: argparse.Namespace) -> GroupSpec | None:
    """Returns the group of the input; None if there is none, which is then reported."""
    groups = list(islice(read_groups(args), 2))
    if len(groups) > 1:
        args.parser.error("a deploy is played for one group; name it with --group")
    for group in groups:
        if not isinstance(group, BadGroup):
            return group
        report_bad(group, as_json=args.json)
    return None


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
    """Waits for a state of the group without differences, in two descriptions one after another."""
    differs = partial(differences, per_pod=args.per_pod, before=before, engine=args.engine)
    configs, ends_s = cluster_configs(args), monotonic() + args.for_s
    found, last = ["it was never seen at rest"], None
    while found and monotonic() < ends_s:
        now, group = _look(args, configs)
        if group is not None:
            now = differs(group, workload)
        if now and now != found:
            print_note(f"{args.group}: {'; '.join(now)}; waiting")
        if now or group == last:
            found = now
        last = group
        sleep(_EVERY_S if found else 0)
    if args.json:
        print(contract.dumps({"group_id": args.group, "differences": found}))
    elif found:
        why = f"not as planned after {args.for_s:g} s: {'; '.join(found)}"
        print_wrapped(f"{args.group}: {why}.", more="  ")
    else:
        print_wrapped(f"{args.group}: settled as planned: every partition has its reader.")
    return FINDINGS_FAIL if found else DONE


def _look(args: argparse.Namespace, configs: dict[str, Any]) -> tuple[list[str], GroupSpec | None]:
    """Returns why the group is not at rest, or its description."""
    from kafka_rebalance.follow.cluster import has_target
    from kafka_rebalance.live.consumer_groups import snapshot_lines

    try:
        (line,) = snapshot_lines(args.bootstrap_server, [args.group], configs=configs)
        if "error" in line:
            return [line["error"]], None
        if not has_target(line) or any("assigned_partitions" in one for one in line["members"]):
            return ["members have not yet reached their targets"], None
        return [], GroupSpec.from_dict(line)
    except (ClusterError, GroupError) as error:  # brokers may restart meanwhile
        return [str(error)], None
