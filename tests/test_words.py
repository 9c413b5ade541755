# SPDX-License-Identifier: Apache-2.0
"""The command accepts its own output: names, examples, completions."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance import GroupError, GroupSpec, Member, Topic
from kafka_rebalance.cli import main
from kafka_rebalance.cli.parser import COMMANDS, EXAMPLES
from kafka_rebalance.cli.parser import parser as make_parser
from kafka_rebalance.errors import did_you_mean

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

SAMPLE = Path(__file__).parent.parent / "python/kafka_rebalance/data/captured_groups.jsonl"
UUID = "b72c1c9e-0000-4000-8000-000000000001"
MEMBERS = (f"payments-app-0-{UUID}", f"payments-app-1-{UUID}", "by-hand")


def group(*member_ids: str) -> GroupSpec:
    return GroupSpec(
        group_id="g",
        assignor="range",
        topics=(Topic("t", 4),),
        members=tuple(Member(member_id, topics=("t",)) for member_id in member_ids),
    )


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("payments-app-0-b72c", 0),
        ("payments-app-1-b72c1c9e", 1),
        (MEMBERS[1], 1),
        ("by-hand", 2),
    ],
)
def test_the_short_names_of_reports_are_accepted(name: str, gone: int, engine: Engine) -> None:
    line = [f"--remove-member={name}", "--engine", engine]
    left = planned(group(*MEMBERS), *line)
    assert sorted(left) == sorted(set(MEMBERS) - {MEMBERS[gone]})


def planned(of: GroupSpec, *arguments: str) -> list[str]:
    """Returns the members after the changes, as planned by the command."""
    ran = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", "plan", "-", "--json", *arguments],
        input=json.dumps(of.to_dict()), capture_output=True, text=True,
    )  # fmt: skip
    answer = json.loads(ran.stdout)
    if "error" in answer:
        raise GroupError("change", answer["error"])
    return list(answer["assignment"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("payments-app-0-b72", "no member has the member_id or group_instance_id"),
        ("payments-app-0", "no member has"),
        ("by-han", "no member has"),
        ("twin-b72c", "is short for 2 members; give a whole member_id"),
    ],
)
def test_other_beginnings_name_nobody(name: str, problem: str, engine: Engine) -> None:
    twins = (f"twin-{UUID}", f"twin-{UUID[:-1]}2")
    with pytest.raises(GroupError, match=problem):
        planned(group(*MEMBERS, *twins), f"--remove-member={name}", "--engine", engine)


def test_every_command_has_examples_that_parse(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(EXAMPLES) == list(COMMANDS)
    for name, examples in EXAMPLES.items():
        for example in examples:
            words = shlex.split(example.partition(" > ")[0])
            assert words[0] == name
            args = make_parser(words).parse_args(words)
            assert callable(args.run)
        with pytest.raises(SystemExit):
            main([name, "--help"])
        shown = capsys.readouterr().out
        assert all(f"  kafka-rebalance {example}\n" in shown for example in examples)


def test_explain_is_plan_explain(capsys: pytest.CaptureFixture[str]) -> None:
    options = [str(SAMPLE), "--group", "chat-moderation", "--add-members", "1"]
    assert main(["explain", "chat-3", *options]) == 0
    explained = capsys.readouterr().out
    assert main(["plan", *options, "--explain", "chat-3"]) == 0
    assert explained == capsys.readouterr().out
    assert "chat-moderation" in explained


def test_a_file_may_stand_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--group", "chat-moderation", "--add-members", "1"]
    shown = set()
    for words in (
        ["chat-3", str(SAMPLE), *options],
        ["chat-3", *options, str(SAMPLE)],
        [*options, "chat-3", str(SAMPLE)],
        [*options[:2], "chat-3", *options[2:], str(SAMPLE)],
    ):
        assert main(["explain", *words]) == 0
        shown.add(capsys.readouterr().out)
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plan", "a", "b"], "kafka-rebalance plan: error: unrecognized arguments: b"),
        (["plan", "a", "--restart"], "arguments: --restart; did you mean --bounce-members?"),
        (["simulate", "--rolling-restart=x"], "did you mean --bounce-members?"),
        (["serve", "--restart"], "serve: error: unrecognized arguments: --restart\n"),
        (["fleet", "assign", "a", "b", "--asignor"], "kafka-rebalance fleet assign: error: unrec"),
        (["explain", str(SAMPLE), "chat-3"], f"comes first: explain chat-3 {SAMPLE}"),
        (["explain", "chat-3", "/none/x"], "kafka-rebalance: /none/x: No such file or directory"),
    ],
)
def test_wrong_words_are_named_by_their_command(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        main(words)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["kafka-rebalance", "pl"], ["plan"]),
        (["kafka-rebalance", "plan", "--boot"], ["--bootstrap-server"]),
        (["kafka-rebalance", "fleet", "su"], ["summary"]),
        (["kafka-rebalance", "assign", "--boot"], []),
    ],
)
def test_bash_completes(words: list[str], offered: list[str]) -> None:
    typed = " ".join(map(shlex.quote, words))
    script = (
        f"{completion('bash')}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}\n"
        '_kafka_rebalance; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == offered


def completion(shell: str) -> str:
    command = [sys.executable, "-m", "kafka_rebalance", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_zsh_and_fish() -> None:
    assert completion("zsh") == f"autoload -U +X bashcompinit && bashcompinit\n{completion('bash')}"
    fish = completion("fish")
    assert "complete -c kafka-rebalance -n __fish_use_subcommand -f -a plan -d 'predict " in fish
    assert "'__fish_seen_subcommand_from plan' -l bootstrap-server\n" in fish


def options_of(command: str) -> set[str]:
    """Returns the options of a command and of its subcommands, as its parser has them."""
    found: set[str] = set()
    parsers = [commands_of(make_parser([command]))[command]]
    while parsers:
        one = parsers.pop()
        found |= {option for action in one._actions for option in action.option_strings}
        parsers += commands_of(one).values()
    return found


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


LIVE = [command for command in COMMANDS if "--bootstrap-server" in options_of(command)]


def test_commands_that_read_a_cluster_take_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {"snapshot", "describe", "plan", "compare", "explain", "simulate"} <= {*LIVE}
    missing = str(tmp_path / "none.properties")
    manifest = tmp_path / "app.yaml"
    pod = "{spec: {containers: [{name: app}]}}"
    manifest.write_text(f"{{kind: Deployment, metadata: {{name: app}}, spec: {{template: {pod}}}}}")
    first = {"explain": ["t-0"], "rollout": [str(manifest)]}
    for command in LIVE:
        assert options_of(command) >= {"--command-config", "--timeout"}, command
        words = [command, *first.get(command, [])]
        words += ["--group", "g"] if "--group" in options_of(command) else []
        words += ["--bootstrap-server", "127.0.0.1:1", "--command-config", missing]
        assert main(words) != 0
        assert missing in capsys.readouterr().err, command
    assert options_of("connect") >= {"--url", "--command-config", "--timeout"}


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("pln", "FILE"), "plan"),
        (("plan", "FILE", "--assigner", "range"), "--assignor"),
        (("plan", "FILE", "--assignor", "stiky"), "sticky"),
        (("plan", "FILE", "--switch-assignor", "stiky"), "sticky"),
        (("plan", "FILE", "--group", "paymnts"), "payments"),
        (("plan", "FILE", "--group", "payments", "--partitions", "paymnts=31"), "payments"),
        (
            ("plan", "FILE", "--group", "payments", "--remove-member", "payments-pod7"),
            "payments-pod-7",
        ),
        (("explain", "refnds-0", "FILE", "--group", "payments"), "refunds"),
        (("describe", "FILE", "--only", "unevn"), "uneven"),
        (("check", "FILE", "--fail-on", "unevn"), "uneven"),
        (("fleet", "asign", "FILE"), "assign"),
        (("simulate", "roling-bounce"), "rolling-bounce"),
        (("simulate", "scale-out", "--compare", "eagr"), "eager"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(
    arguments: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        assert main([str(SAMPLE) if one == "FILE" else one for one in arguments]) != 0
    assert f"; did you mean {meant}?" in " ".join(capsys.readouterr().err.split())


def test_a_suggestion_from_a_stranger_is_escaped() -> None:
    assert did_you_mean("payments", ["paym\x1bents"]) == "; did you mean paym\\u001bents?"
    assert did_you_mean("payments", ["orders"]) == ""
