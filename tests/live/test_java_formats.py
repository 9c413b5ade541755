# SPDX-License-Identifier: Apache-2.0
"""Our readers of properties files and JAAS entries agree with Java's and Kafka's own classes."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance import ClusterError
from kafka_rebalance.live.java_properties import parse_jaas, parse_properties
from tests.support.broker import LIB, missing_tools

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live


JUDGE = """
import java.io.*; import java.util.*;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
public class Judge {
  static String hex(Object text) throws IOException {
    return HexFormat.of().formatHex(text.toString().getBytes("UTF-8"));
  }
  public static void main(String[] none) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
    for (String line; (line = in.readLine()) != null; ) {
      byte[] bytes = HexFormat.of().parseHex(line.substring(2));
      StringBuilder out = new StringBuilder("+");
      try {
        Map<?, ?> found;
        if (line.charAt(0) == 'P') {
          Properties properties = new Properties();
          properties.load(new ByteArrayInputStream(bytes));
          found = properties;
        } else {
          Password text = new Password(new String(bytes, "UTF-8"));
          var entry = JaasContext.loadClientContext(Map.of("sasl.jaas.config", text))
              .configurationEntries().get(0);
          out.append(' ').append(hex(entry.getLoginModuleName())).append("=module");
          found = entry.getOptions();
        }
        for (var one : found.entrySet())
          out.append(' ').append(hex(one.getKey())).append('=').append(hex(one.getValue()));
      } catch (RuntimeException error) { out = new StringBuilder("-"); }
      System.out.println(out);
    }
  }
}
"""
PIECES = {
    "P": [
        *("a", "b.c", "=", ":", " ", "\\", "\\\n  ", "\n", "\r\n", "#", "!", "\t", "ä", "\\u00e4"),
        *("\\n", "x y", "\\\\", "\f"),
    ],
    "J": [
        *(
            "a.B",
            "required",
            " ",
            "=",
            ";",
            '"',
            '"v w"',
            "'q'",
            'k="v"',
            "\\",
            '\\"',
            "//c",
            "/*c*/",
        ),
        *("\n", "$_-", "ä", '"\\t\\x"', "u1"),
    ],
}


def test_the_formats_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """For random texts, we return what java.util.Properties or Kafka's JaasContext returns."""
    if missing := missing_tools():
        pytest.skip(missing)
    rng = random.Random(18)
    cases = [
        (kind, "".join(rng.choices(PIECES[kind], k=rng.randint(1, 12))))
        for kind in "PJ"
        for _ in range(1500)
    ]
    cases += [("J", _entry(rng)) for _ in range(1500)]
    judge = tmp_path / "Judge.java"
    judge.write_text(JUDGE)
    given = "\n".join(
        f"{kind} {text.encode('latin-1' if kind == 'P' else 'utf-8').hex()}" for kind, text in cases
    )
    command = ["java", "-cp", f"{LIB}/*", str(judge)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(cases)
    read = 0
    for (kind, text), line in zip(cases, lines, strict=True):
        theirs = _judged(line)
        ours = parse_properties(text) if kind == "P" else _parsed(text) or {}
        if theirs is None:
            continue  # Java refuses this text, so it is not compared
        if kind == "P":  # Kafka strips the values after reading them
            theirs = {key: value.strip() for key, value in theirs.items()}
            theirs.pop("", None)  # a setting without a name sets nothing
            ours.pop("", None)
        read += kind == "J"
        assert ours == theirs, (kind, text)
    assert read > 1000


def _entry(rng: random.Random) -> str:
    """Returns an entry whose values may contain quotes, comments and escapes."""

    def value() -> str:
        quote = rng.choice("\"'")
        inner = ("a", " ", ";", "=", "//", "/*", "\\\\", "\\" + quote, "\\n", "ä", "&$", "1.5")
        return quote + "".join(rng.choices(inner, k=rng.randint(0, 6))) + quote

    gaps = ("", " ", "\n", "/*x=;*/", " //y\n")
    text = "a.b.C$D" + rng.choice((" ", "\n", "/**/")) + "required "
    for n in range(rng.randint(0, 3)):
        text += rng.choice(gaps).join((f" k_{n}", "=", rng.choice((value(), "word", "o.p-q"))))
    return text + rng.choice(gaps) + ";"


def _judged(line: str) -> dict[str, str] | None:
    if line == "-":
        return None
    pairs = (one.partition("=") for one in line.split()[1:])

    def text(one: str) -> str:
        return one if one == "module" else bytes.fromhex(one).decode()

    return {text(key): text(value) for key, _, value in pairs}


def _parsed(text: str) -> dict[str, str] | None:
    try:
        entry = parse_jaas(text)
    except ClusterError:
        return None
    return {entry.module: "module", **entry.options}
