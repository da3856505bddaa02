"""`film`: frames of a terminal as one SVG that moves by its style; without, it shows the last frame."""

from __future__ import annotations

import html
from collections.abc import Sequence

from bench.sessions.recording import Frame, Line
from lftj.pictures.drawing import FACE

SIZE, WIDTH, HEIGHT = 14, 8.43, 19
"""Of letters, in pixels: their size, and how far they and lines are apart."""

MARGIN = 12
LAST = 6.0
"""Seconds that the end stands before all begins anew."""

PAPER, EDGE, INK = "#1c2128", "#444c56", "#d5dbe3"
COLOURS = {
    "magenta": "#d2a8ff",
    "cyan": "#79c0ff",
    "green": "#7ee787",
    "red": "#ff7b72",
    "brown": "#e3b341",
    "blue": "#79c0ff",
}
"""By the terminal's names; others are as what has none."""


def film(frames: Sequence[Frame], title: str) -> str:
    """The document; ``title`` says what is seen to those who can't see it.

    Each line of text stands once for each place and look, and is visible while frames have it.
    """
    times = [0.0]
    for frame in frames:
        times.append(times[-1] + frame.seconds)
    whole = times[-1] + LAST
    seen: dict[tuple[int, Line], list[tuple[int, int]]] = {}
    for number, frame in enumerate(frames):
        for place, line in enumerate(frame.lines):
            intervals = seen.setdefault((place, line), [])
            if intervals and intervals[-1][1] == number:
                intervals[-1] = (intervals[-1][0], number + 1)
            else:
                intervals.append((number, number + 1))
    rules, texts = _Rules(times, whole, len(frames)), []
    for (place, line), intervals in seen.items():
        if line:
            y = MARGIN + (place + 1) * HEIGHT - 5
            texts.append(f'<text y="{y}"{rules.of(intervals)}>{_shown(line)}</text>')
    longest = max(sum(len(span.text) for span in line) for _, line in seen)
    width = round((longest + 1) * WIDTH) + 2 * MARGIN
    height = max(len(frame.lines) for frame in frames) * HEIGHT + 2 * MARGIN
    look = "".join(f".{name}{{fill:{colour}}}" for name, colour in COLOURS.items())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            f"<title>{html.escape(title, quote=False)}</title>",
            f"<style>text{{font:{SIZE}px {FACE};fill:{INK};white-space:pre}}{look}.b{{font-weight:bold}}",
            f".o{{visibility:hidden}}@media not (prefers-reduced-motion){{{rules.text}}}</style>",
            f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}" stroke="{EDGE}"/>',
            f'<g transform="translate({MARGIN})">',
            *texts,
            "</g></svg>\n",
        ]
    )


class _Rules:
    """A rule of style for each way in which lines come and go."""

    def __init__(self, times: Sequence[float], whole: float, n_frames: int) -> None:
        self._times, self._whole, self._n_frames = times, whole, n_frames
        self._names: dict[tuple[tuple[int, int], ...], str] = {}
        self.text = ""

    def of(self, intervals: Sequence[tuple[int, int]]) -> str:
        """The attribute of a line that is visible in these intervals of frames."""
        key = tuple(intervals)
        is_last = key[-1][1] == self._n_frames
        if key == ((0, self._n_frames),):
            return ""
        if key not in self._names:
            name = self._names[key] = f"k{len(self._names)}"
            steps = "0%{visibility:hidden}" if key[0][0] else ""
            for begin, end in key:
                steps += f"{self._part(begin)}{{visibility:visible}}"
                steps += f"{self._part(end)}{{visibility:hidden}}" if end < self._n_frames else ""
            self.text += f"@keyframes {name}{{{steps}}}"
            self.text += f".{name}{{animation:{name} {self._whole:.1f}s step-end infinite}}"
        return f' class="{self._names[key]}{"" if is_last else " o"}"'

    def _part(self, frame: int) -> str:
        return f"{100 * self._times[frame] / self._whole:.2f}%".replace(".00%", "%")


def _shown(line: Line) -> str:
    parts = []
    for text, colour, is_bold in line:
        look = " ".join([colour] * (colour in COLOURS) + ["b"] * is_bold)
        shown = html.escape(text, quote=False)
        parts.append(f'<tspan class="{look}">{shown}</tspan>' if look else shown)
    return "".join(parts)
