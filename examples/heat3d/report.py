#!/usr/bin/python3
"""What the driver's reports say about heat3d's checkpoints, as a table and as pictures."""

import argparse
import json
import os
import sys

MODES = ("none", "local", "collective")


def commits(path):
    """The commits in the report at `path`, oldest first: one JSON object a line."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def last_commit(path):
    found = commits(path)
    if not found:
        sys.exit(f"report.py: {path} names no commit")
    return found[-1]


def megabytes(count):
    return f"{count / 1e6:.1f} MB"


def table(args):
    """Prints what one checkpoint costs in each mode, and with plain copies of everything."""
    last = {mode: last_commit(getattr(args, mode)) for mode in MODES}
    some = last["collective"]
    for mode, commit in last.items():
        for key in ("replication", "nodes", "ranks"):
            if commit[key] != some[key]:
                sys.exit(f"report.py: the reports differ in {key}: {commit[key]} in mode {mode}")
        if commit["mode"] != mode:
            sys.exit(f"report.py: {getattr(args, mode)} is of mode {commit['mode']}, not {mode}")
    written = some["bytes_written"]["total"]
    copies = some["replication"]
    print(f"One checkpoint of {some['ranks']} ranks on {some['nodes']} nodes, K = {copies}: "
          f"{megabytes(written)} written by the program")
    print()
    print(f"{'mode':<24}{'stored':>12}{'sent':>12}{'stored/written':>16}{'fewest copies':>15}")

    def row(name, stored, sent, fewest):
        print(f"{name:<24}{megabytes(stored):>12}{megabytes(sent):>12}{stored / written:>16.2f}"
              f"{fewest:>15}")

    row(f"plain {copies}-fold replication", copies * written, (copies - 1) * written, copies)
    for mode in MODES:
        commit = last[mode]
        row(mode, commit["bytes_stored"]["total"], commit["bytes_sent"]["total"],
            commit["lowest_copies"])


def stored_bytes(directory):
    """The sizes of all files in `directory` and below."""
    return sum(os.stat(os.path.join(parent, name)).st_size
               for parent, _, names in os.walk(directory) for name in names)


def load(args):
    """Prints the bytes in each node's store as a JSON object."""
    print(json.dumps({node: stored_bytes(os.path.join(args.stores, node))
                      for node in sorted(os.listdir(args.stores))}))


def read_load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def plot_recovery(args, nodes, output):
    """A checkpoint before and after nodes were lost, and what the program made of it."""
    import matplotlib.pyplot as plt
    import numpy as np

    def cut(path):
        field = np.fromfile(path, dtype="<f8").reshape(args.size, args.size, args.size)
        # Through the middle of the hot ball (see start() in heat.cc).
        return field[:, args.size // 3, :]

    before, after, result = (cut(path) for path in (args.before, args.after, args.result))
    left = before.copy()
    for node in args.lost.split(","):
        # What the ranks of that node wrote: each has some planes in turn.
        place = nodes.index(node)
        left[place * args.size // len(nodes):(place + 1) * args.size // len(nodes)] = np.nan
    difference = np.fromfile(args.after, dtype="<f8") - np.fromfile(args.before, dtype="<f8")
    panels = [(before, f"checkpoint of step {args.step}\non {len(nodes)} nodes"),
              (left, f"without what\n{args.lost.replace(',', ' and ')} wrote"),
              (after, f"read on the {len(nodes) - len(args.lost.split(','))} nodes left"),
              (after - before, f"difference\nat most {np.abs(difference).max():g} K"),
              (result, f"the result,\nstep {args.steps}")]
    figure, axes = plt.subplots(1, len(panels), figsize=(14, 3.4), sharey=True, layout="constrained")
    low, high = before.min(), before.max()
    for axis, (field, title) in zip(axes, panels):
        axis.set_facecolor("lightgray")
        image = axis.imshow(field, origin="lower", cmap="inferno", vmin=low, vmax=high)
        axis.set(xlabel="x", title=title)
    axes[0].set_ylabel("z, cut at y = size / 3")
    figure.colorbar(image, ax=axes, label="temperature (K)")
    figure.savefig(output, dpi=120)


def plot_load(loads, lost, output):
    import matplotlib.pyplot as plt
    import numpy as np

    nodes = sorted(loads["collective"])
    places = np.arange(len(nodes))
    width = 0.8 / len(MODES)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for i, mode in enumerate(MODES):
        values = [loads[mode][node] / 1e6 for node in nodes]
        axes.bar(places + (i - 1) * width, values, width, label=mode)
    axes.set_xticks(places, [f"{node}\n(lost later)" if node in lost else node for node in nodes])
    axes.set(ylabel="MB in the node's store", title="Bytes a node stores, by mode")
    axes.set_ylim(top=1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(loc="upper center", ncols=len(MODES))
    figure.savefig(output, dpi=120)


def plot(args):
    import matplotlib
    matplotlib.use("Agg")

    os.makedirs(args.output, exist_ok=True)
    loads = {mode: read_load(getattr(args, mode)) for mode in MODES}
    plot_recovery(args, sorted(loads["collective"]), os.path.join(args.output, "recovery.png"))
    plot_load(loads, args.lost.split(","), os.path.join(args.output, "load.png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)

    command = commands.add_parser("table", help="compare the last commit of three reports")
    for mode in MODES:
        command.add_argument(f"--{mode}", required=True, metavar="REPORT")
    command.set_defaults(run=table)

    command = commands.add_parser("load", help="print the bytes in each node's store")
    command.add_argument("stores", help="the directory that holds the nodes' stores")
    command.set_defaults(run=load)

    command = commands.add_parser("plot", help="draw recovery.png and load.png")
    for mode in MODES:
        command.add_argument(f"--{mode}", required=True, metavar="LOAD", help="output of load")
    for name, what in (("before", "of the checkpoint, on all nodes"), ("after", "of it, once nodes were lost"),
                       ("result", "in the end")):
        command.add_argument(f"--{name}", required=True, help=f"what heat3d --result wrote {what}")
    command.add_argument("--step", required=True, type=int, help="of the checkpoint")
    command.add_argument("--steps", required=True, type=int, help="of the result")
    command.add_argument("--size", required=True, type=int, help="cells along each axis")
    command.add_argument("--lost", default="", help="nodes that are lost, separated by commas")
    command.add_argument("--output", required=True, help="directory for the pictures")
    command.set_defaults(run=plot)

    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
