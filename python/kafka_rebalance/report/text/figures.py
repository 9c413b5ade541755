# SPDX-License-Identifier: Apache-2.0
"""Makes and saves the figures of matplotlib.

matplotlib reads text between two `$` as mathematics: it would draw the group `Outer$Inner$1` as
OuterInner1, and fail on `x$^$y`. Names of Java's inner classes contain `$`, so all text of a figure
is drawn as it is.
"""

from pathlib import Path
from typing import IO, Any

from kafka_rebalance.errors import MissingExtra


def new_figure(part: str, **options: Any) -> Any:
    """Returns a figure. Errors: MissingExtra, which names the `part` that needs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(part, "report") from None
    return Figure(**options)


def save(figure: Any, target: Path | IO[str], *, settings: dict[str, Any] | None = None) -> None:
    """Writes a figure as a picture of 150 dots an inch, or to an open stream as SVG.

    `settings` are those of matplotlib (rcParams) for this picture.
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    # The setting holds for ticks that are made while saving, the loop for the text made before.
    with rc_context({"text.parse_math": False, **(settings or {})}):
        for text in figure.findobj(Text):
            text.set_parse_math(False)
        if isinstance(target, Path):
            figure.savefig(target, dpi=150, facecolor="white")
        else:
            figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
