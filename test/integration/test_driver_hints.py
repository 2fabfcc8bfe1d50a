"""Hints: what is checked, where they come from, what MPI_File_get_info and the report say."""

import collections
import json

import pytest

from conftest import only_dedup

pytestmark = [only_dedup, pytest.mark.form]

Result = collections.namedtuple("Result", "rank error text")


class Output:
    """What programs/hints.c printed."""

    def __init__(self, result):
        self.stderr = result.stderr
        self.results = collections.defaultdict(list)  # "open": [Result, ...], ...
        self.info = collections.defaultdict(dict)  # rank: hints, of the last "info"
        for line in result.stdout.splitlines():
            kind, rank, word, text = (line + " ").split(" ", 3)
            if kind == "info":
                self.info[int(rank)][word] = text.rstrip()
            else:
                self.results[kind].append(Result(int(rank), word, text.rstrip()))

    def warnings(self):
        return [line for line in self.stderr.splitlines() if line.startswith("dedup: warning")]


@pytest.fixture
def hints(mpirun):
    """Runs the steps that programs/hints.c takes."""

    def run(*steps, ranks=3, nodes=3, **keywords):
        return Output(mpirun(ranks, "hints", *steps, nodes=nodes, **keywords))

    return run


def assert_all_fail(output, error, *parts, ranks=3):
    assert [r.rank for r in output.results["open"]] == list(range(ranks))
    for result in output.results["open"]:
        assert result.error == error
    # Every rank is told; the whole text, which MPI cuts, is on standard error.
    everything = " ".join(r.text for r in output.results["open"]) + output.stderr
    for part in parts:
        assert part in everything, everything


# ---- Bad values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("hint, value, allowed", [
    ("dedup_replication", "0", "1 to 16"),
    ("dedup_replication", "17", "1 to 16"),
    ("dedup_replication", "two", "1 to 16"),
    ("dedup_threshold", "0", "1 to 16777216"),
    ("dedup_chunk_size", "511", "512 to 1 MiB"),
    ("dedup_chunk_size", "2 MiB", "512 to 1 MiB"),
    ("dedup_chunk_size", "4 apples", "512 to 1 MiB"),
    ("dedup_mode", "global", "collective, local or none"),
    ("dedup_fingerprint", "md5", "keyed, sha256 or sha1"),
    ("dedup_reduction", "all", "exact or tree"),
    ("dedup_partners", "any", "load or ring"),
    ("dedup_group", "0", "1 to 64"),
    ("dedup_exchange", "get", "put or send"),
    ("dedup_visibility", "never", "immediate or sync"),
    ("dedup_fsync", "close", "commit or never"),
    ("dedup_flush", "later", "none, background or close"),
    ("dedup_buffer", "1K", "1 MiB to 1 TiB"),
    ("dedup_heal_rate", "2 TiB", "0 to 1 TiB"),
    ("dedup_store", "relative/path", "an absolute path"),
    ("dedup_store", "/tmp/%h", "%n"),
])
def test_bad_value_fails_the_open(hints, stores, hint, value, allowed):
    output = hints("set", f"{hint}={value}", "open", stores.name())
    assert_all_fail(output, "MPI_ERR_INFO_VALUE", hint, f'"{value}"', allowed)
    for result in output.results["open"]:
        assert hint in result.text and value in result.text


def test_bad_value_on_one_rank_fails_the_open_on_all(hints, stores):
    output = hints("set@1", "dedup_mode=global", "open", stores.name())
    assert_all_fail(output, "MPI_ERR_INFO_VALUE", "dedup_mode", "global")


def test_bad_value_in_the_environment(hints, stores):
    output = hints("open", stores.name(), env={"DEDUP_CHUNK_SIZE": "7"})
    assert_all_fail(output, "MPI_ERR_INFO_VALUE", "dedup_chunk_size", "DEDUP_CHUNK_SIZE", '"7"')


