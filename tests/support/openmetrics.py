"""OpenMetrics text, read by the rules of the format."""

from __future__ import annotations

import re

_LABEL = r'\w+="((?:[^"\\\n]|\\[\\n"])*)"'
_LABELS = re.compile(_LABEL)
SAMPLE = re.compile(rf"(\w+)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (\S+)")


def openmetrics_samples(text: str) -> dict[tuple[str, str], float]:
    """The samples of a text, by name and label, or labels with commas between."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    samples: dict[tuple[str, str], float] = {}
    kinds: dict[str, str] = {}
    last = ""
    for line in lines[:-2]:
        if line.startswith("# "):
            keyword, name, rest = line[2:].split(" ", 2)
            assert keyword in ("TYPE", "UNIT", "HELP")
            assert (keyword == "TYPE") == (name != last), "the lines of one metric stand together"
            if keyword == "TYPE":
                assert name not in kinds
                kinds[name], last = rest, name
            assert keyword != "UNIT" or name.endswith(f"_{rest}")
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        assert match[1] == (f"{last}_total" if kinds[last] == "counter" else last)
        key = match[1], ",".join(_LABELS.findall(match[2] or ""))
        assert key not in samples
        samples[key] = float(match[5])
    return samples
