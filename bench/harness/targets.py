"""The table of targets: rows that sections recorded with Bench.target()."""

from . import text


def rows_of(records):
    return [r for r in records if r.get("kind") == "target"]


def verdict(row):
    if row["met"] is None:
        return "reported"
    return "met" if row["met"] else "not met"


def table_of_targets(records):
    """(caption, header, rows), as a section's tables() gives them."""
    header = ["what", "medium", "K", "fsync", "flush", "cache", "bytes a rank", "target",
              "measured", "bound", "verdict"]
    rows = []
    for row in rows_of(records):
        limit = "–"
        if row["limit"] is not None:
            limit = f"{'≥' if row['at_least'] else '≤'} {text.number(float(row['limit']))}"
        size = row["bytes_a_rank"]
        rows.append([row["what"], row["medium"], row["replication"], row["fsync"], row["flush"],
                     row["cache"], text.size(size) if isinstance(size, int) else size, limit,
                     text.spread(row["measured"]),
                     "–" if row["bound"] is None else text.number(float(row["bound"])),
                     verdict(row)])
    return "Targets: ratios within this run, median and quartiles", header, rows
