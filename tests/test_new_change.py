# SPDX-License-Identifier: Apache-2.0
"""A new change is one class: this test follows the steps of CONTRIBUTING.md at run time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.plans.changes import change_from_text, text
from kafka_rebalance.plans.changes.change import Verb, some
from kafka_rebalance.plans.changes.edits import Edited, GroupEvent, find_member
from kafka_rebalance.plans.changes.made_up import MadeUp
from tests.support.contributing import check_steps, two_members

GROUP = two_members(4, "range")


@dataclass(frozen=True, slots=True)
class ForgetMember(kr.Change):
    """A member claims nothing any more, as if its process forgot its partitions."""

    member: str

    VERBS = (Verb("forget-member", "MEMBER", "this member owns nothing any more"),)

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        return cls(some(value))

    def __str__(self) -> str:
        return f"forget-member={self.member}"

    def events(self, group: kr.GroupSpec) -> list[GroupEvent]:
        forgetful = find_member(group, self.member)

        def edit(group: kr.GroupSpec, _: MadeUp) -> Edited:
            empty = replace(forgetful, owned_partitions=())
            members = tuple(empty if one is forgetful else one for one in group.members)
            return Edited(group.edited(members=members))

        return [GroupEvent(str(self), edit)]

    def renamed(self, ids: MadeUp) -> Self:
        return replace(self, member=ids.alias(self.member))


@pytest.fixture
def _line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHANGES", (*text.CHANGES, ForgetMember))


@pytest.mark.usefixtures("_line")
def test_a_class_and_its_line_are_enough_for_texts_and_plans() -> None:
    assert change_from_text("forget-member=a") == ForgetMember("a")
    planned = kr.plan(GROUP.owning(kr.assign(GROUP)), None, ["forget-member=a", "add-members=1"])
    assert [str(change) for change in planned.changes] == ["forget-member=a", "add-members=1"]
    assert planned.settled
    assert planned.rounds[0].moves == 2
    assert planned.sample(4).draws == 4
    with pytest.raises(kr.NotAffected, match=r'^changes\[0\]: .*"c"'):
        kr.plan(GROUP, None, [ForgetMember("c")])
    with pytest.raises(kr.GroupError, match="a value is missing"):
        change_from_text("forget-member")


@pytest.mark.usefixtures("_line")
def test_a_class_and_its_line_are_enough_for_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert "this member owns nothing any more" in " ".join(capsys.readouterr().out.split())
    group = tmp_path / "group.jsonl"
    group.write_text(GROUP.to_json(), encoding="utf-8")
    assert main(["plan", str(group), "--forget-member", "a", "--samples", "0"]) == 0
    assert capsys.readouterr().out.startswith("Forget-member=a ")


def test_no_verb_is_used_twice_and_every_help_text_is_one_line() -> None:
    verbs = [verb for change in text.CHANGES for verb in change.VERBS]
    assert len({verb.name for verb in verbs}) == len(verbs)
    wrong = [one.help for one in verbs if len(one.help) > 160 or one.help.endswith(".")]
    assert [*wrong, *(one.help for one in verbs if "\n" in one.help)] == []


def test_every_change_of_the_tuple_is_a_public_name() -> None:
    public = {name for name in kr.__all__ if isinstance(getattr(kr, name), type)}
    assert {change.__name__ for change in text.CHANGES} <= public


def test_the_steps_name_only_what_is_there() -> None:
    check_steps("Add a change", steps=5, files=8)
