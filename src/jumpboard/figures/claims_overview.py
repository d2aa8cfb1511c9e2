"""Figure `claims_overview`: every claim on every net at a glance: its verdict, and on which side its estimate lies.

    position(v) = distance of v from the nearest end of the supporting range / half the width of the 90 % interval

positive inside the range. One unit is half an interval, whatever the statistic's own unit. An interval wholly right
of 0 speaks for the claim, whatever sign that asks of the statistic. One line per claim, net and sample size: the
final nets on the test split, with the verdicts at other checkpoints and on other splits as small symbols. A verdict
asks for more than its main estimate: see the table `claims`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, NOT_EVALUATED, SUPPORTED
from jumpboard.claims.lines import estimate_of, grouped, net_of, size_of
from jumpboard.figures.expanded import BLUE, VERMILION
from jumpboard.figures.style import GREY, PAGE, SMALLEST_TEXT, Colour, new_figure, styled
from jumpboard.schemas.keys import ARCH, CHECKPOINT, DATASET, SPLIT

Row = Mapping[str, Any]

VERDICTS: dict[str, tuple[str, Colour]] = {
    SUPPORTED: ("o", BLUE),
    CONTRADICTED: ("X", VERMILION),
    INCONCLUSIVE: ("D", GREY),
    NOT_EVALUATED: ("_", (0.65, 0.65, 0.65, 1.0)),
}
LETTERS = 6.5
EDGE = 5.0  # half-widths shown on either side
LINE, ABOVE, BELOW = 0.16, 0.52, 0.65  # inches: from one line to the next, above the first, below the last
CLAIM, VERDICT, NET, SIZE, PANEL, NUMBERS, SEEDS, OTHERS = 0.05, 1.55, 2.36, 3.84, (3.92, 5.0), 5.06, 6.48, 6.58
"""Where the columns stand, in inches from the left; `SIZE` and `SEEDS` end there."""

SCHEMA = Schema(
    "claims_overview",
    1,
    (
        Column("claim", "string", "-", "id of the claim in config/claims.yaml", key=True),
        DATASET,
        ARCH,
        Column("samples", "int64", "samples", "training samples M; 0: the claim spans all sample sizes", key=True),
        CHECKPOINT,
        SPLIT,
        Column("paper", "string", "-", "short name of the paper"),
        Column("verdict", "string", "-", "supported, contradicted, inconclusive or not evaluated"),
        Column("reason", "string", "-", "why the verdict is not plain; empty where it is"),
        Column("estimate", "float64", "see table claims", "mean over seeds; null where not evaluated", nullable=True),
        Column("low", "float64", "see table claims", "lower limit of the 90 % t interval", nullable=True),
        Column("high", "float64", "see table claims", "upper limit of the 90 % t interval", nullable=True),
        Column("n", "int64", "1", "seeds that the estimate rests on"),
        Column("position", "float64", "1", "of the estimate; null without interval or range", nullable=True),
        Column("position_low", "float64", "1", "least position within the interval", nullable=True),
        Column("position_high", "float64", "1", "greatest position of the interval's ends and estimate", nullable=True),
        Column("others", "string", "-", "verdicts at other checkpoints and on other splits, separated by `; `"),
    ),
)
CAPTION = (
    "Every claim of the ledger on every net and number of training samples that it is judged on, by paper. Symbols: "
    "the verdict. Points with bars: the main estimate with its 90 % interval over seeds, as the distance from the "
    "limit that the claim's rule holds it against, in halves of its own interval; right of the line is the claim's "
    "side, whatever sign that asks of the estimate. Arrowheads: beyond the panel. Numbers: estimate and interval in "
    "the statistic's own unit, and the number of seeds. Small symbols at the right: verdicts at other checkpoints "
    "and on other splits. A rule may ask for more than the main estimate, and its control may withdraw a verdict."
)


def plotted(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of `claims` -> rows of `SCHEMA`."""
    taken = [column.name for column in SCHEMA.columns if column.name not in (*POSITIONS, "others")]
    return [
        {name: main[name] for name in taken} | positions(main) | {"others": "; ".join(row["verdict"] for row in others)}
        for main, *others in grouped(rows)
    ]


POSITIONS = ("position", "position_low", "position_high")


