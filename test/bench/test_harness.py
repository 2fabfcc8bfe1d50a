"""What bench/run and bench/plot are made of, by itself."""

import pathlib
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from harness import bench, document, jobs, sections, statistics, targets, text  # noqa: E402


def view(**keywords):
    return bench.Bench("here", "/nowhere", [], say=lambda line: None, **keywords)


def test_summary_has_median_and_quartiles():
    found = statistics.summary([4, 1, 3, 2, 5])
    assert (found["min"], found["q1"], found["median"], found["q3"], found["max"]) == (1, 2, 3, 4, 5)
    assert found["samples"] == [4, 1, 3, 2, 5]


def test_ratio_is_taken_pair_by_pair():
    # The second pair was taken while the machine was ten times slower.
    assert statistics.ratio([2, 20], [1, 10])["samples"] == [2, 2]
    with pytest.raises(ValueError):
        statistics.ratio([1, 2], [1])


def test_variants_run_in_turn_and_begin_in_turn():
    order = []
    found = view().alternate({name: lambda name=name: order.append(name) or len(order)
                              for name in "abc"}, 4)
    assert "".join(order) == "abc" "bca" "cab" "abc"
    assert found["a"] == [1, 6, 8, 10]


def test_target_is_met_or_not():
    here = view()
    row = {"medium": "disk", "replication": 2, "fsync": "commit", "flush": "none", "cache": "–",
           "bytes_a_rank": 1 << 20}
    for limit, at_least in ((2.0, False), (1.0, False), (2.0, True), (1.0, True), (None, False)):
        here.target(what="row", measured=statistics.summary([1.5]), limit=limit, at_least=at_least,
                    **row)
    assert [targets.verdict(r) for r in here.records()] == [
        "met", "not met", "not met", "met", "reported"]
    _, header, rows = targets.table_of_targets(here.records())
    assert all(len(r) == len(header) for r in rows) and rows[0][6] == "1 MiB"


def test_scratch_is_removed():
    here = view()
    kept = here.scratch("tmpfs")
    with here.scratch_for_now("disk") as path:
        assert path.is_dir()
    assert not path.exists() and kept.is_dir()
    here.clean_up()
    assert not kept.exists()


def test_program_that_fails_says_why():
    with pytest.raises(jobs.Failed, match="exit code 3.*\n.*\nno such luck"):
        view().run(["sh", "-c", "echo no such luck >&2; exit 3"])
    with pytest.raises(jobs.Failed, match="ended after 0.2 s"):
        view().run(["sleep", "60"], timeout=0.2)


def test_environment_of_the_caller_stays_outside(monkeypatch):
    monkeypatch.setenv("DEDUP_REPLICATION", "7")
    monkeypatch.setenv("LD_PRELOAD", "")
    out = view().run(["env"], {"DEDUP_MODE": "none"})
    assert "DEDUP_MODE=none" in out and "DEDUP_REPLICATION" not in out and "LD_PRELOAD" not in out


def test_sections_are_selected_with_what_they_need():
    modules = {name: types.SimpleNamespace(NEEDS=needs)
               for name, needs in (("a", []), ("b", ["a"]), ("c", ["b"]), ("d", []))}
    assert list(sections.select(modules, ["c"])) == ["a", "b", "c"]
    assert list(sections.select(modules, ["d", "a"])) == ["a", "d"]


def test_sections_come_after_what_they_need():
    modules = sections.load()
    for name, module in modules.items():
        for need in getattr(module, "NEEDS", ()):
            assert modules[need].ORDER < module.ORDER, f"{name} needs {need}"


@pytest.mark.parametrize("value,expected", [
    (1234.5, "1234"), (0.012345, "0.0123"), (3, "3"), (1.0, "1"), (12.34, "12.3"),
    (0.00001234, "0.0000123"), ("text", "text"), (123456.0, "123456")])
def test_numbers_have_no_exponent(value, expected):
    assert text.number(value) == expected


@pytest.mark.parametrize("value,expected", [
    (1, "1 bytes"), (4096, "4 KiB"), (64 << 20, "64 MiB"), (1310720, "1.25 MiB"),
    (3 << 40, "3072 GiB")])
def test_sizes_have_units(value, expected):
    assert text.size(value) == expected


def test_template_is_filled_in_and_mistakes_in_it_are_errors():
    module = types.SimpleNamespace(
        tables=lambda records: [("Of all", ["a", "b"], [[r["a"], 0.5] for r in records])],
        values=lambda records: {"count": len(records)})
    result = {"records": [{"section": "s", "a": "x|y"}, {"section": "other", "a": 2}],
              "parameters": {"quick": False}}
    filled = document.Document(result, {"s": module}, {"s": {"f": "performance/f.svg"}})
    out = filled.fill("{{value count}} {{figure f}}\n{{tables}}", "s")
    assert out.startswith("1 ![f](performance/f.svg)\nOf all:\n\n| a")
    assert "| x\\|y | 0.5 |" in out
    for wrong in ("{{value none}}", "{{figure g}}", "{{nothing}}"):
        with pytest.raises(KeyError):
            filled.fill(wrong, "s")
