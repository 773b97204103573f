"""Charts as inline SVG. Lengths along x are percentages, so a chart fits any width and its text keeps its size."""

from __future__ import annotations

from html import escape

from agspec.replay.report.shapes import Bar, Bars, Columns, Dots

ROW = 40
"""Pixels a bar takes with the words above it."""
THIN, THICK = 12, 20
"""Height of a bar; with words on it."""
LABEL_LENGTH = 34
"""Characters of a label that fit on a phone beside the value; the table behind the chart has all."""

PLOT_TOP, PLOT_BOTTOM, PLOT_LEFT, PLOT_RIGHT = 10, 118, 13.0, 98.0
"""The frame of a column chart: pixels from the top, percent from the left."""
SQUARE_BOTTOM = 260
"""Where the frame of a dot chart ends: pixels from the top."""
LEAST_RADIUS, MOST_RADIUS = 3.0, 9.0
FEWEST_SLOTS = 8
STEPS = (1, 2, 5, 10, 20, 50, 100)


def bars_svg(panel: Bars, *, name: str, title: str) -> str:
    """Horizontal bars; ``name``: prefix of the ids, unique in the page."""
    said = "; ".join(f"{bar.label}: {bar.shown}{_said(bar)}" for bar in panel.bars)
    body = "".join(_bar(bar, i * ROW, panel) for i, bar in enumerate(panel.bars))
    return _svg(name, title, said, len(panel.bars) * ROW + 4, body)


def _said(bar: Bar) -> str:
    return f" ({', '.join(part.hint for part in bar.parts)})" if len(bar.parts) > 1 else ""


def _bar(bar: Bar, y: int, panel: Bars) -> str:
    label = bar.label if len(bar.label) <= LABEL_LENGTH else bar.label[: LABEL_LENGTH - 1] + "\N{HORIZONTAL ELLIPSIS}"
    height = THICK if any(part.text for part in bar.parts) else THIN
    top = y + 20
    out = [
        f'<text x="0" y="{y + 14}">{escape(label)}</text>',
        f'<text class="value" x="100%" y="{y + 14}">{escape(bar.shown)}</text>',
        f'<rect class="track" x="0" y="{top}" width="100%" height="{height}"/>',
    ]
    x = 0.0
    for part in bar.parts:
        length = part.length / panel.top * 100
        out.append(
            f'<rect class="{part.style}" x="{x:.2f}%" y="{top}" width="{length:.2f}%" height="{height}">'
            f"<title>{escape(part.hint)}</title></rect>"
        )
        if x:
            out.append(f'<line class="gap" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top}" y2="{top + height}"/>')
        if part.text:
            out.append(
                f'<text class="on {part.style}-ink" x="{x + length / 2:.2f}%" y="{top + 14}">{escape(part.text)}</text>'
            )
        x += length
    if panel.mark is not None and panel.mark != bar.parts[0].length:
        at = f"{min(panel.mark / panel.top * 100, 100):.2f}%"
        out.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{top - 3}" y2="{top + height + 3}"/>')
    if bar.interval:
        low, high = (f"{value / panel.top * 100:.2f}%" for value in bar.interval)
        middle = top + height // 2
        for style in ("halo", "whisker"):
            out.append(f'<line class="{style}" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>')
            out += [
                f'<line class="{style}" x1="{end}" x2="{end}" y1="{middle - 4}" y2="{middle + 4}"/>'
                for end in (low, high)
            ]
    return "".join(out)