def positions(row: Row) -> dict[str, float | None]:
    """The three positions of a row of `claims`; beyond every edge, or exactly 0, where the interval has no width."""
    ends = [(sign, row[name]) for sign, name in ((1, "supports_from"), (-1, "supports_to")) if row[name] is not None]
    if row["low"] is None or not ends:
        return dict.fromkeys(POSITIONS)
    half = (row["high"] - row["low"]) / 2
    inside = [min(sign * (row[name] - end) for sign, end in ends) for name in ("estimate", "low", "high")]
    unit = half or min(map(abs, inside)) / (2 * EDGE) or 1.0
    inside = [distance / unit for distance in inside]
    return dict(zip(POSITIONS, (inside[0], min(inside), max(inside)), strict=True))


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    claims = list(dict.fromkeys((row["paper"], row["claim"]) for row in sorted(rows, key=_order)))
    papers = list(dict.fromkeys(paper for paper, _ in claims))
    count = len(rows) + len(papers)
    with styled():
        figure = new_figure(PAGE, LINE * count + ABOVE + BELOW)
        figure.set_layout_engine("none")
        figure.suptitle(_headline(rows), size=8, y=1 - 0.08 / figure.get_figheight(), va="top")
        board, panel = _board(figure, count)
        place = 0
        for paper in papers:
            board.text(CLAIM, place, f"Paper {paper}", weight="bold", va="center")
            place += 1
            for rank, claim in enumerate(name for own, name in claims if own == paper):
                lines = [row for row in sorted(rows, key=_order) if (row["paper"], row["claim"]) == (paper, claim)]
                if rank % 2 == 0:
                    board.add_patch(Rectangle((0, place - 0.5), PAGE, len(lines), color="0.955", lw=0, zorder=-2))
                board.text(CLAIM, place, _short(claim, 28), va="center", size=LETTERS)
                for line in lines:
                    _line(board, panel, line, place)
                    place += 1
        handles = [
            Line2D([], [], color=colour, marker=shape, ls="", ms=5, label=verdict)
            for verdict, (shape, colour) in VERDICTS.items()
        ]
        figure.legend(handles=handles, loc="lower center", ncols=len(handles))
    return figure


def _order(row: Row) -> tuple[str, str, str, str, int]:
    return row["paper"], row["claim"], row["dataset"], row["arch"], row["samples"]


def _board(figure: Figure, count: int) -> tuple[Axes, Axes]:
    """Axes in inches and lines for the columns of text, and over them the panel of positions."""
    bottom, height = BELOW / figure.get_figheight(), LINE * count / figure.get_figheight()
    board = figure.add_axes((0, bottom, 1, height), xlim=(0, PAGE), ylim=(count - 0.5, -0.5))
    board.set_axis_off()
    for x, head, side in (
        (CLAIM, "claim", "left"),
        (VERDICT, "verdict", "left"),
        (NET, "net", "left"),
        (SIZE, "samples", "right"),
        (sum(PANEL) / 2, "against it  \u2190  \u2192  for it", "center"),
        (NUMBERS, "estimate [90 %]", "left"),
        (SEEDS, "seeds", "right"),
        (OTHERS, "others", "left"),
    ):
        board.text(x, -0.9, head, ha=side, va="center", size=SMALLEST_TEXT, color=GREY)
    left, right = (edge / PAGE for edge in PANEL)
    panel = figure.add_axes((left, bottom, right - left, height), xlim=(-EDGE, EDGE), ylim=(count - 0.5, -0.5))
    panel.patch.set_alpha(0)
    panel.axvspan(0, EDGE, color=BLUE, alpha=0.08, lw=0)
    panel.axvline(0, color="black", lw=0.8)
    panel.set_xticks([-4, -2, 0, 2, 4])
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)
    panel.set_xlabel("distance from the rule's limit,\nhalf-widths of the interval", size=SMALLEST_TEXT)
    return board, panel


def _line(board: Axes, panel: Axes, row: Row, y: int) -> None:
    shape, colour = VERDICTS[row["verdict"]]
    board.plot([VERDICT + 0.04], [y], shape, color=colour, ms=5)
    board.text(VERDICT + 0.13, y, row["verdict"], color=colour, va="center", size=LETTERS)
    board.text(NET, y, _short(net_of(row), 22), va="center", size=LETTERS)
    board.text(SIZE, y, size_of(row), va="center", ha="right", size=LETTERS)
    for rank, verdict in enumerate(row["others"].split("; ") if row["others"] else ()):
        small, tint = VERDICTS[verdict]
        board.plot([OTHERS + 0.04 + 0.09 * rank], [y], small, color=tint, ms=3, mew=0.8)
    if row["verdict"] == NOT_EVALUATED:
        board.text(PANEL[0] + 0.05, y, _short(row["reason"], 60), va="center", size=SMALLEST_TEXT, color=GREY, zorder=5)
        return
    board.text(NUMBERS, y, estimate_of(row).replace("-", "\u2212"), va="center", size=LETTERS)
    board.text(SEEDS, y, row["n"], va="center", ha="right", size=LETTERS)
    if row["position"] is not None:
        low, high, middle = (min(max(row[name], -EDGE), EDGE) for name in ("position_low", "position_high", "position"))
        panel.plot([low, high], [y, y], color=colour, lw=2.2, alpha=0.5, solid_capstyle="butt")
        beyond = ">" if row["position"] > EDGE else "<" if row["position"] < -EDGE else shape
        panel.plot([middle], [y], beyond, color=colour, ms=4.5, clip_on=False)


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}\u2026"


def _headline(rows: Sequence[Row]) -> str:
    counts = Counter(row["verdict"] for row in rows)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    claims = len({row["claim"] for row in rows})
    return f"{claims} claims on {len(rows)} nets and sample sizes: {told}"
