"""dedupctl top: tables and JSON where there is no terminal; on one it shows itself until it is ended, and all is as before."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import termios

import pytest

from ctl import FINE, USAGE, dedupctl
from form import TEST_BUILD
from stores import TIMEOUT, noise, parts, shared_site

NODES = ["n0", "n1", "n2"]
SIZE = 3 << 20
SHOWN, GONE = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    site = shared_site(tmp_path)
    site.write(parts(noise(1, SIZE), 3), NODES, 3)
    return site


def top(site, *arguments, code=FINE, **keywords):
    answer = dedupctl(site, "top", "--interval", "0.01s", *arguments, **keywords)
    assert answer.code == code, answer
    return answer


def test_a_table_for_each_look(site, where):
    answer = top(site, "--count", "3", nodes=where(NODES))
    tables = answer.out.split("\n\n")
    assert answer.out.count("NODE  FILES") == 3 and len(tables) == 6, answer
    rows = [line.split() for line in tables[0].splitlines()]
    assert [row[0] for row in rows] == ["NODE", *NODES] and all(row[1] == "1" for row in rows[1:])
    assert [line.split()[4] for line in tables[0].splitlines()[1:]] == ["-"] * 3
    # The same as before, a moment ago.
    changes = [re.findall(r"(\S+ B/s|\S+ .iB/s)", table) for table in tables[2::2]]
    assert changes == [["0 B/s"] * 3] * 2, answer
    assert "1 file\n" in answer.out and "\x1b" not in answer.out


def test_json_lines(site):
    lines = [json.loads(line) for line in top(site, "--json", "--count", "2").out.splitlines()]
    assert [line["command"] for line in lines] == ["top"] * 2
    for line, change in zip(lines, (None, 0)):
        assert [(node["node"], node["state"], node["files"], node["bytes_a_second"]) for node in line["nodes"]] == [
            (name, "here", 1, change) for name in NODES]
        assert sum(node["disk_bytes"] for node in line["nodes"]) > 2 * SIZE
        assert (line["files"], line["files_open"], line["files_to_heal"]) == (1, 0, 0)


def test_nodes_that_are_missing_or_behind(site):
    site.lose("n1")
    site.write(parts(noise(2, SIZE), 2), ["n0", "n2"], 2, mode="w")
    site.bring_back("n1")
    site.lose("n2")
    answer = top(site, "--count", "1")
    assert re.search(r"^n2 +1 .* missing, with 1 file$", answer.out, re.M), answer
    line = json.loads(top(site, "--json", "--count", "1").out)
    assert {node["node"]: node["state"] for node in line["nodes"]} == {"n0": "here", "n1": "here", "n2": "missing"}
    assert line["files_to_heal"] == 1 and "1 on fewer nodes than wanted" in answer.out


def test_a_running_job_is_seen(site, tmp_path):
    """Commits of its report are added up from the first look on; the stores that it makes are seen."""
    report = tmp_path / "report"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEDUP_")}
    command = [TEST_BUILD / "bin" / "dedupctl", "--store", site.stores, "--json", "top", "--interval", "0.05s",
               "--report", report]
    with subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True) as process:
        first = json.loads(process.stdout.readline())
        site.variables = {"DEDUP_REPORT": str(report)}
        site.write(parts(noise(3, SIZE), 4), [*NODES, "n3"], 4)
        for text in process.stdout:
            line = json.loads(text)
            if line["commits"]["count"] == 1 and len(line["nodes"]) == 4:
                break
        process.terminate()
        process.communicate(timeout=TIMEOUT)
    assert first["commits"]["count"] == 0 and len(first["nodes"]) == 3
    assert line["commits"]["bytes_written"] == SIZE and line["commits"]["bytes_sent"] == SIZE


class Terminal:
    """dedupctl top on a terminal of its own."""

    def __init__(self, site, *arguments):
        self.own, self.its = pty.openpty()
        self.before = termios.tcgetattr(self.its)
        self.output = b""
        command = [TEST_BUILD / "bin" / "dedupctl", "--store", site.stores, "top", *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DEDUP_")}
        self.process = subprocess.Popen([str(word) for word in command], stdin=self.its, stdout=self.its,
                                        stderr=subprocess.PIPE, env=environment, start_new_session=True)

    def wait_for(self, text):
        while text not in self.output:
            ready, _, _ = select.select([self.own], [], [], TIMEOUT)
            assert ready, self.output
            self.output += os.read(self.own, 65536)

    def end(self):
        _, errors = self.process.communicate(timeout=TIMEOUT)
        self.wait_for(GONE)
        after = termios.tcgetattr(self.its)
        os.close(self.own)
        os.close(self.its)
        assert after == self.before
        return self.process.returncode, errors


@pytest.mark.parametrize("how", ["q", "\x03", signal.SIGTERM, signal.SIGINT])
def test_on_a_terminal(site, how):
    """It never looks twice by itself here. A signal does what it does once the terminal is as it was."""
    terminal = Terminal(site, "--interval", "9d")
    terminal.wait_for(b"1 file\x1b[K")
    assert terminal.output.startswith(SHOWN) and b"n2" in terminal.output and GONE not in terminal.output
    during = termios.tcgetattr(terminal.its)[3]
    assert during & (termios.ECHO | termios.ICANON) == 0
    if isinstance(how, str):
        os.write(terminal.own, b"x" + how.encode())
    else:
        terminal.process.send_signal(how)
    assert terminal.end() == (FINE if isinstance(how, str) else -how, b"")


def test_on_a_terminal_for_so_many_looks(site):
    terminal = Terminal(site, "--interval", "0.01s", "--count", "2")
    assert terminal.end() == (FINE, b"")
    assert terminal.output.count(b"NODE  FILES") == 2


def test_what_heals_in_a_job_shows_how_far_it_is(site):
    """The job's standard error is a pipe, and what starts it has a terminal."""
    site.lose("n1")
    own, its = pty.openpty()
    command = [TEST_BUILD / "bin" / "dedupctl", "--store", site.stores, "heal"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEDUP_")}
    done = subprocess.run([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=its, timeout=TIMEOUT, check=True)
    shown = os.read(own, 65536)
    os.close(own)
    os.close(its)
    assert b"\rhealing [....." in shown and b"] 0 B of 3.0 MiB" in shown and shown.endswith(b"\r\x1b[K"), shown
    assert b"copies made" in done.stdout and b"\r" not in done.stdout
    assert "[" not in dedupctl(site, "heal").err


@pytest.mark.parametrize("arguments", [["--count", "0"], ["--interval", "soon"], ["--interval", "0s"]])
def test_what_is_wrong_with_the_arguments(site, arguments):
    assert dedupctl(site, "top", *arguments).code == USAGE
