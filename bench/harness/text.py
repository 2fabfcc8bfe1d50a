"""Numbers and tables as text, for the terminal and for Markdown."""

import math


def number(value, digits=3):
    """With so many significant digits, without an exponent: 1234, 12.3, 0.0123."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or value == 0:
        return str(value)
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def spread(summary, digits=3):
    """Median and quartiles: `1.23 (1.20–1.31)`."""
    return (f"{number(summary['median'], digits)} "
            f"({number(summary['q1'], digits)}–{number(summary['q3'], digits)})")


def size(count):
    """Bytes with a unit: `64 MiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{number(float(count)) if count % 1 else int(count)} {unit}"
        count /= 1024
    return None


def rate(bytes_a_second):
    """`1.60 GB/s` or `55 MB/s`."""
    if bytes_a_second >= 1e9:
        return f"{bytes_a_second / 1e9:.2f} GB/s"
    return f"{number(bytes_a_second / 1e6)} MB/s"


def _cells(header, rows):
    lines = [[str(cell) for cell in header]]
    lines += [[number(cell) if isinstance(cell, float) else str(cell) for cell in row]
              for row in rows]
    return lines, [max(len(line[i]) for line in lines) for i in range(len(header))]


def plain_table(caption, header, rows):
    lines, widths = _cells(header, rows)
    out = [caption]
    for at, line in enumerate(lines):
        out.append("  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip())
        if at == 0:
            out.append("  " + "  ".join("-" * w for w in widths))
    return "\n".join(out)


def markdown_table(header, rows):
    lines, widths = _cells(header, rows)
    out = ["| " + " | ".join(c.replace("|", "\\|").ljust(w) for c, w in zip(line, widths)) + " |"
           for line in lines]
    out.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    return "\n".join(out)
