# SPDX-License-Identifier: Apache-2.0
"""Writes a verdict as text, as SARIF, and as the commands that GitHub's runner reads.

Names of groups come from strangers. A runner takes `::name` at the start of a line, and `##[name]`
anywhere in a line, for a command of its own, so the text has neither.

Source   SARIF 2.1.0 (OASIS); GitHub, "Workflow commands for GitHub Actions" (escapes of data and of
         properties: actions/toolkit, command.ts).
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from kafka_rebalance._core import VERSION
from kafka_rebalance.errors import shown
from kafka_rebalance.notes.findings import FINDINGS, Severity
from kafka_rebalance.settings.rules import RULES

from .verdict import OVER_LIMIT, Problem, Verdict

_REPOSITORY = "https://github.com/kafka-rebalance/kafka-rebalance/blob/main/"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}

Places = Mapping[str, int]
"""A group's id -> the number of its line in the file that was checked."""


def text_lines(verdict: Verdict) -> Iterator[str]:
    """Yields the verdict, then a line for each problem."""
    yield verdict.summary
    if verdict.problems:
        yield ""
    for one in verdict.problems:
        mark = "FAILS" if verdict.fails(one) else "known" if one.is_known else "noted"
        yield harmless(f"{mark}  {one.severity:7}  {one.group_id}: {one.kind}: {one.text}")


def harmless(text: str) -> str:
    r"""Returns a line that no runner of pipelines takes for a command.

    >>> print(harmless("a ##[error] b"), harmless("::debug::x"))
    a \u0023#[error] b \u003a:debug::x
    """
    line = shown(text).replace("##[", "\\u0023#[")
    return f"\\u003a{line[1:]}" if line.lstrip().startswith("::") else line


def github_lines(verdict: Verdict, file: str | None, places: Places) -> Iterator[str]:
    """Yields the verdict, then a command for each problem that fails, shown beside its line."""
    yield harmless(verdict.summary)
    for one in verdict.problems:
        if one.is_known:
            continue
        command = _COMMANDS[one.severity] if verdict.fails(one) else "notice"
        properties = {"title": f"{one.group_id}: {one.kind}"}
        place = _place(one, file, places)
        if place is not None:
            properties = {"file": place[0], "line": str(place[1]), **properties}
        named = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
        yield f"::{command} {named}::{_escaped(f'{one.text} ({_REPOSITORY}{one.see})')}"


def _place(one: Problem, file: str | None, places: Places) -> tuple[str, int] | None:
    """Returns the file and the line of a problem; None if the groups are those of a cluster."""
    if one.file is not None:
        return one.file, one.line or 1
    return None if file is None else (file, places.get(one.group_id, 1))


def _escaped(value: str, more: str = "") -> str:
    text = shown(value).replace("##[", "\\u0023#[")
    for one in f"%\r\n{more}":
        text = text.replace(one, f"%{ord(one):02X}")
    return text


def sarif(verdict: Verdict, file: str | None, places: Places) -> dict[str, Any]:
    """Returns a SARIF log with one run; a rule for each kind of problem that was found."""
    kinds = list(dict.fromkeys(one.kind for one in verdict.problems))
    rules = [
        {
            "id": kind.replace(" ", "-"),
            "shortDescription": {"text": _meaning(kind)},
            "helpUri": _REPOSITORY + next(one.see for one in verdict.problems if one.kind == kind),
        }
        for kind in kinds
    ]
    results = [_result(one, verdict, kinds, file, places) for one in verdict.problems]
    driver = {
        "name": "kafka-rebalance",
        "version": VERSION,
        "informationUri": _REPOSITORY.removesuffix("/blob/main/"),
        "rules": rules,
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _meaning(kind: str) -> str:
    if kind in OVER_LIMIT:
        return OVER_LIMIT[kind]
    found = FINDINGS.get(kind)  # type: ignore[call-overload]
    rules = (rule.meaning for rule in RULES if rule.id == kind)
    return next(rules, "the input cannot be read") if found is None else str(found.meaning)


def _result(
    one: Problem, verdict: Verdict, kinds: list[str], file: str | None, places: Places
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": one.kind.replace(" ", "-"),
        "ruleIndex": kinds.index(one.kind),
        "level": _LEVELS[one.severity] if verdict.fails(one) else "note",
        "message": {"text": shown(f"{one.group_id}: {one.text}")},
        "partialFingerprints": {"groupAndKind/v1": f"{one.group_id}/{one.kind}"},
        "baselineState": "unchanged" if one.is_known else "new",
    }
    where: dict[str, Any] = {
        "logicalLocations": [{"name": shown(one.group_id), "kind": "consumer group"}]
    }
    place = _place(one, file, places)
    if place is not None:
        line = {"startLine": place[1]}
        where["physicalLocation"] = {"artifactLocation": {"uri": quote(place[0])}, "region": line}
    return {**result, "locations": [where]}