def test_after_a_failed_open_the_job_goes_on(hints, stores):
    output = hints("set", "dedup_replication=99", "open", stores.name(), "set",
                   "dedup_replication=3", "open", stores.name(), "info", "write", "5000", "close")
    assert [r.error for r in output.results["open"]] == ["MPI_ERR_INFO_VALUE"] * 3 + [
        "MPI_SUCCESS"] * 3
    assert output.info[0]["dedup_replication"] == "3"


# ---- Agreement ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hint, value", [
    ("dedup_replication", "3"), ("dedup_threshold", "77"), ("dedup_chunk_size", "8192"),
    ("dedup_mode", "none"), ("dedup_reduction", "exact"), ("dedup_partners", "ring"),
    ("dedup_group", "3"), ("dedup_exchange", "put"), ("dedup_visibility", "sync"), ("dedup_fsync", "never"),
    ("dedup_buffer", "2 MiB"), ("dedup_heal_rate", "5M")])
def test_hint_on_one_rank_only_is_not_the_same(hints, stores, hint, value):
    for rank in (0, 2):
        output = hints(f"set@{rank}", f"{hint}={value}", "open", stores.name())
        assert_all_fail(output, "MPI_ERR_NOT_SAME", hint)


def test_sha1_is_taken_for_sha256(hints, stores):
    output = hints("set", "dedup_fingerprint=sha256", "set@1", "dedup_fingerprint=sha1",
                   "open", stores.name(), "info", "close")
    assert [r.error for r in output.results["open"]] == ["MPI_SUCCESS"] * 3
    assert output.info[0]["dedup_fingerprint"] == "sha256"


def test_report_may_differ(hints, stores):
    report = stores.files / "report"
    output = hints("set@0", f"dedup_report={report}", "open", stores.name(), "write", "100",
                   "close")
    assert [r.error for r in output.results["open"]] == ["MPI_SUCCESS"] * 3
    assert len(report.read_text().splitlines()) == 1


# ---- Unknown hints --------------------------------------------------------------------------------


def test_unknown_hint_is_one_warning_for_a_process(hints, stores):
    name = stores.name()
    output = hints("set", "dedup_replicas=3", "set", "foo=bar", "open", name, "write", "100",
                   "close", "open", name, "set_info", "close")
    assert [r.error for r in output.results["open"]] == ["MPI_SUCCESS"] * 6
    warnings = [w for w in output.warnings() if "dedup_replicas" in w]
    assert len(warnings) == 3, output.stderr  # one for each of three ranks
    assert "foo" not in output.stderr


def test_two_unknown_hints_are_two_warnings(hints, stores):
    output = hints("set@1", "dedup_one=1", "set@1", "dedup_two=2", "open", stores.name(), "close")
    assert len(output.warnings()) == 2, output.stderr
    for hint in ("dedup_one", "dedup_two"):
        assert sum(hint in w for w in output.warnings()) == 1


# ---- What is in force -----------------------------------------------------------------------------


def test_get_info_returns_the_defaults(hints, stores):
    output = hints("open", stores.name(), "info", "close")
    for rank in range(3):
        info = output.info[rank]
        assert info["dedup_replication"] == "2"
        assert info["dedup_threshold"] == "131072"
        assert info["dedup_chunk_size"] == "4096"
        assert info["dedup_mode"] == "collective"
        assert info["dedup_fingerprint"] == "keyed"
        assert info["dedup_partners"] == "load"
        assert info["dedup_group"] == "8"
        assert info["dedup_exchange"] == "send"
        assert info["dedup_visibility"] == "immediate"
        assert info["dedup_fsync"] == "commit"
        assert info["dedup_flush"] == "none"
        assert info["dedup_buffer"] == str(64 << 20)
        assert "dedup_report" not in info
        assert info["dedup_store"].startswith(str(stores.directory))
        assert not [key for key in info if key.startswith("dedup_last_")]
    assert not output.warnings()


