"""Numbers and tables in Markdown."""

from __future__ import annotations


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table with aligned columns."""
    cells = [heads, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("| " + " | ".join(padded) + " |")
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Three significant digits, thousands separated, no exponent.

    >>> number(20e6), number(0.6666), number(None)
    ('20,000,000', '0.667', '')
    """
    if value is None:
        return ""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:#.3g}"
    return f"{value:.7f}".rstrip("0") if "e" in text else text.rstrip(".")


def mebibytes(value: int | None) -> str:
    """Whole mebibytes.

    >>> mebibytes(5 << 20)
    '5'
    """
    return "" if value is None else f"{value / 2**20:,.0f}"
