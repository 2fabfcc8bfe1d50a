"""The table of targets: rows that sections recorded with Bench.target()."""

from . import text


def rows_of(records):
    return [r for r in records if r.get("kind") == "target"]


def verdict(row):
    if row["met"] is None:
        return "reported"
    return "met" if row["met"] else "not met"


def limit_of(row):
    if row["limit"] is None:
        return "–"
    return f"{'≥' if row['at_least'] else '≤'} {text.number(float(row['limit']))}"


def or_dash(value):
    """A number, or a text such as "2–3"; None: a dash."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else text.number(float(value))


def _on_each(rows, say):
    """What is said of each row, once if it is the same of all, else with the row's medium."""
    said = [say(row) for row in rows]
    return said[0] if len(set(said)) == 1 else ", ".join(f"{row['medium']} {one}" for row, one in zip(rows, said))


def overview(records):
    """The header and rows that the page begins with: of targets that have a name there, a row for each name, with
    all media that it was measured on."""
    names = {}
    for row in rows_of(records):
        if row.get("overview"):
            names.setdefault(row["overview"], []).append(row)
    header = ["what, to what", "papers", "peer", "bound", "ours", "target", ""]
    return header, [[name, or_dash(rows[0]["papers"]), or_dash(rows[0]["peer"]), _on_each(rows, lambda row: or_dash(row["bound"])),
                     _on_each(rows, lambda row: text.number(row["measured"]["median"])), _on_each(rows, limit_of),
                     _on_each(rows, verdict)] for name, rows in names.items()]


def table_of_targets(records):
    """(caption, header, rows), as a section's tables() gives them."""
    header = ["what", "medium", "K", "fsync", "flush", "cache", "bytes a rank", "target",
              "measured", "bound", "verdict"]
    rows = []
    for row in rows_of(records):
        size = row["bytes_a_rank"]
        rows.append([row["what"], row["medium"], row["replication"], row["fsync"], row["flush"],
                     row["cache"], text.size(size) if isinstance(size, int) else size, limit_of(row),
                     text.spread(row["measured"]),
                     or_dash(row["bound"]),
                     verdict(row)])
    return "Targets: ratios within this run, median and quartiles", header, rows
