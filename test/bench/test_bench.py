"""bench/run and bench/plot work: what they write is whole and well formed. Nothing about speed."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("DEDUP_BUILD") or ROOT / "build").resolve()
HANG_GUARD_SECONDS = 1800


def command(*words):
    return subprocess.run([str(word) for word in words], env={**os.environ, "DEDUP_BUILD": str(BUILD)},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=HANG_GUARD_SECONDS,
                          check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What a quick run of all sections wrote: the file, its content, and the run itself."""
    path = tmp_path_factory.mktemp("bench") / "bench.json"
    done = command(ROOT / "bench" / "run", "--quick", "--out", path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return path, json.loads(path.read_text()), done


@pytest.fixture(scope="module")
def document(run, tmp_path_factory):
    """The directory that bench/plot wrote of it."""
    directory = tmp_path_factory.mktemp("doc")
    done = command(ROOT / "bench" / "plot", run[0], "--to", directory)
    assert done.returncode == 0, done.stderr
    return directory


def test_run_says_what_it_was_done_on(run):
    result = run[1]
    assert result["machine"]["cores"] >= 1 and result["machine"]["memory_bytes"] > 1 << 28
    assert set(result["machine"]["media"]) == {"disk", "tmpfs"}
    assert re.fullmatch(r"[0-9a-f]{40}( and changes)?", result["versions"]["commit"])
    assert result["versions"]["mpich"] and result["parameters"]["quick"] is True


def test_every_section_has_records_and_tables(run):
    _, result, done = run
    assert result["failures"] == {}
    for section in (path.stem for path in (ROOT / "bench" / "sections").glob("*.py")):
        kinds = {r["kind"] for r in result["records"] if r["section"] == section}
        assert kinds > {"time"}, f"{section} recorded nothing"
        assert f"({section})\n" in done.stdout, f"{section} printed nothing"


def test_summaries_belong_to_their_samples(run):
    def summaries(value):
        if isinstance(value, dict):
            if "samples" in value:
                yield value
            value = value.values()
        if not isinstance(value, str) and hasattr(value, "__iter__"):
            for inner in value:
                yield from summaries(inner)

    found = list(summaries(run[1]["records"]))
    assert found
    for each in found:
        assert len(each["samples"]) >= 1
        assert min(each["samples"]) == each["min"] <= each["q1"] <= each["median"]
        assert each["median"] <= each["q3"] <= each["max"] == max(each["samples"])


def test_wrong_bytes_are_seen(tmp_path):
    """Sections rely on checkpoint to fail if what it reads is not what was written."""
    made = command("make", "-C", BUILD, "bench_programs")
    assert made.returncode == 0, made.stderr
    program = BUILD / "bench" / "programs" / "checkpoint"
    mpiexec = [BUILD / "bin" / "dedup-mpiexec", "--nodes", 2, "--store", tmp_path / "stores", "-n", 2]
    name = f"dedup:{tmp_path}/file"
    written = command(*mpiexec, program, name, "--bytes", "1M", "--profile", "hpccg-8")
    assert written.returncode == 0, written.stderr
    assert json.loads(written.stdout)["checked_bytes"] == 2 << 20
    for other in (["--seed", 2], ["--step", 1], ["--piece", 4096]):
        read = command(*mpiexec, program, name, "--no-write", "--bytes", "1M", "--profile", "hpccg-8",
                       *other)
        assert read.returncode == 1 and "bytes are wrong" in read.stderr, other
    longer = command(*mpiexec, program, name, "--no-write", "--bytes", "2M", "--profile", "hpccg-8")
    assert longer.returncode == 1 and "too short" in longer.stderr


def test_targets_name_what_they_were_measured_on(run):
    rows = [r for r in run[1]["records"] if r["kind"] == "target"]
    assert len({r["what"] + str(r["medium"]) for r in rows}) == len(rows) >= 10
    for row in rows:
        assert row["medium"] in ("disk", "tmpfs", "–")
        assert row["measured"]["median"] > 0 or row["limit"] == 0, "only what must be nothing may be nothing"
        assert row["fsync"] in ("commit", "never", "–") and row["flush"] in ("none", "background", "close", "–")
        assert row["cache"] in ("warm", "cold", "–") and row["bytes_a_rank"]
        if row["limit"] is None:
            assert row["met"] is None
        else:
            better = row["measured"]["median"] - row["limit"]
            assert row["met"] == (better >= 0 if row["at_least"] else better <= 0)


def test_document_is_filled_in(document, run):
    text = (document / "performance.md").read_text()
    assert "{{" not in text
    figures = re.findall(r"!\[[\w.-]+\]\((performance/[\w.-]+\.svg)\)", text)
    for figure in figures:
        assert "<svg" in (document / figure).read_text()
        assert (document / figure).with_suffix(".png").stat().st_size > 1000
    drawn = {f"performance/{path.name}" for path in document.glob("performance/*.svg")}
    assert drawn == set(figures), "a figure is drawn and not shown"


def test_document_is_the_same_each_time(document, run, tmp_path):
    again = command(ROOT / "bench" / "plot", run[0], "--to", tmp_path)
    assert again.returncode == 0, again.stderr
    for path in [*document.rglob("*.svg"), document / "performance.md"]:
        assert (tmp_path / path.relative_to(document)).read_bytes() == path.read_bytes()


def test_what_other_sections_have_is_kept(run, tmp_path):
    path = tmp_path / "bench.json"
    shutil.copy(run[0], path)
    done = command(ROOT / "bench" / "run", "--quick", "--only", "losses", "--out", path, "--keep")
    assert done.returncode == 0, done.stderr
    before, after = run[1], json.loads(path.read_text())

    def of_others(result):
        return [r for r in result["records"] if r["section"] != "losses"]

    assert of_others(after) == of_others(before) and len(after["records"]) == len(before["records"])
    assert [len(one["sections"]) for one in after["runs"]] == [len(before["runs"][0]["sections"]) - 1, 1]
    whole = command(ROOT / "bench" / "run", "--only", "losses", "--out", path, "--keep")
    assert whole.returncode != 0 and "one is quick, and one is not" in whole.stderr


def test_unknown_section_is_refused():
    done = command(ROOT / "bench" / "run", "--only", "nothing")
    assert done.returncode != 0
    assert "no section nothing" in done.stderr
