# SPDX-License-Identifier: Apache-2.0
"""Reads the documents of a YAML text one by one; the documents before a bad one are still read."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from kafka_rebalance.errors import GroupError, MissingExtra

_END = object()


def yaml_documents(text: str, what: str) -> Iterator[tuple[str, Any]]:
    """Yields each document that is not empty, with its path, such as `documents[1]`.

    For a document that is not YAML, a GroupError is yielded, as the last one. Errors: MissingExtra
    without PyYAML, with `what` in its text.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtra(what, "rollout") from None
    each = yaml.safe_load_all(text)
    for path in (f"documents[{number}]" for number in count()):
        try:
            one = next(each, _END)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            why, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
            line = "" if mark is None else f" at line {mark.line + 1}"
            chart = "; a chart must be rendered first" * ("{{" in text)
            problem = f"is not YAML{line}: {why or 'a value that YAML does not allow'}{chart}"
            yield path, GroupError(path, problem)
            return
        if one is _END:
            return
        if one is not None:
            yield path, one