def test_info_goes_before_the_hints_file_before_the_environment(hints, stores):
    hints_file = stores.files / "hints"
    hints_file.write_text("dedup_replication 3\ndedup_chunk_size 8192\ndedup_threshold 5\n")
    output = hints("set", "dedup_replication=4", "open", stores.name(), "info", "close", env={
        "ROMIO_HINTS": hints_file, "DEDUP_REPLICATION": "5", "DEDUP_CHUNK_SIZE": "16 KiB",
        "DEDUP_MODE": "local"})
    assert [r.error for r in output.results["open"]] == ["MPI_SUCCESS"] * 3, output.results
    info = output.info[0]
    assert info["dedup_replication"] == "4"
    assert info["dedup_chunk_size"] == "8192"
    assert info["dedup_threshold"] == "5"
    assert info["dedup_mode"] == "local"


def test_bad_value_in_the_hints_file(hints, stores):
    hints_file = stores.files / "hints"
    hints_file.write_text("dedup_mode everything\n")
    output = hints("open", stores.name(), env={"ROMIO_HINTS": hints_file})
    assert_all_fail(output, "MPI_ERR_INFO_VALUE", "dedup_mode", '"everything"', "hints file")


def test_empty_variable_counts_as_not_set(hints, stores):
    output = hints("open", stores.name(), "info", "close", env={"DEDUP_REPLICATION": ""})
    assert output.info[0]["dedup_replication"] == "2"


def test_info_handed_back_is_taken_in_silence(hints, stores):
    name = stores.name()
    output = hints("set", "dedup_chunk_size=8K", "open", name, "write", "10000", "sync", "again",
                   "close", "open", name, "info", "set_info", "close")
    assert [r.error for r in output.results["open"]] == ["MPI_SUCCESS"] * 6
    assert [r.error for r in output.results["set_info"]] == ["MPI_SUCCESS"] * 3
    assert output.info[0]["dedup_chunk_size"] == "8192"
    assert "dedup" not in output.stderr, output.stderr


def test_set_info_takes_what_can_change(hints, stores):
    output = hints("open", stores.name(), "set", "dedup_threshold=9", "set", "dedup_fsync=never",
                   "set", "dedup_chunk_size=8192", "set_info", "info", "write", "100", "close")
    assert [r.error for r in output.results["set_info"]] == ["MPI_SUCCESS"] * 3
    info = output.info[0]
    assert info["dedup_threshold"] == "9"
    assert info["dedup_fsync"] == "never"
    assert info["dedup_chunk_size"] == "4096"  # fixed while the file is open


def test_set_info_refuses_a_bad_value(hints, stores):
    output = hints("open", stores.name(), "set@2", "dedup_threshold=none", "set_info", "info",
                   "write", "100", "close")
    assert [r.error for r in output.results["set_info"]] == ["MPI_ERR_INFO_VALUE"] * 3
    assert output.info[0]["dedup_threshold"] == "131072"


def test_store_hint_names_the_nodes(hints, stores):
    other = stores.files / "elsewhere"
    other.mkdir()
    hints("set", f"dedup_store={other}/of-%n", "open", stores.name(), "write", "10000", "close")
    assert sorted(entry.name for entry in other.iterdir()) == ["of-n0", "of-n1", "of-n2"]


# ---- What the last commit did ---------------------------------------------------------------------

BYTES = ["bytes_written", "bytes_zero", "bytes_unique_local", "bytes_unique_collective",
         "bytes_stored", "bytes_sent", "bytes_received", "bytes_reducing", "merges"]
SECONDS = ["seconds_hashing", "seconds_reducing", "seconds_exchanging", "seconds_storing"]


