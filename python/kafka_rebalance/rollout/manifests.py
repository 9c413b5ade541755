# SPDX-License-Identifier: Apache-2.0
"""Reads the Deployment or StatefulSet in a manifest: the fields that decide the course of a deploy.

    read_manifest: text of YAML, one document or many -> Workload

A field that is missing has Kubernetes' default. A percentage of the replicas is rounded up for
`maxSurge` and down for `maxUnavailable`; a StatefulSet's `maxUnavailable` is at least 1.

Source   k8s.io/api/apps/v1; ResolveFenceposts and getStatefulSetMaxUnavailable (Kubernetes 1.35).
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Message
from kafka_rebalance.group import field_paths
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.yaml_documents import yaml_documents

DEPLOYMENT, STATEFUL_SET = KINDS = "Deployment", "StatefulSet"
ROLLING, RECREATE = "RollingUpdate", "Recreate"
_POLICIES = ("OrderedReady", "Parallel")
_SLEEP = re.compile(r"\bsleep\s+(\d{1,6})\b")
_SHARE = re.compile(r"(\d{1,4})%")
_MOST = 1_000_000  # the largest number of pods, or of seconds


class ReadinessProbe(NamedTuple):
    """A readiness probe with times in ms. `successes` in a row make the pod ready."""

    delay_ms: int
    period_ms: int
    successes: int


class Workload(Message):
    """A Deployment or StatefulSet. `max_surge` and `max_unavailable` are numbers of pods.

    `partition` (the lowest ordinal that the deploy replaces), `is_parallel` and `first_ordinal` are
    for a StatefulSet. `pre_stop_ms` is the sleep of the preStop hook; other hooks count as 0.
    """

    kind: str
    name: str
    replicas: int
    strategy: str = ROLLING
    max_surge: int = 0
    max_unavailable: int = 1
    partition: int = 0
    is_parallel: bool = False
    first_ordinal: int = 0
    min_ready_ms: int = 0
    probes: tuple[ReadinessProbe, ...] = ()
    grace_ms: int = 30_000
    pre_stop_ms: int = 0

    @property
    def is_stateful(self) -> bool:
        return self.kind == STATEFUL_SET

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def read_manifest(
    text: str,
    *,
    name: str | None = None,
    replicas: int | None = None,
    on_bad: Callable[[str], None] = lambda _: None,
) -> Workload:
    """Returns the manifest's Deployment or StatefulSet `name`; for None, the only one.

    `replicas` overrides the manifest's number, because an autoscaler may set it. Errors in other
    documents are passed to `on_bad`. Errors: GroupError at a path such as
    `documents[1].spec.replicas`; MissingExtra without PyYAML.
    """
    found: dict[str, _Object] = {}
    bad: list[GroupError] = []
    for path, value in yaml_documents(text, "A manifest"):
        try:
            if isinstance(value, GroupError):
                raise value
            one = _Object(field_paths.object_(value, path), path)
            if one.root.get("kind") in KINDS:
                found[one.word("metadata.name")] = one
        except GroupError as wrong:
            bad.append(wrong)
    if name is None and len(found) == 1:
        (name,) = found
    if name not in found:
        names = ", ".join(map(quoted, found))
        none = "there is no Deployment or StatefulSet; a chart must be rendered first"
        problem = GroupError("documents", f"name one of {names}" if found else none)
        if name is not None:
            problem = GroupError("name", f"no workload {quoted(name)}; there are: {names}")
        raise [*bad, problem][0]
    for error in bad:
        on_bad(str(error))
    return _workload(found[name], replicas)


class _Object(NamedTuple):
    """A mapping in the manifest, and its path. Methods take the path, with dots, of a field in the
    mapping; null counts as missing.
    """

    root: dict[str, Any]
    path: str

    def get(self, at: str) -> Any:
        value: Any = self.root
        keys = at.split(".")
        for place, key in enumerate(keys):
            value = field_paths.object_(value, ".".join([self.path, *keys[:place]])).get(key)
            if value is None:
                return None
        return value

    def word(self, at: str, *known: str) -> str:
        """Returns a string; if `known` are given, it must be one of them, and the first is the
        default.
        """
        value, path = self.get(at) or next(iter(known), None), f"{self.path}.{at}"
        if value is None or (known and field_paths.text(value, path) not in known):
            what = f"{quoted(value)} is not one of {', '.join(known)}" if value else "is missing"
            raise GroupError(path, what)
        return field_paths.text(value, path)

    def whole(self, at: str, default: int = 0, least: int = 0) -> int:
        value = default if (given := self.get(at)) is None else given
        return field_paths.integer(value, f"{self.path}.{at}", "number", least, _MOST)

    def pods(self, at: str, default: str, replicas: int, *, up: bool = False) -> int:
        value = self.get(at)
        if isinstance(value, int):
            return self.whole(at)
        if (share := _SHARE.fullmatch(str(value or default))) is None:
            problem = f"{quoted(str(value))} is not a number or a percentage as 25% is"
            raise GroupError(f"{self.path}.{at}", problem)
        return (int(share[1]) * replicas + 99 * up) // 100

    def containers(self) -> list["_Object"]:
        path = f"{self.path}.spec.template.spec.containers"
        found = field_paths.array(self.get("spec.template.spec.containers") or (), path)
        if not found:
            raise GroupError(path, "is empty")
        each = ((one, f"{path}[{place}]") for place, one in enumerate(found))
        return [_Object(field_paths.object_(*one), one[1]) for one in each]


def _workload(one: _Object, given: int | None) -> Workload:
    replicas = one.whole("spec.replicas", 1) if given is None else given
    if replicas < 1:
        raise GroupError(f"{one.path}.spec.replicas", "0 pods have no members: nothing happens")
    containers, kind = one.containers(), one.word("kind", *KINDS)
    if kind == STATEFUL_SET:
        one.word("spec.updateStrategy.type", ROLLING)  # not OnDelete: it replaces no pod by itself
        rolling = "spec.updateStrategy.rollingUpdate"
        own: dict[str, Any] = {
            "max_unavailable": max(1, one.pods(f"{rolling}.maxUnavailable", "0%", replicas)),
            "partition": one.whole(f"{rolling}.partition"),
            "is_parallel": one.word("spec.podManagementPolicy", *_POLICIES) != _POLICIES[0],
            "first_ordinal": one.whole("spec.ordinals.start"),
        }
    else:
        rolling = "spec.strategy.rollingUpdate"
        surge = one.pods(f"{rolling}.maxSurge", "25%", replicas, up=True)
        unavailable = one.pods(f"{rolling}.maxUnavailable", "25%", replicas)
        own = {
            "strategy": one.word("spec.strategy.type", ROLLING, RECREATE),
            "max_surge": surge,
            # If both were 0, no pod could be replaced.
            "max_unavailable": min(replicas, unavailable or int(surge == 0)),
        }
    return Workload(
        kind=kind,
        name=one.word("metadata.name"),
        replicas=replicas,
        min_ready_ms=1000 * one.whole("spec.minReadySeconds"),
        grace_ms=1000 * one.whole("spec.template.spec.terminationGracePeriodSeconds", 30),
        probes=tuple(_probe(each) for each in containers if each.get("readinessProbe")),
        pre_stop_ms=1000 * max(map(_pre_stop_s, containers)),
        **own,
    )


def _probe(container: _Object) -> ReadinessProbe:
    delay = container.whole("readinessProbe.initialDelaySeconds")
    period = container.whole("readinessProbe.periodSeconds", 10, 1)
    successes = container.whole("readinessProbe.successThreshold", 1, 1)
    return ReadinessProbe(1000 * delay, 1000 * period, successes)


def _pre_stop_s(container: _Object) -> int:
    at = "lifecycle.preStop.exec.command"
    words = field_paths.array(container.get(at) or (), f"{container.path}.{at}")
    slept = _SLEEP.search(" ".join(map(str, words)))
    return int(slept[1]) if slept else container.whole("lifecycle.preStop.sleep.seconds")
