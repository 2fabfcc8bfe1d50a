"""How figures look: readable in grey, told apart by marks and dashes rather than by colours."""

import itertools

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

_LINES = [("o", "-", "0.0"), ("s", "--", "0.35"), ("^", "-.", "0.5"), ("D", ":", "0.2"),
          ("v", "-", "0.6"), ("x", "--", "0.1")]
_BARS = [("0.25", ""), ("0.6", "//"), ("0.85", ".."), ("1.0", "xx")]
SETTINGS = {
    "font.size": 9, "axes.grid": True, "grid.color": "0.85", "axes.axisbelow": True,
    "legend.frameon": False, "legend.fontsize": 8, "savefig.bbox": "tight",
    # The same data gives the same bytes.
    "svg.hashsalt": "dedup", "svg.fonttype": "none",
}


def line_styles():
    """Keywords for the series of Axes.plot and Axes.errorbar, one after the other."""
    return ({"marker": marker, "linestyle": line, "color": grey, "markersize": 4.5,
             "markerfacecolor": "white" if line != "-" else grey}
            for marker, line, grey in itertools.cycle(_LINES))


def bar_styles():
    """Keywords for the series of Axes.bar."""
    return ({"color": grey, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6}
            for grey, hatch in itertools.cycle(_BARS))


def lines(axes, series, *, x_label, y_label, title=None, log2=False):
    """series: {name: [(x, y) or (x, summary)]}; summaries get their quartiles as bars."""
    for (name, points), style in zip(series.items(), line_styles()):
        points = sorted(points, key=lambda point: point[0])
        xs = [x for x, _ in points]
        if points and isinstance(points[0][1], dict):
            middle = [y["median"] for _, y in points]
            reach = [[y["median"] - y["q1"] for _, y in points],
                     [y["q3"] - y["median"] for _, y in points]]
            axes.errorbar(xs, middle, yerr=reach, capsize=2, label=name, **style)
        else:
            axes.plot(xs, [y for _, y in points], label=name, **style)
    ticks = sorted({x for points in series.values() for x, _ in points})
    if log2:
        axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    _name(axes, x_label, y_label, title)


def bars(axes, groups, series, *, y_label, title=None):
    """groups: names along the x axis; series: {name: [number for each group]}."""
    width = 0.8 / len(series)
    for at, ((name, values), style) in enumerate(zip(series.items(), bar_styles())):
        places = [i + (at - (len(series) - 1) / 2) * width for i in range(len(groups))]
        axes.bar(places, values, width, label=name, **style)
    axes.set_xticks(range(len(groups)), groups)
    _name(axes, None, y_label, title)


def _name(axes, x_label, y_label, title):
    if x_label:
        axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if title:
        axes.set_title(title, fontsize=9)
    axes.legend()


def save(draw, directory, name):
    """Draws one figure into NAME.svg and NAME.png."""
    with pyplot.rc_context(SETTINGS):
        figure = pyplot.figure(figsize=(5, 3.2))
        draw(figure)
        figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
        figure.savefig(directory / f"{name}.png", dpi=150)
        pyplot.close(figure)
