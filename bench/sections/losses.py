"""The odds of losing data when nodes are lost, for ways of keeping it."""

import json
from fractions import Fraction
from math import comb

from harness import statistics, text

TITLE = "The odds of a loss"
ORDER = 85

NODES = (34, 1024, 32768)
LAYOUTS = {"ring-2": "K = 2, ring", "sets-2": "K = 2, pairs", "groups-2-8": "K = 2, groups of 8",
           "spread-2-8": "K = 2, spread over 8", "ring-3": "K = 3, ring", "groups-3-8": "K = 3, groups of 8",
           "sets-4": "K = 4, sets of 4", "stripes-7-1": "7 + 1 stripes", "stripes-8-2": "8 + 2 stripes"}
LOST = {34: (2, 3, 4), 1024: (2, 3, 4, 10, 32), 32768: (2, 3, 4, 32, 328)}


def of_sets(nodes, size, lost):
    """That of `lost` of `nodes` nodes in sets of `size`, which have one another's data, all of a set are
    (ReStore, 2022, section IV-D)."""
    sets = nodes // size
    fatal = sum((-1) ** (j + 1) * comb(sets, j) * comb(nodes - j * size, lost - j * size)
                for j in range(1, min(sets, lost // size) + 1))
    return float(Fraction(fatal, comb(nodes, lost)))


def run(bench):
    differences = []
    for nodes in NODES:
        for layout in LAYOUTS:
            bench.say(f"{layout}, {nodes} nodes")
            for line in bench.run([bench.program("losses"), layout, nodes, *LOST[nodes]]).splitlines():
                found = json.loads(line)
                name, *numbers = layout.split("-")
                exact = name == "sets" and nodes % int(numbers[0]) == 0 and found["lost"] >= int(numbers[0])
                formula = of_sets(nodes, int(numbers[0]), found["lost"]) if exact else None
                bench.record(kind="loss", **found, formula=formula)
                if exact:
                    differences.append(abs(found["probability"] / formula - 1))
    bench.target(what="the odds of losing data, sets of 2 and 4 nodes: largest relative difference to ReStore's "
                 "formula", limit=0.02, measured=statistics.summary([max(differences)]), medium="–", replication="–",
                 fsync="–", flush="–", cache="–", bytes_a_rank="–", overview="odds of a loss: difference to ReStore's formula")


def short(probability):
    return text.number(probability) if probability >= 0.0005 or probability == 0 else f"{probability:.2e}"


def odds(record):
    formula = "" if record["formula"] is None else f" ({short(record['formula'])})"
    return short(record["probability"]) + formula


def tables(records):
    out = []
    for nodes in NODES:
        rows = [[name, *(odds(next(r for r in records if r["kind"] == "loss" and r["layout"] == layout
                                   and r["nodes"] == nodes and r["lost"] == lost)) for lost in LOST[nodes])]
                for layout, name in LAYOUTS.items()]
        out.append((f"{nodes} nodes: the probability that data are lost when so many nodes are (in brackets: "
                    "ReStore's formula)", ["kept", *(f"{lost} lost" for lost in LOST[nodes])], rows))
    return out


def figures(records):
    return []
