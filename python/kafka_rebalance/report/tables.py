"""Tables for people, of at most 100 columns."""

from collections.abc import Sequence

from kafka_rebalance.errors import MissingExtra


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; all columns but the first are right-aligned."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        raise MissingExtra("a table", "report") from None
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    console.width = min(100, console.width if console.is_terminal else 100)
    console.print(table)
