"""Plots as data, and drawn as inline SVG whose text has the colour of the page around it, light or dark."""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepdown.builder.common.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Stacked:
    """Horizontal bars of equal length, a category each, divided by the shares of series."""

    categories: tuple[str, ...]
    series: tuple[str, ...]
    """From cheap to dear: they are coloured in order."""
    counts: tuple[tuple[int, ...], ...]
    """By category, by series."""
    alt: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars, a label each."""

    labels: tuple[str, ...]
    values: tuple[float, ...]
    colours: tuple[int, ...]
    """Places on the scale of `steps` colours; none: all alike."""
    steps: int
    unit: str
    alt: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines over 1, 2, 3 and so on."""

    lines: tuple[tuple[str, tuple[float, ...]], ...]
    across: str
    up: str
    alt: str


@dataclass(frozen=True, slots=True)
class Points:
    """Named points: the first `filled` of them in colour, the others, what they are held against, as rings."""

    names: tuple[str, ...]
    places: tuple[tuple[float, float], ...]
    """Across, up."""
    filled: int
    across: str
    up: str
    alt: str


Chart = Stacked | Bars | Lines | Points

WIDTH = 4.6
"""Inches at 72 to the inch: a phone's width, so that text is readable there; wider pages scale it up."""
SIZE = 9.5
LONGEST_NAME = 26
_NO_XML = re.compile("[\ufffe\uffff]")
"""What XML can not hold, of what is printable."""
_INK = "#000000"
"""Becomes the page's own text colour."""
_ON_BAR = "#101010"
_SCALE = ("#7bc8a4", "#f2cf63", "#f2a35e", "#e0685e")
"""From cheap to dear; dark text is readable on all of them, in either theme."""
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


def svg(chart: Chart, name: str) -> str:
    """The chart as an SVG element without styles, scripts or outside references. `name` is unique on its page."""
    import matplotlib

    settings: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,  # names are text of other people, not formulas
        "font.family": "DejaVu Sans",
        "font.size": SIZE,
        "axes.edgecolor": _INK,
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Text stays text: the browser's fonts draw it, whatever the one that it is measured with lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure = _draw(chart)
        out = io.StringIO()
        figure.savefig(
            out, format="svg", transparent=True, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.05
        )
    return _inline(out.getvalue(), name, chart.alt)


def _draw(chart: Chart) -> Figure:
    if isinstance(chart, Stacked):
        return _draw_stacked(chart)
    if isinstance(chart, Bars):
        return _draw_bars(chart)
    if isinstance(chart, Points):
        return _draw_points(chart)
    return _draw_lines(chart)


def _start_figure(height: float) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _name(text: str) -> str:
    return _NO_XML.sub("\ufffd", printable(text, longest=LONGEST_NAME))


def _draw_stacked(chart: Stacked) -> Figure:
    figure, axes = _start_figure(0.75 + 0.32 * len(chart.categories))
    colours = scale(len(chart.series))
    left, keys = [0.0] * len(chart.categories), []
    places = range(len(chart.categories))
    totals = [sum(counts) or 1 for counts in chart.counts]
    for index in range(len(chart.series)):
        shares = [100 * counts[index] / total for counts, total in zip(chart.counts, totals, strict=True)]
        keys.append(axes.barh(places, shares, left=left, color=colours[index], height=0.72))
        for place, share in enumerate(shares):
            if share >= 7:
                middle = left[place] + share / 2
                axes.text(middle, place, f"{share:.0f}", ha="center", va="center", color=_ON_BAR, size=SIZE - 1.5)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axes.set_yticks(list(places), [_name(name) for name in chart.categories])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("percent")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    columns = 3 if max(map(len, chart.series)) > 8 else 4
    names = [_name(name) for name in chart.series]  # given here, since of labels those that begin with _ are hidden
    axes.legend(
        keys, names, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, frameon=False, handlelength=1.0
    )
    return figure


