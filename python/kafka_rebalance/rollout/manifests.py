# SPDX-License-Identifier: Apache-2.0
"""Reads the Deployment or StatefulSet of a manifest: the fields that decide how a deploy goes.

    read_manifest: text of YAML, one document or many -> Workload

A field that is missing has Kubernetes' default. A percentage of the replicas is rounded up for
`maxSurge` and down for `maxUnavailable`; a StatefulSet's `maxUnavailable` is at least 1.

Source   k8s.io/api/apps/v1; ResolveFenceposts and getStatefulSetMaxUnavailable (Kubernetes 1.35).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.yaml_documents import yaml_documents

DEPLOYMENT, STATEFUL_SET = KINDS = "Deployment", "StatefulSet"
ROLLING, RECREATE = "RollingUpdate", "Recreate"
_POLICIES = ("OrderedReady", "Parallel")
_SLEEP = re.compile(r"\bsleep\s+(\d{1,6})\b")
_SHARE = re.compile(r"(\d{1,4})%")
_MOST = 1_000_000  # pods, or seconds
_FORMS = {int: "a whole number", str: "a string", list: "a list", dict: "a mapping"}


class ReadinessProbe(NamedTuple):
    """A readiness probe, times in ms; `successes` in a row make the pod ready."""

    delay_ms: int
    period_ms: int
    successes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment or StatefulSet. `max_surge` and `max_unavailable` are numbers of pods.

    `partition` (the lowest ordinal that the deploy replaces), `is_parallel` and `first_ordinal`
    concern a StatefulSet. `pre_stop_ms` is the sleep of the preStop hook; other hooks count as 0.
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
    """Returns the manifest's Deployment or StatefulSet, the one called `name` if it has several.

    `replicas` replaces the manifest's, because an autoscaler may set it. Errors in other documents
    are passed to `on_bad`. Errors: GroupError at a path such as `documents[1].spec.replicas`;
    MissingExtra without PyYAML.
    """
    found: dict[str, _Object] = {}
    bad: list[GroupError] = []
    for path, value in yaml_documents(text, "A manifest"):
        try:
            one = _Object.of(value, path)
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
    """A mapping and its path; `at` is a path in it, with dots, and null counts as missing."""

    root: dict[str, Any]
    path: str

    @classmethod
    def of(cls, value: Any, path: str) -> "_Object":
        if isinstance(value, GroupError):
            raise value
        if not isinstance(value, dict):
            raise GroupError(path, "is not a mapping, as objects of Kubernetes are")
        return cls(value, path)

    def get(self, at: str, *forms: type) -> Any:
        value: Any = self.root
        keys = at.split(".")
        for place, key in enumerate(keys):
            if not isinstance(value, dict):
                raise GroupError(".".join([self.path, *keys[:place]]), "is not a mapping")
            if (value := value.get(key)) is None:
                return None
        if not isinstance(value, forms) or isinstance(value, bool):
            what = " or ".join(_FORMS[one] for one in forms)
            raise GroupError(f"{self.path}.{at}", f"{quoted(str(value))} is not {what}")
        return value

    def word(self, at: str, *known: str) -> str:
        """Returns a string, one of `known` if any are given; the first of these is the default."""
        value: str | None = self.get(at, str) or next(iter(known), None)
        if value is None or (known and value not in known):
            what = f"{quoted(value)} is not one of {', '.join(known)}" if value else "is missing"
            raise GroupError(f"{self.path}.{at}", what)
        return value

    def whole(self, at: str, default: int = 0, least: int = 0) -> int:
        value: int = default if (given := self.get(at, int)) is None else given
        if not least <= value <= _MOST:
            raise GroupError(f"{self.path}.{at}", f"{value} is not within {least} to {_MOST}")
        return value

    def pods(self, at: str, default: str, replicas: int, *, up: bool = False) -> int:
        value = self.get(at, int, str)
        if isinstance(value, int):
            return self.whole(at)
        if (share := _SHARE.fullmatch(value or default)) is None:
            raise GroupError(f"{self.path}.{at}", f"{quoted(value)} is not a percentage as 25% is")
        return (int(share[1]) * replicas + 99 * up) // 100

    def containers(self) -> list["_Object"]:
        at = "spec.template.spec.containers"
        found = self.get(at, list)
        if not found or not all(isinstance(one, dict) for one in found):
            raise GroupError(f"{self.path}.{at}", "is not a list of containers, one or more")
        return [_Object(one, f"{self.path}.{at}[{place}]") for place, one in enumerate(found)]


def _workload(one: _Object, given: int | None) -> Workload:
    replicas = one.whole("spec.replicas", 1) if given is None else given
    if replicas < 1:
        raise GroupError(f"{one.path}.spec.replicas", "0 pods have no members: nothing happens")
    containers, kind = one.containers(), one.word("kind", *KINDS)
    if kind == STATEFUL_SET:
        one.word("spec.updateStrategy.type", ROLLING)  # OnDelete replaces no pod by itself
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
            # With neither, no pod could be replaced.
            "max_unavailable": min(replicas, unavailable or int(surge == 0)),
        }
    return Workload(
        kind=kind,
        name=one.word("metadata.name"),
        replicas=replicas,
        min_ready_ms=1000 * one.whole("spec.minReadySeconds"),
        grace_ms=1000 * one.whole("spec.template.spec.terminationGracePeriodSeconds", 30),
        probes=tuple(_probe(each) for each in containers if each.get("readinessProbe", dict)),
        pre_stop_ms=1000 * max(map(_pre_stop_s, containers)),
        **own,
    )


def _probe(container: _Object) -> ReadinessProbe:
    delay = container.whole("readinessProbe.initialDelaySeconds")
    period = container.whole("readinessProbe.periodSeconds", 10, 1)
    successes = container.whole("readinessProbe.successThreshold", 1, 1)
    return ReadinessProbe(1000 * delay, 1000 * period, successes)


def _pre_stop_s(container: _Object) -> int:
    words = container.get("lifecycle.preStop.exec.command", list) or ()
    slept = _SLEEP.search(" ".join(map(str, words)))
    return int(slept[1]) if slept else container.whole("lifecycle.preStop.sleep.seconds")