def columns_svg(panel: Columns, *, slots: int, name: str, title: str) -> str:
    """Columns by position, from 0 to 100%; ``slots``: positions the x axis has room for."""
    slots = max(slots, FEWEST_SLOTS)
    width = (PLOT_RIGHT - PLOT_LEFT) / slots
    height = PLOT_BOTTOM - PLOT_TOP
    out = [_grid(PLOT_BOTTOM)]
    for i, (share_at, hint, style) in enumerate(zip(panel.shares, panel.hints, panel.styles, strict=True)):
        if share_at is not None:
            out.append(
                f'<rect class="{style}" x="{PLOT_LEFT + (i + 0.1) * width:.2f}%" width="{0.8 * width:.2f}%"'
                f' y="{PLOT_BOTTOM - share_at * height:.1f}" height="{share_at * height:.1f}">'
                f"<title>{escape(hint)}</title></rect>"
            )
    if panel.end is not None:
        at = PLOT_LEFT + panel.end * width
        out.append(f'<line class="mark" x1="{at:.2f}%" x2="{at:.2f}%" y1="0" y2="{PLOT_BOTTOM + 3}"/>')
        side, away = ("end", -1) if panel.end > slots / 2 else ("start", 1)
        out.append(f'<text class="tick {side}" x="{at + away:.2f}%" y="{PLOT_TOP - 2}">{escape(panel.end_text)}</text>')
    step = next((step for step in STEPS if slots / step <= 8), STEPS[-1])
    for position in (1, *range(max(step, 2), slots + 1, step)):
        at = PLOT_LEFT + (position - 0.5) * width
        out.append(f'<text class="tick middle" x="{at:.2f}%" y="{PLOT_BOTTOM + 16}">{position}</text>')
    said = "; ".join(panel.hints[:10]) + (f"; and {len(panel.hints) - 10} more positions" if panel.hints[10:] else "")
    return _svg(name, title, said, PLOT_BOTTOM + 24, "".join(out))


def dots_svg(panel: Dots, *, name: str, title: str) -> str:
    """Dots from 0 to 100% both ways, the diagonal dashed, each with its error; a dot's area is its weight."""
    out = [_grid(SQUARE_BOTTOM)]
    for share in (0.0, 0.5, 1.0):
        style = "end" if share == 1 else "middle"
        out.append(f'<text class="tick {style}" x="{_x(share):.2f}%" y="{SQUARE_BOTTOM + 16}">{share:.0%}</text>')
    out.append(f'<text class="tick middle" x="{_x(0.25):.2f}%" y="{SQUARE_BOTTOM + 16}">foretold</text>')
    out.append(f'<line class="mark" x1="{_x(0):.2f}%" x2="{_x(1):.2f}%" y1="{SQUARE_BOTTOM}" y2="{PLOT_TOP}"/>')
    most = max((dot.weight for dot in panel.dots), default=1.0)
    for dot in panel.dots:
        x, ends = _x(dot.x), (min(1.0, dot.y + dot.error), max(0.0, dot.y - dot.error))
        high, y, low = (SQUARE_BOTTOM - share * (SQUARE_BOTTOM - PLOT_TOP) for share in (ends[0], dot.y, ends[1]))
        out.append(f'<line class="whisker" x1="{x:.2f}%" x2="{x:.2f}%" y1="{high:.1f}" y2="{low:.1f}"/>')
        radius = max(LEAST_RADIUS, MOST_RADIUS * (dot.weight / most) ** 0.5)
        out.append(f'<circle class="ours" cx="{x:.2f}%" cy="{y:.1f}" r="{radius:.1f}">')
        out.append(f"<title>{escape(dot.hint)}</title></circle>")
    return _svg(name, title, "; ".join(dot.hint for dot in panel.dots), SQUARE_BOTTOM + 24, "".join(out))


def _x(share: float) -> float:
    return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT)


def _grid(bottom: int) -> str:
    """Lines at 0, 50 and 100% of a plot that ends at ``bottom`` pixels."""
    out = []
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (bottom - PLOT_TOP)
        out.append(f'<line class="grid" x1="{PLOT_LEFT}%" x2="{PLOT_RIGHT}%" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text class="tick end" x="{PLOT_LEFT - 2}%" y="{y + 4:.1f}">{share:.0%}</text>')
    return "".join(out)


def _svg(name: str, title: str, said: str, height: int, body: str) -> str:
    return (
        f'<svg role="img" aria-labelledby="{name}-title {name}-desc" width="100%" height="{height}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(said)}</desc>{body}</svg>'
    )
