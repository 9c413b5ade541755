# SPDX-License-Identifier: Apache-2.0
"""Formats a verdict as text, as SARIF, and as commands that GitHub's runner reads.

Names of groups come from strangers. A runner takes `::name` at the start of a line, and `##[name]`
anywhere in a line, as a command to itself, so the text must contain neither.

Source   SARIF 2.1.0 (OASIS); GitHub, "Workflow commands for GitHub Actions" (escapes of data and of
         properties: actions/toolkit, command.ts).
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from kafka_rebalance._core import VERSION
from kafka_rebalance.errors import shown
from kafka_rebalance.notes.findings import Severity

from .verdict import KINDS, Problem, Verdict

_REPOSITORY = "https://github.com/kafka-rebalance/kafka-rebalance"
_PAGES = f"{_REPOSITORY}/blob/main/"
# Severity -> the level in SARIF, and the command for GitHub's runner.
_LEVELS: dict[Severity, tuple[str, str]] = {
    "error": ("error", "error"), "warning": ("warning", "warning"), "info": ("note", "notice"),
}  # fmt: skip


def text_lines(verdict: Verdict) -> Iterator[str]:
    """Yields the verdict, then a line for each problem, group by group; groups with problems that
    fail the check come first.
    """
    yield verdict.summary
    if verdict.problems:
        yield ""
    ranked = sorted(verdict.problems, key=verdict.fails, reverse=True)
    order = list(dict.fromkeys(one.group_id for one in ranked))
    for one in sorted(ranked, key=lambda one: order.index(one.group_id)):
        mark = "FAILS" if verdict.fails(one) else "known" if one.is_known else "noted"
        yield harmless(f"{mark}  {one.severity:7}  {one.group_id}: {one.kind}: {one.text}")


def harmless(text: str) -> str:
    r"""Returns a line that no pipeline's runner takes for a command.

    >>> print(harmless("a ##[error] b"), harmless("::debug::x"))
    a \u0023#[error] b \u003a:debug::x
    """
    line = shown(text).replace("##[", "\\u0023#[")
    return f"\\u003a{line[1:]}" if line.lstrip().startswith("::") else line


def github_lines(verdict: Verdict) -> Iterator[str]:
    """Yields the verdict, then a command for each problem outside the baseline, with the problem's
    file and line, if any; a problem that does not fail the check is a notice.
    """
    yield harmless(verdict.summary)
    for one in verdict.problems:
        if one.is_known:
            continue
        command = _LEVELS[one.severity][1] if verdict.fails(one) else "notice"
        place = {} if one.file is None else {"file": one.file, "line": str(one.line or 1)}
        properties = {**place, "title": f"{one.group_id}: {one.kind}"}
        named = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
        yield f"::{command} {named}::{_escaped(f'{one.text} ({_PAGES}{one.see})')}"


def _escaped(value: str, more: str = "") -> str:
    text = shown(value).replace("##[", "\\u0023#[")
    for one in f"%\r\n{more}":
        text = text.replace(one, f"%{ord(one):02X}")
    return text


def sarif(verdict: Verdict) -> dict[str, Any]:
    """Returns a SARIF log with one run and a rule for each kind of problem that was found."""
    pages = {one.kind: one.see for one in reversed(verdict.problems)}
    kinds = list(dict.fromkeys(one.kind for one in verdict.problems))
    rules = [
        {
            "id": kind.replace(" ", "-"),
            "shortDescription": {"text": KINDS[kind].meaning},
            "helpUri": _PAGES + pages[kind],
        }
        for kind in kinds
    ]
    results = [_result(one, verdict, kinds) for one in verdict.problems]
    driver = {"name": "kafka-rebalance", "version": VERSION, "informationUri": _REPOSITORY}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {**driver, "rules": rules}}, "results": results}],
    }


def _result(one: Problem, verdict: Verdict, kinds: list[str]) -> dict[str, Any]:
    where: dict[str, Any] = {
        "logicalLocations": [{"name": shown(one.group_id), "kind": "consumer group"}]
    }
    if one.file is not None:
        line = {"startLine": one.line or 1}
        where["physicalLocation"] = {"artifactLocation": {"uri": quote(one.file)}, "region": line}
    return {
        "ruleId": one.kind.replace(" ", "-"),
        "ruleIndex": kinds.index(one.kind),
        "level": _LEVELS[one.severity][0] if verdict.fails(one) else "note",
        "message": {"text": shown(f"{one.group_id}: {one.text}")},
        "partialFingerprints": {"groupAndKind/v1": f"{one.group_id}/{one.kind}"},
        "baselineState": "unchanged" if one.is_known else "new",
        "locations": [where],
    }
