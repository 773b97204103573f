"""A caps file for a reader: what it was made from, survival and cap by role, how its odds held on unseen sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agspec.captable import ENOUGH, Bin, CapFile, CapRow, Evaluation
from agspec.replay.report.frame import facts, figure, frame, table
from agspec.replay.report.rows import ABSENT, fixed, percent
from agspec.replay.report.shapes import Chart, Columns, Dot, Dots

POSITIONS = (1, 2, 4, 8, 16, 32)
"""Positions that the table tells; the plots show all."""
HEIGHT = 4
"""Lines of a plot in the terminal."""
MARGIN = 6
"""Columns left of it."""
BLOCKS = "\N{LOWER ONE EIGHTH BLOCK}\N{LOWER ONE QUARTER BLOCK}\N{LOWER THREE EIGHTHS BLOCK}\N{LOWER HALF BLOCK}\
\N{LOWER FIVE EIGHTHS BLOCK}\N{LOWER THREE QUARTERS BLOCK}\N{LOWER SEVEN EIGHTHS BLOCK}\N{FULL BLOCK}"
WIDEST = 104
"""Positions that a plot in the terminal has room for; of longer drafts it shows the first."""
BAR = 24
"""Columns of a bar that stands for 100%."""
JUDGED = 100
"""Tokens that a tenth must have for its gap to count."""
HOLDS = 0.1
"""Largest gap between foretold and right at which the odds are said to hold."""
SCALE = "Of the drafts that got to a position, the share accepted that far, never rising"


def caps_tables(file: CapFile) -> list[RenderableType]:
    """What ``file`` says, for a terminal, at most 120 columns wide."""
    parts: list[RenderableType] = [*map(Text, _made_from(file)), Text(), _grid(HEADS, _rows(file), 1)]
    parts.append(Text(f"{SCALE}; {ABSENT}: fewer than {ENOUGH} drafts got there."))
    plots = [plot for name, row in _named(file) if row.drafted for plot in _plot(name, row)]
    if plots:
        parts += [Text(), Text(f"Survival by position. \N{MIDDLE DOT}: fewer than {ENOUGH} drafts; ^: the cap"), *plots]
    parts += [Text(), *map(Text, _judged(file.evaluation))]
    if file.evaluation is not None:
        parts += [Text(), _reliability(file.evaluation)]
    return parts


def caps_page(file: CapFile, title: str) -> str:
    """The same as a page that loads nothing. Same file, same bytes."""
    charts = [_survival_chart(file)] if any(row.drafted for _, row in _named(file)) else []
    judged = _judged(file.evaluation)
    parts = ["<section>", '<h2 id="made">Caps and odds</h2>', *_paragraphs(_made_from(file))]
    parts.append(f"<figure><h3>Caps by role</h3>{table('Caps by role', HEADS, _rows(file), 1)}")
    parts.append(f'<p class="note">{escape(SCALE)}; {ABSENT}: fewer than {ENOUGH} drafts got there.</p></figure>')
    parts += [figure(chart, f"c{i}") for i, chart in enumerate(charts, 1)]
    if file.evaluation is None:
        parts.append(f"<figure><h3>Do the odds hold?</h3>{''.join(_paragraphs(judged))}</figure>")
    else:
        parts.append(figure(_reliability_chart(file.evaluation, " ".join(judged)), "r"))
    told = file.model_dump(mode="json", exclude={"odds", "roles", "default", "evaluation"}, exclude_none=True)
    told["traces"] = {trace.name: trace.sha256 for trace in file.traces}
    parts.append(facts("The file", told))
    return frame(title, "\n".join([*parts, "</section>"]))


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f"<p>{escape(line)}</p>" for line in lines]


def _made_from(file: CapFile) -> list[str]:
    name = f"{file.tokenizer_name} ({file.tokenizer})" if file.tokenizer_name else file.tokenizer
    facts = [f"Caps for tokenizer {name}"]
    facts += [f"{what} {value}" for what, value in (("tool wire", file.tool_wire), ("cost", file.cost)) if value]
    facts += [f"lookup {file.lookup}"] if file.lookup else []
    facts += [f"made on {file.date}"] if file.date else []
    lines = [", ".join(facts) + ("" if file.odds else ". It holds no odds: each tenant starts from the plain ones.")]
    for trace in file.traces:
        counts = f"{trace.num_sessions:,} sessions, {trace.num_calls:,} calls, {trace.num_tokens:,} output tokens"
        lines.append(f"  {trace.name}: {counts}, sha256 {trace.sha256[:16]}")
    return lines


def _named(file: CapFile) -> list[tuple[str, CapRow]]:
    return [*file.roles.items(), ("any other role", file.default)]


HEADS = ("role", "output tokens", "drafts", "cap", "mean accepted", *(f"at {n}" for n in POSITIONS))


def _rows(file: CapFile) -> list[list[str]]:
    rows = []
    for name, row in _named(file):
        drafts = row.drafted[0] if row.drafted else 0
        mean = sum(row.accepted) / drafts if drafts else None
        survival = [percent(_judged_share(row, n - 1)) for n in POSITIONS]
        rows.append([name, fixed(row.num_tokens, 0), fixed(drafts, 0), str(row.cap), fixed(mean, 2), *survival])
    return rows


def _judged_share(row: CapRow, k: int) -> float | None:
    return row.survival[k] if k < len(row.drafted) and row.drafted[k] >= ENOUGH else None


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], num_text: int) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for i, head in enumerate(heads):
        grid.add_column(head, justify="left" if i < num_text else "right")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _plot(name: str, row: CapRow) -> list[Text]:
    """Columns of blocks; the cap is marked under the axis."""
    shares, width = row.survival[:WIDEST], max(row.cap, len(row.drafted))
    lines = [Text(), Text(f"{name}: cap {row.cap}")]
    for level in range(HEIGHT - 1, -1, -1):
        cells = "".join(_cell(share, row.drafted[k] >= ENOUGH, level) for k, share in enumerate(shares))
        head = {HEIGHT - 1: "100%", HEIGHT // 2 - 1: "50%"}.get(level, "")
        lines.append(Text(f"{head:>{MARGIN - 2}} \N{BOX DRAWINGS LIGHT VERTICAL}{cells}"))
    axis = ["\N{BOX DRAWINGS LIGHT HORIZONTAL}"] * min(width, WIDEST)
    under = [" "] * (len(axis) + 4)
    for n in (1, *range(8, len(axis) + 1, 8)):
        under[n - 1 : n - 1 + len(str(n))] = str(n)
    if 0 < row.cap <= WIDEST:
        axis[row.cap - 1] = "^"
    lines.append(Text(f"{'0%':>{MARGIN - 2}} \N{BOX DRAWINGS LIGHT UP AND RIGHT}{''.join(axis)}"))
    lines.append(Text(" " * MARGIN + "".join(under).rstrip()))
    return lines


def _cell(share: float, enough: bool, level: int) -> str:
    eighths = round(share * HEIGHT * len(BLOCKS)) - level * len(BLOCKS)
    if enough:
        return BLOCKS[min(eighths, len(BLOCKS)) - 1] if eighths > 0 else " "
    return "\N{MIDDLE DOT}" if level == min(int(share * HEIGHT), HEIGHT - 1) else " "


@dataclass(frozen=True)
class Verdict:
    """Whether odds hold, in one sentence."""

    holds: bool | None
    sentence: str


def verdict(found: Evaluation) -> Verdict:
    """From the largest gap between foretold and right, over the tenths with enough tokens; None: too few tokens."""
    judged = [each for each in found.reliability if each.num_tokens >= JUDGED]
    if not judged:
        return Verdict(None, f"Too little to tell: no tenth of chance has {JUDGED} drafted tokens that were tested.")
    if found.brier >= found.brier_base:
        return Verdict(False, "The odds do not hold: they tell no more than the share that was right in all.")
    worst = max(judged, key=lambda each: abs(each.foretold - each.right))
    gap = abs(worst.foretold - worst.right)
    told = f"foretold and right lie at most {gap * 100:.0f} points apart ({percent(worst.foretold)} foretold, "
    told += f"{percent(worst.right)} right), over the tenths of chance with {JUDGED} tokens or more"
    return Verdict(gap <= HOLDS, f"The odds {'hold' if gap <= HOLDS else 'do not hold'}: {told}.")


def _judged(found: Evaluation | None) -> list[str]:
    if found is None:
        return ["Not evaluated on sessions held out."]
    number = sum(each.num_tokens for each in found.reliability)
    share = sum(each.num_tokens * each.right for each in found.reliability) / number
    return [
        f"On sessions not seen ({found.folds} parts, each tested by what the rest taught; {number:,} drafted tokens):",
        verdict(found).sentence,
        f"Brier score {found.brier:.3f} (0 is best); one chance for all, {percent(share)}: {found.brier_base:.3f}.",
    ]


def _cells(each: Bin) -> tuple[str, str, str]:
    return percent(each.foretold), percent(each.right), fixed(each.num_tokens, 0)


def _reliability(found: Evaluation) -> Table:
    grid = _grid(("foretold", "right", "tokens"), [], 0)
    grid.add_column("right; | foretold", justify="left")
    for each in found.reliability:
        bar = list("\N{FULL BLOCK}" * round(each.right * BAR) + " " * BAR)[: BAR + 1]
        bar[min(round(each.foretold * BAR), BAR)] = "|"
        grid.add_row(*map(Text, _cells(each)), Text("".join(bar)))
    return grid


def _survival_chart(file: CapFile) -> Chart:
    panels, cells = [], []
    for name, row in _named(file):
        if not row.drafted:
            continue
        mine = [
            (name, str(k + 1), fixed(d, 0), fixed(a, 0), percent(share))
            for k, (d, a, share) in enumerate(zip(row.drafted, row.accepted, row.survival, strict=True))
        ]
        panels.append(
            Columns(
                name,
                row.survival,
                tuple(f"position {n}: {share} of {d}" for _, n, d, _, share in mine),
                tuple("ours" if d >= ENOUGH else "base" for d in row.drafted),
                end=row.cap,
                end_text=f"cap {row.cap}",
            )
        )
        cells += mine
    return Chart(
        title="Survival by position",
        note=f"{SCALE}. Dashed: the cap, the longest draft of the role.",
        panels=tuple(panels),
        heads=("role", "position", "drafted", "accepted", "survival"),
        cells=tuple(cells),
        legend=(("ours", f"{ENOUGH} drafts or more"), ("base", "fewer: not judged")),
    )


def _reliability_chart(found: Evaluation, note: str) -> Chart:
    dots = [
        Dot(
            each.foretold,
            each.right,
            2 * (each.right * (1 - each.right) / each.num_tokens) ** 0.5,
            each.num_tokens,
            "{} foretold, {} right, {} tokens".format(*_cells(each)),
        )
        for each in found.reliability
    ]
    return Chart(
        title="Do the odds hold?",
        note=f"{note} A dot is a tenth of chance, its area the tokens; the line through it: two standard errors.",
        panels=(Dots("Right, against foretold", tuple(dots)),),
        heads=("foretold", "right", "tokens"),
        cells=tuple(_cells(each) for each in found.reliability),
        num_text=0,
    )