def test_last_commit_is_told_after_a_sync(hints, stores):
    output = hints("open", stores.name(), "write", "40960", "sync", "info", "close")
    for rank in range(3):
        info = output.info[rank]
        assert info["dedup_last_generation"] == "1"
        for figure in BYTES + SECONDS:
            assert float(info["dedup_last_" + figure]) >= 0
            total = sum(float(output.info[r]["dedup_last_" + figure]) for r in range(3))
            assert float(info["dedup_last_total_" + figure]) == pytest.approx(total, abs=1e-5)
        assert info["dedup_last_bytes_written"] == "40960"
        assert info["dedup_last_total_bytes_written"] == str(3 * 40960)
        assert info["dedup_last_bytes_zero"] == "0"
        assert info["dedup_last_total_bytes_unique_collective"] == str(3 * 40960)
        assert info["dedup_last_total_bytes_stored"] == str(2 * 3 * 40960)
        assert info["dedup_last_total_bytes_sent"] == str(3 * 40960)
        assert info["dedup_last_total_bytes_received"] == str(3 * 40960)


def test_last_commit_is_the_last_one(hints, stores):
    output = hints("open", stores.name(), "write", "40960", "sync", "write", "8192", "sync", "info",
                   "close")
    assert output.info[1]["dedup_last_generation"] == "2"
    assert output.info[1]["dedup_last_bytes_written"] == "8192"
    assert output.info[1]["dedup_last_total_bytes_written"] == str(3 * 8192)


@pytest.mark.parametrize("ranks, nodes, replication", [(1, 1, 1), (3, 3, 2), (5, 2, 3)])
def test_report_has_a_line_for_each_commit(hints, stores, ranks, nodes, replication):
    report = stores.files / "report.json"
    name = stores.name("a file")
    hints("open", name, "write", "40960", "sync", "sync", "write", "8192", "close", ranks=ranks,
          nodes=nodes, env={"DEDUP_REPORT": report, "DEDUP_REPLICATION": replication})
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line["generation"] for line in lines] == [1, 2]
    copies = min(nodes, replication)
    for line, written in zip(lines, (40960, 8192)):
        assert line["file"] == name.removeprefix("dedup:")
        assert line["mode"] == "collective"
        assert line["replication"] == replication
        assert line["chunk_size"] == 4096
        assert (line["ranks"], line["nodes"]) == (ranks, nodes)
        assert line["lowest_copies"] == copies
        assert line["node_sets"] >= 1
        assert line["losses_survived"] == copies - 1
        assert line["loss_odds"] == sorted(line["loss_odds"]) and 0 < line["loss_odds"][0] <= 1
        assert len(line["loss_odds"]) == min(3, nodes - line["losses_survived"])
        assert len(line["identity"]) == 32
        for figure in BYTES + SECONDS:
            f = line[figure]
            assert set(f) == {"total", "min", "avg", "max"}
            assert 0 <= f["min"] <= f["avg"] + 1e-9 and f["avg"] <= f["max"] + 1e-9
            assert f["max"] <= f["total"] + 1e-9
            assert f["avg"] * ranks == pytest.approx(f["total"], abs=1e-6)
        assert line["bytes_written"] == {"total": ranks * written, "min": written, "avg": written,
                                         "max": written}
        assert line["bytes_stored"]["total"] == copies * ranks * written
        assert line["bytes_sent"]["total"] == line["bytes_received"]["total"]
        assert line["bytes_sent"]["total"] == (copies - 1) * ranks * written
        # Two trees, up which few chunks go: over the ranks of each node, and over the nodes.
        assert line["merges"]["total"] == ranks - 1
        assert (line["bytes_reducing"]["min"] > 0) == (ranks > 1)
    assert lines[0]["identity"] == lines[1]["identity"]


def test_report_that_cannot_be_written_is_no_reason_to_fail(hints, stores):
    output = hints("open", stores.name(), "write", "100", "sync", "close",
                   env={"DEDUP_REPORT": stores.files / "missing" / "report"})
    assert [r.error for r in output.results["open"]] == ["MPI_SUCCESS"] * 3
    assert "report" in output.stderr
