"""Fixed seeds of the fuzzer, and proof that it finds what is wrong."""

import re

import fuzzing
import pytest

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_seed(seed):
    outcome = fuzzing.run_case(fuzzing.case_of(seed))
    assert outcome.kind == "ok", f"test/fuzz/shrink {seed}\n{fuzzing.summary(outcome)}"


def test_seeds_cover_what_matters():
    cases = [fuzzing.case_of(seed) for seed in SEEDS]
    layouts = {(job.ranks, len(job.nodes)) for case in cases for job in case.jobs}
    assert layouts >= set(fuzzing.LAYOUTS)
    for condition in (lambda case: case.sync,
                      lambda case: not case.sync,
                      lambda case: case.large and case.hints["DEDUP_BUFFER"] == "1 MiB",
                      lambda case: any(job.lost for job in case.jobs),
                      lambda case: case.hints.get("DEDUP_FLUSH") == "close",
                      lambda case: case.hints["DEDUP_MODE"] == "none"):
        assert sum(map(condition, cases)) >= 3


# ---- The fuzzer finds what is wrong ---------------------------------------------------------------


def small_case(seed=58, steps=16):
    return fuzzing.Case([fuzzing.Job(2, ["n0", "n1"], seed, steps)], {"DEDUP_FSYNC": "never"})


def operation(case, pattern):
    """The number of the first operation whose description matches."""
    found = re.search(rf"^ *(\d+): .*{pattern}", fuzzing.list_of(case, case.jobs[0]), re.MULTILINE)
    assert found, pattern
    return int(found[1])


def falsified(case, number):
    case.options = ["--falsify", str(number)]
    return case


@pytest.mark.parametrize("pattern, difference", [
    ("write_at_all", r"is \d+ with ufs:, \d+ with dedup:"),
    ("set_size", r"the file of handle \d has \d+ bytes with ufs:, \d+ with dedup:"),
    ("mistake", r"ufs: answers class \d+ .*, dedup: class \d+"),
])
def test_a_difference_is_found(pattern, difference):
    case = small_case()
    outcome = fuzzing.run_case(falsified(case, operation(case, pattern)))
    assert outcome.kind == "difference"
    assert re.search(difference, outcome.text), outcome.text


def test_a_difference_is_shrunk():
    case = small_case()
    number = operation(case, "write_at_all")
    shrinker = fuzzing.Shrinker(falsified(case, number), timeout=60, say=lambda text: None)
    assert shrinker.run()
    left = shrinker.case.jobs[0].only
    assert number in left and len(left) <= 3, fuzzing.list_of(shrinker.case, shrinker.case.jobs[0])
    assert shrinker.case.jobs[0].ranks == 1
    assert fuzzing.run_case(shrinker.case).kind == "difference"


def test_lost_data_is_found():
    case = small_case()
    case.jobs.append(fuzzing.Job(2, ["n2"], lost=["n0", "n1"]))
    outcome = fuzzing.run_case(case)
    assert (outcome.kind, outcome.job) == ("difference", 1), outcome.text


def test_a_hang_is_found():
    assert fuzzing.run_case(small_case(), timeout=0.05).kind == "hang"