def _amount(value: float) -> str:
    """
    >>> _amount(1234.0), _amount(0.20975)
    ('1,234', '0.21')
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2g}"


def _draw_bars(chart: Bars) -> Figure:
    from matplotlib.ticker import MaxNLocator

    figure, axes = _start_figure(0.6 + 0.28 * len(chart.labels))
    colours = [scale(chart.steps)[place] for place in chart.colours] if chart.colours else "#6fa8dc"
    places = range(len(chart.labels))
    axes.barh(places, chart.values, color=colours, height=0.72)
    most = max([*chart.values, 1e-12])
    for place, value in enumerate(chart.values):
        axes.text(value + most * 0.012, place, _amount(value), va="center", size=SIZE - 1.5)
    axes.set_yticks(list(places), [_name(name) for name in chart.labels])
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.14)
    axes.set_xlabel(chart.unit)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure


def _draw_lines(chart: Lines) -> Figure:
    from matplotlib.ticker import MaxNLocator

    figure, axes = _start_figure(2.6)
    for index, (name, values) in enumerate(chart.lines):
        colour = _SCALE[-1] if index == 0 else "#3f9d78"
        style = "-" if index == 0 else "--"  # told apart without colour too
        axes.plot(range(1, len(values) + 1), values, style, marker="o", markersize=3.2, color=colour, label=_name(name))
    axes.set_xlabel(chart.across)
    axes.set_ylabel(chart.up)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="upper left", frameon=False)
    return figure


def _draw_points(chart: Points) -> Figure:
    """Each point has a number beside it, and its name in the list above: on a small plot names would cover others."""
    figure, axes = _start_figure(3.0 + 0.17 * len(chart.names))
    figure.subplots_adjust(bottom=0.6 / figure.get_figheight(), top=0.98)
    for number, (name, (across, up)) in enumerate(zip(chart.names, chart.places, strict=True), 1):
        colour = "#3f9d78" if number <= chart.filled else "none"
        label = f"{number}  {_name(name)}"
        axes.scatter([across], [up], s=34, facecolors=colour, edgecolors=_INK, linewidths=0.8, label=label, zorder=3)
        axes.annotate(
            str(number), (across, up), (5 + 9 * _earlier(chart, number), 4), textcoords="offset points", size=SIZE - 1.5
        )
    axes.margins(0.12)
    axes.set_xlabel(chart.across)
    axes.set_ylabel(chart.up)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False, handlelength=1.0)
    return figure


def _earlier(chart: Points, number: int) -> int:
    """How many points before this one lie in its place: their numbers stand side by side."""
    here = chart.places[number - 1]
    spread = [max(abs(one - other) for one, other in zip(here, place, strict=True)) for place in chart.places]
    return sum(distance < 1.0 for distance in spread[: number - 1])


def scale(steps: int) -> list[str]:
    """So many colours from cheap to dear.

    >>> scale(2)
    ['#7bc8a4', '#e0685e']
    """
    if steps <= 1:
        return [_SCALE[0]] * steps
    stops = [tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5)) for colour in _SCALE]
    colours = []
    for step in range(steps):
        at = step / (steps - 1) * (len(stops) - 1)
        low = min(int(at), len(stops) - 2)
        mixed = (round(a + (b - a) * (at - low)) for a, b in zip(stops[low], stops[low + 1], strict=True))
        colours.append("#" + "".join(f"{part:02x}" for part in mixed))
    return colours


def _inline(text: str, name: str, alt: str) -> str:
    """The drawing as part of a page: no styles (the page's policy allows none), own ids, the page's own text colour."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(text)  # noqa: S314 - what matplotlib has just written
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        for key, value in _attributes(element.attrib.pop("style", "")):
            element.set(key, value)
        for key, value in list(element.attrib.items()):
            changed = value
            if key == "id":
                changed = f"{name}-{value}"
            elif value.startswith("#") and key == f"{{{_XLINK}}}href":
                changed = f"#{name}-{value[1:]}"
            elif value.startswith("url(#"):
                changed = f"url(#{name}-{value[5:]}"
            elif value == _INK:
                changed = "currentColor"
            element.set(key, changed)
        if element.tag == f"{{{_SVG}}}text" and element.get("fill") is None:
            element.set("fill", "currentColor")
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-label", alt)
    return ET.tostring(root, encoding="unicode")


def _attributes(style: str) -> Sequence[tuple[str, str]]:
    """A style as presentation attributes."""
    found = []
    for declaration in style.split(";"):
        key, _, value = declaration.partition(":")
        key, value = key.strip(), value.strip()
        if key == "font":
            size = re.search(r"([\d.]+)px", value)
            found.append(("font-size", size[1] if size else str(SIZE)))
        elif key and value:
            found.append((key, value))
    return found
