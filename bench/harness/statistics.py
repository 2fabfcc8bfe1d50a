"""Samples in few numbers."""

import numpy


def summary(samples):
    """Median, smallest, quartiles and largest of a list of numbers, as they stand in records."""
    values = numpy.asarray(samples, dtype=float)
    low, median, high = (float(v) for v in numpy.percentile(values, [25, 50, 75]))
    return {"median": median, "min": float(values.min()), "q1": low, "q3": high,
            "max": float(values.max()), "samples": [float(v) for v in values]}


def median(samples):
    return float(numpy.median(samples))


def ratio(numerator, denominator):
    """The summary of the ratios of two lists of samples that were taken in turn, pair by pair.

    What slows the machine down for a while slows both of a pair.
    """
    if len(numerator) != len(denominator):
        raise ValueError("samples that were not taken in turn have no ratio")
    return summary([n / d for n, d in zip(numerator, denominator)])
