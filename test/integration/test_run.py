"""dedup-run: what it makes of runs that end, and of nodes that are lost.

Most tests run it beside a dedup-mpiexec that stands in for the real one: it notes how it is called, and does what
the test says. The last ones run it with the real one on simulated nodes; test_run_slurm.py does in jobs of Slurm,
test/cluster/test_run.py on hosts that are killed.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import completion
from conftest import clean_environment
from form import BUILD, PREFIX, TEST_BUILD

TIMEOUT = 60

# In $FAKE: `down` and `mute` name hosts on which nothing starts, or only hangs; `program`, `heal` and `export` are what
# these do; what it was called with comes into `calls`.
LAUNCHER = r"""#!/bin/bash
printf '%s\0' "$@" $'\1' >>"$FAKE/calls"
options=("$@")
for i in "${!options[@]}"; do
  [[ ${options[i]} != -hosts ]] || hosts=${options[i + 1]}
  [[ ${options[i]} != -genv ]] || export "${options[i + 1]}=${options[i + 2]}"
done
touch "$FAKE"/{down,mute}
if [[ ${!#} == true ]]; then
  for host in ${hosts//,/ }; do
    grep -qx "$host" "$FAKE/mute" && { touch "$FAKE/hangs"; exec sleep 1000; }
    grep -qx "$host" "$FAKE/down" && { echo "no way to $host" >&2; exit 7; }
  done
  exit 0
fi
what=program
for word; do [[ $before != */dedupctl ]] || what=$word; before=$word; done
[[ -e $FAKE/$what ]] || exit 0
exec bash "$FAKE/$what" "$@"
"""

SLURM = {
    "scontrol": '[[ $* == "show hostnames "* ]] && tr , "\\n" <<<"$3"',
    "squeue": '[[ $* == "-h -j 77 -o %N" ]] && cat "$FAKE/allocation"',
    "sinfo": 'cat "$FAKE/states"',
}


class Tree:
    """dedup-run and what it starts, in a directory of their own, which has a space in its name."""

    def __init__(self, root):
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        shutil.copy(BUILD / "tools" / "dedup-run", self.bin)
        self.program = self.bin / "dedup-run"
        self.put(self.bin / "dedup-mpiexec", LAUNCHER)
        self.environment = {**clean_environment(), "FAKE": str(root), "TMPDIR": str(root)}

    def put(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def does(self, what, text):
        """What the program, heal or export do. The program knows DEDUP_RUN."""
        (self.root / what).write_text(text)

    def waits(self, name, code):
        """The program waits for a signal, and then ends with this code; with None it does not end."""
        (self.root / "waits.py").write_text(WAITS.format(name=name, code=code))
        self.does("program", 'exec /usr/bin/python3 "$FAKE/waits.py"')

    def loses(self, *hosts, kind="down", code=9):
        """Of each run but the last one, the next of these hosts is lost in it."""
        cases = "".join(f"{run}) echo {host} >>\"$FAKE/{kind}\"; exit {code};;" for run, host in enumerate(hosts, 1))
        self.does("program", f"case $DEDUP_RUN in {cases} esac")

    def slurm(self, nodes, tasks="1"):
        commands = self.root / "slurm"
        commands.mkdir()
        for name, text in SLURM.items():
            self.put(commands / name, f"#!/bin/bash\n{text}\n")
        self.environment.update({"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": nodes, "SLURM_TASKS_PER_NODE": tasks,
                                 "PATH": f"{commands}:{os.environ['PATH']}"})
        (self.root / "allocation").write_text(nodes + "\n")
        (self.root / "states").write_text("")

    def start(self, *arguments, stdin=subprocess.DEVNULL, **environment):
        return subprocess.Popen([str(word) for word in (self.program, *arguments)], stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.root,
                                env={**self.environment, **environment}, start_new_session=True,
                                preexec_fn=hear_hangups)

    def run(self, *arguments, **environment):
        return finish(self.start(*arguments, **environment))

    def wait_for(self, process, name):
        """Until the program has made this file."""
        end = time.monotonic() + TIMEOUT
        while not (self.root / name).exists():
            assert process.poll() is None and time.monotonic() < end, finish(process)
            time.sleep(0.01)

    def calls(self):
        """How dedup-mpiexec was called: (what, words)."""
        path = self.root / "calls"
        words = [call.split("\0")[:-1] for call in path.read_text().split("\1\0")[:-1]] if path.exists() else []
        return [(self._what(call), call) for call in words]

    def _what(self, words):
        if words[-1] == "true":
            return "probe"
        dedupctl = str(self.bin / "dedupctl")
        return words[words.index(dedupctl) + 1] if dedupctl in words else "run"

    def runs(self):
        return [words for what, words in self.calls() if what == "run"]

    def order(self):
        """What was started, without probes, and on which hosts."""
        return [(what, after(words, "-hosts") or after(words, "--nodes")) for what, words in self.calls()
                if what != "probe"]


def after(words, option):
    return words[words.index(option) + 1] if option in words else None


def hear_hangups():
    """Whoever started the tests may have had them not: what is ignored from the start stays so in a shell."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def finish(process):
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"hangs: {process.communicate()}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def said(result):
    """Its own lines on standard error, without its name."""
    lines = result.stderr.splitlines()
    return [line.removeprefix("dedup-run: ") for line in lines if line.startswith("dedup-run: ")]


@pytest.fixture
def tree(tmp_path):
    made = Tree(tmp_path / "a tree")
    yield made
    # Whatever happened, nothing of its own is left.
    assert not list(made.root.glob("dedup-run.*"))


# ---- Without a loss -----------------------------------------------------------------------------


def test_an_undisturbed_program(tree):
    tree.does("program", 'echo "run $DEDUP_RUN, lost: <$DEDUP_LOST_NODES>"')
    result = tree.run("-hosts", "a,b", "-n", 2, "prog", "x")
    assert (result.returncode, result.stdout, result.stderr) == (0, "run 1, lost: <>\n", "")
    assert tree.runs() == [["-hosts", "a:1,b:1", "-genv", "DEDUP_RUN", "1", "-genv", "DEDUP_LOST_NODES", "", "-n", "2",
                            "prog", "x"]]
    assert tree.order() == [("run", "a:1,b:1")]


@pytest.mark.parametrize("code", [1, 9, 137, 255])
def test_a_program_that_fails_by_itself_is_not_started_again(tree, code):
    tree.does("program", f"exit {code}")
    result = tree.run("-hosts", "a,b", "prog")
    assert result.returncode == code
    assert said(result) == [f"run 1 ended with exit code {code}, and no node is lost: not started again"]
    assert len(tree.runs()) == 1


def test_retries_are_for_failures_of_the_programs_own(tree):
    tree.does("program", "exit $((40 + DEDUP_RUN))")
    result = tree.run("--retries", 2, "-hosts", "a,b", "prog")
    assert result.returncode == 43
    assert [what for what, _ in tree.order()] == ["run"] * 3  # there is nothing to be healed
    assert said(result) == [
        "run 1 ended with exit code 41, and no node is lost: tried again", "run 2 on a, b",
        "run 2 ended with exit code 42, and no node is lost: tried again", "run 3 on a, b",
        "run 3 ended with exit code 43, and no node is lost: not started again"]


def test_arguments_arrive_unchanged(tree):
    awkward = ["", "a b", "*", "$HOME", '"', "'", "\\", "--nodes", "-hosts", "line\nline", ":", "-n", "3", "other"]
    tree.does("program", "[[ $DEDUP_RUN == 2 ]] || { echo b >>\"$FAKE/down\"; exit 1; }")
    result = tree.run("--all-files", "--store", "some where", "-genv", "A", "b c", "-genv", "D=e f", "-hosts", "a,b",
                      "-np", 2, "-ppn", 1, "-launcher", "ssh", "-frob", "x y", "prog", *awkward)
    assert result.returncode == 0, result.stderr
    own = ["--all-files", "--store", "some where", "-genv", "A", "b c", "-genv", "D=e f", "-launcher",
           "ssh", "-hosts"]
    for number, (words, hosts) in enumerate(zip(tree.runs(), ["a:1,b:1", "a:1"]), 1):
        assert words[:len(own)] == own and words[len(own)] == hosts
        lost = ["", "b"][number - 1]
        assert words[len(own) + 1:] == ["-genv", "DEDUP_RUN", str(number), "-genv", "DEDUP_LOST_NODES", lost, "-n", "2",
                                        "-ppn", "1", "-frob", "x y", "prog", *awkward]
    # What concerns all that is started does so with probes and healing, too.
    for what, words in tree.calls():
        assert what == "run" or words[:len(own)] == own and words[len(own) + 1:][:2] == ["-ppn", "1"], words


@pytest.mark.parametrize("option", ["--mount", "--mount=/m n"])
def test_the_mount_is_the_programs(tree, option):
    """And not that of probes and of healing, which come between its runs."""
    tree.does("program", "[[ $DEDUP_RUN == 2 ]] || { echo b >>\"$FAKE/down\"; exit 1; }")
    assert tree.run(option, "-hosts", "a,b", "prog").returncode == 0
    calls = tree.calls()
    assert {what for what, _ in calls} >= {"run", "heal"}
    for what, words in calls:
        assert (words[0] == option) == (what == "run"), words


def test_standard_input_goes_to_the_program(tree):
    tree.does("program", "cat")
    process = tree.start("-hosts", "a", "prog", stdin=subprocess.PIPE)
    out, err = process.communicate("a line\n", timeout=TIMEOUT)
    assert (process.returncode, out, err) == (0, "a line\n", "")


# ---- Lost nodes ---------------------------------------------------------------------------------


def test_a_lost_host_is_healed_and_left_out(tree):
    tree.loses("b", "d", code=137)
    result = tree.run("-hosts", "a:2,b:2,c:2,d:3", "prog")
    assert result.returncode == 0, result.stderr
    assert tree.order() == [("run", "a:2,b:2,c:2,d:3"), ("heal", "a,c,d"), ("run", "a:2,c:2,d:3"), ("heal", "a,c"),
                            ("run", "a:2,c:2")]
    assert [after(words[words.index("DEDUP_RUN"):], "-genv") for words in tree.runs()] == ["DEDUP_LOST_NODES"] * 3
    assert [after(words, "DEDUP_LOST_NODES") for words in tree.runs()] == ["", "b", "b,d"]
    assert said(result) == [
        "run 1 ended with exit code 137; lost: b", "heals what is stored on a, c, d", "run 2 on a, c, d",
        "run 2 ended with exit code 137; lost: d", "heals what is stored on a, c", "run 3 on a, c"]


def test_a_host_that_only_does_not_answer(tree):
    tree.loses("b", kind="mute")
    result = tree.run("-hosts", "a,b,c", "prog", DEDUP_NODE_TIMEOUT="1")
    assert result.returncode == 0, result.stderr
    assert tree.order()[-1] == ("run", "a:1,c:1")
    # Before the first run once; after it in half of the time, and in all of it.
    assert sum(what == "probe" and after(words, "-hosts") == "b" for what, words in tree.calls()) == 3


@pytest.mark.parametrize("kind, ends", [("down", "exit 7;"), ("mute", "exec sleep 1000;")])
def test_a_host_that_cannot_be_asked_once_is_not_lost(tree, kind, ends):
    """mpiexec may also wait where what it started another host with has failed."""
    tree.does("program", f'[[ $DEDUP_RUN == 2 ]] || {{ echo b >>"$FAKE/{kind}"; exit 5; }}')
    # Whoever asks finds it so, and it is up again.
    launcher = LAUNCHER.replace(ends, f': >"$FAKE/{kind}"; {ends}')
    assert launcher != LAUNCHER
    tree.put(tree.bin / "dedup-mpiexec", launcher)
    result = tree.run("-hosts", "a,b", "prog", DEDUP_NODE_TIMEOUT="2")
    assert result.returncode == 5 and "no node is lost" in said(result)[0]


def test_many_hosts_are_asked_at_once(tree):
    hosts = [f"h{number}" for number in range(40)]
    tree.loses("h17", "h3")
    (tree.root / "hosts").write_text("\n".join(hosts))
    result = tree.run("-f", "hosts", "prog")
    assert result.returncode == 0, result.stderr
    probes = [after(words, "-hosts").split(",") for what, words in tree.calls() if what == "probe"]
    assert probes[0] == hosts  # before the first run, all are there
    assert sorted(len(asked) for asked in probes) == [1] * (40 + 1 + 39 + 1) + [39, 40, 40]
    assert after(tree.runs()[-1], "-hosts").count(":1") == 38


def test_spares_take_the_places_of_lost_nodes(tree):
    tree.loses("b", "a", "e")
    result = tree.run("--spares", 2, "-hosts", "a,b,c,d:4,e", "prog")
    assert result.returncode == 0, result.stderr
    assert [hosts for what, hosts in tree.order() if what == "run"] == [
        "a:1,b:1,c:1", "a:1,d:4,c:1", "e:1,d:4,c:1", "d:4,c:1"]
    assert "d takes the place of b" in said(result) and "e takes the place of a" in said(result)


def test_a_lost_spare_takes_nobodys_place(tree):
    tree.does("program", '[[ $DEDUP_RUN == 2 ]] || { printf "%s\\n" d b >>"$FAKE/down"; exit 1; }')
    result = tree.run("--spares=2", "-hosts", "a,b,d,c", "prog")
    assert result.returncode == 0, result.stderr
    assert tree.order() == [("run", "a:1,b:1"), ("heal", "a,c"), ("run", "a:1,c:1")]
    assert said(result)[0].endswith("lost: b")


def test_a_lost_spare_alone_is_no_reason_to_start_again(tree):
    tree.does("program", 'echo c >>"$FAKE/down"; exit 1')
    result = tree.run("--spares=1", "-hosts", "a,b,c", "prog")
    assert result.returncode == 1
    assert said(result) == ["run 1 ended with exit code 1, and no node is lost: not started again"]


def test_hosts_that_are_not_there_at_the_beginning(tree):
    (tree.root / "down").write_text("a\nd\n")
    result = tree.run("--spares=2", "-hosts", "a,b,c,d,e", "prog")
    assert result.returncode == 0
    assert tree.order() == [("run", "e:1,b:1,c:1")]
    assert said(result) == ["not there: a, d", "e takes the place of a"]
    assert after(tree.runs()[0], "DEDUP_LOST_NODES") == ""


def test_no_host_is_there_at_the_beginning(tree):
    (tree.root / "down").write_text("a\nb\n")
    result = tree.run("-hosts", "a,b", "prog")
    assert result.returncode == 1 and tree.order() == []
    assert said(result) == ["nothing can be started on any of the nodes"]
    assert "no way to" in result.stderr


def test_too_few_nodes(tree):
    tree.loses("b", "c")
    result = tree.run("--min-nodes", 3, "-hosts", "a,b,c,d", "prog")
    assert result.returncode == 9
    assert tree.order() == [("run", "a:1,b:1,c:1,d:1"), ("heal", "a,c,d"), ("run", "a:1,c:1,d:1")]
    assert said(result)[-1] == "it takes 3 nodes, and 2 are there"


def test_too_few_nodes_at_the_beginning(tree):
    (tree.root / "down").write_text("b\n")
    result = tree.run("--min-nodes", 2, "-hosts", "a,b", "prog")
    assert result.returncode == 1 and tree.order() == []
    assert said(result) == ["not there: b", "it takes 2 nodes, and 1 are there"]


def test_all_nodes_are_lost(tree):
    tree.does("program", 'printf "%s\\n" a b >>"$FAKE/down"; exit 3')
    result = tree.run("--export", "-hosts", "a,b", "prog")
    assert result.returncode == 3 and tree.order() == [("run", "a:1,b:1")]
    assert said(result)[-1] == "it takes 1 nodes, and 0 are there"


@pytest.mark.parametrize("most", [0, 1])
def test_so_many_restarts_at_most(tree, most):
    tree.loses("b", "c", "d")
    result = tree.run("--max-restarts", most, "-hosts", "a,b,c,d", "prog")
    assert result.returncode == 9
    assert len(tree.runs()) == most + 1
    assert said(result)[-1] == f"started again {most} times: not once more"


def test_ranks_are_dealt_evenly(tree):
    """Where there are more than the hosts are for; mpiexec would go round."""
    tree.loses("b", "c")
    result = tree.run("-hosts", "a:4,b:4,c:4,d:4", "-n", 16, "prog")
    assert result.returncode == 0
    assert [hosts for what, hosts in tree.order() if what == "run"] == [
        "a:4,b:4,c:4,d:4", "a:5,c:5,d:6", "a:8,d:8"]


# ---- Healing ------------------------------------------------------------------------------------


def test_healing_is_left_out(tree):
    tree.loses("b")
    assert tree.run("--no-heal", "-hosts", "a,b", "prog").returncode == 0
    assert tree.order() == [("run", "a:1,b:1"), ("run", "a:1")]


@pytest.mark.parametrize("code, words", [(0, None), (1, None), (3, None), (4, "goes on without"), (10, "goes on")])
def test_healing_that_fails(tree, code, words):
    """1: on fewer nodes than it should have copies; 3: there is no store yet."""
    tree.loses("b")
    tree.does("heal", f"echo healed; exit {code}")
    result = tree.run("-hosts", "a,b", "prog")
    assert result.returncode == 0 and len(tree.runs()) == 2
    assert "healed\n" in result.stderr and result.stdout == ""
    found = [line for line in said(result) if line.startswith("healing ended")]
    assert (found == []) if words is None else (words in found[0] and f"exit code {code}" in found[0])


def test_a_host_is_lost_while_healing(tree):
    tree.loses("b")
    tree.does("heal", 'grep -q c "$FAKE/down" || { echo c >>"$FAKE/down"; exit 6; }')
    result = tree.run("--spares=1", "-hosts", "a,b,c,d", "prog")
    assert result.returncode == 0, result.stderr
    assert tree.order() == [("run", "a:1,b:1,c:1"), ("heal", "a,d,c"), ("heal", "a,d"), ("run", "a:1,d:1")]
    assert "lost meanwhile: c" in said(result)


def test_too_few_hosts_after_healing(tree):
    tree.loses("b")
    tree.does("heal", 'echo c >>"$FAKE/down"; exit 6')
    result = tree.run("--min-nodes=2", "-hosts", "a,b,c", "prog")
    assert result.returncode == 9
    assert tree.order() == [("run", "a:1,b:1,c:1"), ("heal", "a,c")]


# ---- Other arguments in later runs --------------------------------------------------------------


def test_restart_arguments(tree):
    tree.loses("b")
    tree.run("--restart-argument", "--restart", "--restart-argument=from here", "-hosts", "a,b", "prog", "x")
    assert [words[words.index("prog"):] for words in tree.runs()] == [
        ["prog", "x"], ["prog", "x", "--restart", "from here"]]


@pytest.mark.parametrize("prefix", ["", "dedup:"])
def test_restart_arguments_if_there_is_something_to_restart_from(tree, prefix):
    path = tree.root / "check point"
    tree.does("program", f"""
      case $DEDUP_RUN in
        1) echo b >>"$FAKE/down"; exit 1 ;;
        2) touch '{path}'; echo c >>"$FAKE/down"; exit 1 ;;
      esac""")
    options = ["--restart-argument", "-r", "--restart-file", f"{prefix}{path}", "-hosts", "a,b,c", "prog"]
    assert tree.run(*options).returncode == 0
    assert [words[-1] for words in tree.runs()] == ["prog", "prog", "-r"]
    (tree.root / "calls").unlink()
    (tree.root / "down").write_text("")
    tree.does("program", "")
    assert tree.run(*options).returncode == 0
    assert [words[-1] for words in tree.runs()] == ["-r"]  # another job goes on


# ---- The end ------------------------------------------------------------------------------------


# Makes a file when a signal is welcome, and when it has come. As mpiexec, it listens to SIGINT though the shell that
# started it in the background has it ignored.
WAITS = """
import os, pathlib, signal, sys
here = pathlib.Path(os.environ["FAKE"])
def told(number, frame):
    (here / "told").write_text(signal.Signals(number).name)
    if {code} is not None:
        (here / "down").write_text("b")
        os._exit({code})
signal.signal(signal.{name}, told)
(here / "ready").touch()
while True:
    signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
@pytest.mark.parametrize("code", [0, 5])
def test_signals_reach_the_program_and_end_all(tree, name, code):
    """Though a node is lost."""
    tree.waits(name, code)
    process = tree.start("--retries", 3, "-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.send_signal(signal.Signals[name])
    result = finish(process)
    # That of mpiexec says nothing, when it was told to end all.
    ended = {"SIGTERM": 143, "SIGINT": 130, "SIGUSR1": 0}[name] if code == 0 else code
    assert result.returncode == ended and (tree.root / "told").read_text() == name
    assert tree.order() == [("run", "a:1,b:1")]
    words = f"run 1 ended with exit code 5, after {name}: not started again" if code else f"run 1 was ended by {name}"
    assert said(result) == ([words] if ended else [])


def test_a_program_that_does_not_end_is_killed(tree):
    tree.waits("SIGTERM", None)
    process = tree.start("--grace", 1, "-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.terminate()
    assert finish(process).returncode == 137 and (tree.root / "told").exists()


def test_a_program_that_does_not_know_sigusr1(tree):
    """It is told in the usual way then, which mpiexec knows."""
    tree.does("program", 'trap "" USR1; trap "exit 0" TERM; touch "$FAKE/ready"; while :; do sleep 0.01; done')
    process = tree.start("--grace", 1, "-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.send_signal(signal.SIGUSR1)
    assert finish(process).returncode == 143


def test_a_second_signal_kills_at_once(tree):
    tree.waits("SIGTERM", None)
    process = tree.start("--grace", 1000, "-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.terminate()
    tree.wait_for(process, "told")
    process.terminate()
    assert finish(process).returncode == 137


def test_whatever_ends_it_ends_the_program(tree):
    tree.waits("SIGTERM", None)
    process = tree.start("-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.send_signal(signal.SIGHUP)
    result = finish(process)  # which waits for all that has its standard output
    assert result.returncode == -signal.SIGHUP and not (tree.root / "told").exists()


def test_a_signal_while_it_asks_the_nodes(tree):
    tree.does("program", 'echo b >>"$FAKE/mute"; exit 1')
    process = tree.start("-hosts", "a,b", "prog")
    tree.wait_for(process, "hangs")
    process.terminate()
    result = finish(process)
    assert result.returncode == 1 and len(tree.runs()) == 1


def test_a_signal_while_it_heals(tree):
    tree.loses("b")
    tree.does("heal", 'touch "$FAKE/ready"; exec sleep 1000')
    process = tree.start("--export", "-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.send_signal(signal.SIGUSR1)
    assert finish(process).returncode == 9
    assert [what for what, _ in tree.order()] == ["run", "heal", "export"]


@pytest.mark.parametrize("code", [0, 4])
@pytest.mark.parametrize("export_code", [0, 6])
def test_export_at_the_end(tree, code, export_code):
    tree.does("program", f"exit {code}")
    tree.does("export", f"exit {export_code}")
    result = tree.run("--export", "-hosts", "a,b", "prog")
    assert result.returncode == (code or export_code)
    assert tree.calls()[-1][1] == ["-hosts", "a,b", "-ppn", "1", str(tree.bin / "dedupctl"), "export", "--all"]
    assert (f"export ended with exit code {export_code}" in said(result)) == (export_code != 0)


@pytest.mark.parametrize("name, exports", [("SIGUSR1", True), ("SIGTERM", False)])
def test_export_after_a_signal(tree, name, exports):
    """There is time after SIGUSR1, and not after SIGTERM."""
    tree.waits(name, 10)
    process = tree.start("--export", "-hosts", "a,b", "prog")
    tree.wait_for(process, "ready")
    process.send_signal(signal.Signals[name])
    assert finish(process).returncode == 10
    assert [what for what, _ in tree.order()] == ["run", "export"][:1 + exports]


# ---- Nodes are looked after while the program runs ----------------------------------------------


HANGS = '[[ $DEDUP_RUN != 1 ]] || {{ {before}; trap "exit {code}" TERM; while :; do sleep 0.01; done; }}'


@pytest.mark.parametrize("code", [0, 15])
def test_a_program_that_hangs_since_a_host_is_gone(tree, code):
    """It may end well when it is told to end, without having done its work."""
    tree.does("program", HANGS.format(before='echo b >>"$FAKE/down"', code=code))
    result = tree.run("--watch", 1, "-hosts", "a,b,c", "prog")
    assert result.returncode == 0, result.stderr
    assert tree.order() == [("run", "a:1,b:1,c:1"), ("heal", "a,c"), ("run", "a:1,c:1")]
    assert said(result)[0] == f"run 1 ended with exit code {code}; lost: b"


def test_when_no_host_answers_the_program_goes_on(tree):
    """Until it ends by itself: it is more likely that nothing can be started from here any more."""
    tree.does("program", 'printf "%s\\n" a b >>"$FAKE/down"; while [[ $(grep -c true <(tr "\\0" "\\n" <"$FAKE/calls")) -lt 8 ]]; '
                         "do sleep 0.01; done; echo well")
    result = tree.run("--watch", 1, "-hosts", "a,b", "prog")
    assert (result.returncode, result.stdout, result.stderr) == (0, "well\n", "")


@pytest.mark.parametrize("code", [0, 15])
def test_healing_that_hangs_since_a_host_is_gone(tree, code):
    tree.loses("b")
    tree.does("heal", f'grep -q c "$FAKE/down" || {{ echo c >>"$FAKE/down"; trap "exit {code}" TERM; '
                      "while :; do sleep 0.01; done; }")
    result = tree.run("--watch", 1, "-hosts", "a,b,c,d", "prog")
    assert result.returncode == 0, result.stderr
    assert [what for what, _ in tree.order()] == ["run", "heal", "heal", "run"]


# ---- Which nodes there are ----------------------------------------------------------------------


def test_host_file(tree):
    (tree.root / "my hosts").write_text("# ours\n\na\n  b.c-d_1:3  # fast\na:2\ne:1")
    assert tree.run("-f", "my hosts", "prog").returncode == 0
    assert tree.order() == [("run", "a:3,b.c-d_1:3,e:1")]
    assert tree.run("prog", HYDRA_HOST_FILE="my hosts").returncode == 0
    assert tree.order()[1] == ("run", "a:3,b.c-d_1:3,e:1")


@pytest.mark.parametrize("text, message", [
    ("a\nb user=me\n", "line 2: only HOST or HOST:RANKS"),
    ("# nothing\n", "there is no host in hosts"),
    ("a:x\n", "a:x: how many ranks is a number"),
    ("a:0\n", "a:0: how many ranks"),
    ("a:\n", "a:: how many ranks"),
    (":2\n", "'' is no name of a node"),
    ("a,b\n", "'a,b' is no name of a node"),
])
def test_host_files_that_are_wrong(tree, text, message):
    (tree.root / "hosts").write_text(text)
    result = tree.run("-f", "hosts", "prog")
    assert result.returncode in (1, 2) and message in result.stderr.splitlines()[0]
    assert tree.calls() == []


def test_allocation_of_slurm(tree):
    tree.slurm("a,b,c,d", "2(x3),1")
    tree.loses("c")
    result = tree.run("--spares", 1, "prog")
    assert result.returncode == 0, result.stderr
    assert tree.order() == [("run", "a:2,b:2,c:2"), ("heal", "a,b,d"), ("run", "a:2,b:2,d:1")]
    tree.does("program", "")
    # What is named goes before it.
    assert tree.run("-hosts", "x", "prog").returncode == 0
    assert tree.order()[-1] == ("run", "x:1")


def test_a_node_that_is_not_the_jobs_any_more_is_not_asked(tree):
    tree.slurm("a,b,c", "1(x3)")
    tree.does("program", '[[ $DEDUP_RUN == 2 ]] || { echo a,c >"$FAKE/allocation"; exit 1; }')
    assert tree.run("prog").returncode == 0
    assert tree.order()[1:] == [("heal", "a,c"), ("run", "a:1,c:1")]
    probes = [after(words, "-hosts") for what, words in tree.calls() if what == "probe"]
    assert probes == ["a,b,c", "a,c"]  # before the first run, and after it


def test_steps_of_slurm_are_started_beside_others(tree):
    tree.slurm("a")
    tree.does("program", 'echo "$HYDRA_LAUNCHER_EXTRA_ARGS"')
    assert tree.run("prog").stdout == "--overlap\n"
    assert tree.run("prog", HYDRA_LAUNCHER_EXTRA_ARGS="--mem=0").stdout == "--mem=0 --overlap\n"


@pytest.mark.parametrize("how", ['echo a,c >"$FAKE/allocation"', 'echo b >>"$FAKE/down"; echo "b down*" >"$FAKE/states"'])
def test_slurm_tells_while_the_program_runs(tree, how):
    tree.slurm("a,b,c", "1(x3)")
    tree.does("program", HANGS.format(before=how, code=15))
    result = tree.run("--watch", 1, "prog")
    assert result.returncode == 0, result.stderr
    assert tree.order()[-1] == ("run", "a:1,c:1")


def test_a_node_of_slurms_on_which_nothing_starts(tree):
    """Slurm does not know of it yet."""
    tree.slurm("a,b,c", "1(x3)")
    tree.loses("b")
    assert tree.run("prog", SLURM_TASKS_PER_NODE="").returncode == 0
    assert tree.order() == [("run", "a:1,b:1,c:1"), ("heal", "a,c"), ("run", "a:1,c:1")]


def test_slurm_that_does_not_answer_has_not_lost_its_nodes(tree):
    tree.slurm("a,b")
    tree.does("program", 'echo >"$FAKE/allocation"; exit 1')
    result = tree.run("prog")
    assert result.returncode == 1 and "no node is lost" in said(result)[0]


@pytest.mark.parametrize("tasks", ["2x3", "a"])
def test_slurms_words_that_are_not_understood(tree, tasks):
    tree.slurm("a", tasks)
    result = tree.run("prog")
    assert result.returncode == 1 and f"SLURM_TASKS_PER_NODE={tasks}" in result.stderr


def test_a_job_of_slurm_without_its_commands(tree, tmp_path):
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("bash", "dirname", "readlink", "cat", "mktemp", "rm", "env"):
        (commands / name).symlink_to(shutil.which(name))
    tree.slurm("a,b")
    result = tree.run("prog", PATH=str(commands))
    assert result.returncode == 1 and "no scontrol" in result.stderr


# ---- Options ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    ([], "there is no program to run"),
    (["-hosts", "a"], "there is no program to run"),
    (["prog"], "which nodes?"),
    (["-hosts", "a", "-f", "hosts", "prog"], "only one of them"),
    (["--nodes", "2", "--store", "s", "-hosts", "a", "prog"], "no -f and no -hosts"),
    (["--nodes", "2", "prog"], "--nodes takes --store"),
    (["--nodes", "a,7", "--store", "s", "prog"], "7 is a number, not a name"),
    (["--nodes", "a,b,a", "--store", "s", "prog"], "a is there twice"),
    (["--nodes", "0", "--store", "s", "prog"], "--nodes 0: a whole number from 1 on"),
    (["--nodes", "a b", "--store", "s", "prog"], "'a b' is no name of a node"),
    (["--spares"], "--spares needs an argument"),
    (["--spares", "-1", "prog"], "--spares -1: a whole number from 0 on"),
    (["--spares=x", "prog"], "--spares x: a whole number"),
    (["--spares=", "prog"], "--spares '': a whole number"),
    (["--min-nodes", "0", "prog"], "--min-nodes 0: a whole number from 1 on"),
    (["--max-restarts", "1.5", "prog"], "--max-restarts 1.5: a whole number"),
    (["--retries", "many", "prog"], "--retries many"),
    (["--watch", "-", "prog"], "--watch -"),
    (["--grace", "0", "prog"], "--grace 0: a whole number from 1 on"),
    (["--store", "", "prog"], "--store needs an argument"),
    (["--restart-file=", "prog"], "--restart-file needs an argument"),
    (["-genv", "A"], "-genv needs a name and a value"),
    (["--frobnicate", "prog"], "--frobnicate: there is no such option"),
])
def test_wrong_arguments(tree, arguments, message):
    result = tree.run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[0], result.stderr
    assert "Usage: dedup-run" in result.stderr and tree.calls() == []


def test_other_things_that_are_wrong(tree):
    for arguments, environment, message in [
        (["-hosts", "a,b", "--spares", "2", "prog"], {}, "none is left for the program"),
        (["-f", "no such", "prog"], {}, "the host file no such cannot be read"),
        (["-f", ".", "prog"], {}, "the host file . cannot be read"),
        (["-hosts", "a", "prog"], {"TMPDIR": "/no/such"}, "cannot make a temporary directory"),
        (["-hosts", "a", "prog"], {"DEDUP_NODE_TIMEOUT": "soon"}, "DEDUP_NODE_TIMEOUT=soon"),
        (["--nodes", "2", "--store", "/dev/null/x", "prog"], {}, "cannot make stores in /dev/null/x"),
    ]:
        result = tree.run(*arguments, **environment)
        assert result.returncode in (1, 2) and message in result.stderr, result.stderr
    assert tree.calls() == []


def test_without_a_launcher(tree):
    (tree.bin / "dedup-mpiexec").unlink()
    text = tree.program.read_text()
    tree.program.write_text(re.sub("^bindir=.*", "bindir='/no/such'", text, flags=re.M))
    result = tree.run("-hosts", "a", "prog")
    assert result.returncode == 1 and "there is no dedup-mpiexec" in result.stderr


def test_called_through_a_link(tree, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tree.program)
    tree.program = link
    assert tree.run("-hosts", "a", "prog").returncode == 0
    assert tree.order() == [("run", "a:1")]


def options_of_help():
    text = subprocess.run([BUILD / "bin" / "dedup-run", "--help"], capture_output=True, text=True, check=True,
                          timeout=TIMEOUT).stdout
    return set(re.findall(r"(?<!\S)(--[a-z][a-z-]+)", text))


def test_help_and_version(tree):
    result = tree.run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert all(len(line) <= 105 for line in result.stdout.splitlines())
    result = tree.run("--version", "--nodes")
    assert (result.returncode, result.stderr) == (0, "") and result.stdout.split()[0] == "dedup-run"
    # All that it takes stands there.
    taken = set(re.findall(r"(--[a-z-]+)[ |)=]", tree.program.read_text().split("while (($# > 0)); do")[1].split("done")[0]))
    assert taken <= options_of_help() and len(taken) > 12


def test_the_man_page_and_the_completion_have_every_option():
    root = pathlib.Path(__file__).resolve().parents[2]
    page = (root / "doc" / "man" / "dedup-run.1").read_text().replace("\\-", "-")
    completion = (root / "tools" / "completion" / "dedup-run").read_text()
    for option in options_of_help():
        assert option in page, option
        assert option in completion, option


def test_completion(tmp_path):
    def offered(*words, **keywords):
        return completion.offered("dedup-run", *words, **keywords)

    assert options_of_help() <= offered("-") and options_of_help() <= offered("--spares", "2", "-n", "4", "--")
    assert "--spares" not in offered("-wdir", "/", "-") and "-env" in offered("-wdir", "/", "-")
    (tmp_path / "simulation").touch()
    assert str(tmp_path / "simulation") in offered("-genv", "A", "1", "--nodes", "4", f"{tmp_path}/sim")
    assert offered("--spares", "") == set() == offered("--store", f"{tmp_path}/")
    offset = "_command_offset() { COMPREPLY=(\"from-$1\"); }"
    assert offered("--export", "--grace", "2", "dedupctl", "st", before=offset) == {"from-4"}


# ---- With the real one --------------------------------------------------------------------------


HEAT3D = BUILD / "examples" / "heat3d" / "heat3d"


@pytest.mark.skipif(PREFIX is not None, reason="heat3d is not linked with the MPICH that has the driver inside")
def test_a_simulated_node_is_lost(tmp_path):
    if not HEAT3D.exists():
        pytest.skip("heat3d was not built: HDF5 for MPICH is missing")
    environment = clean_environment()
    program = [HEAT3D, "--size", "20", "--steps", "30", "--checkpoint-every", "10", "--result", tmp_path / "result"]
    undisturbed = [TEST_BUILD / "bin" / "dedup-mpiexec", "-n", "1", *program, "--checkpoint", tmp_path / "plain"]
    subprocess.run(undisturbed, env=environment, check=True, timeout=TIMEOUT, stdout=subprocess.DEVNULL)
    expected = (tmp_path / "result").read_bytes()
    (tmp_path / "result").unlink()

    stores = tmp_path / "stores"
    words = [TEST_BUILD / "bin" / "dedup-run", "--nodes", "4", "--store", stores, "--watch", "1",
             "--restart-argument=--restart", "-n", "4", "sh", "-c",
             '[ "$DEDUP_RUN" != 1 ] || set -- "$@" --hang-at 15; exec "$@"', "sh", *program, "--checkpoint",
             f"dedup:{tmp_path}/ckpt"]
    process = subprocess.Popen([str(word) for word in words], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "step 10: checkpoint written\n"
    assert process.stdout.readline() == "step 15: waiting to be killed\n"
    shutil.rmtree(stores / "n1")
    (stores / "n1").mkdir()  # as the driver does, when it needs one: it is another one
    result = finish(process)
    assert result.returncode == 0, result
    assert "step 10: checkpoint read\n" in result.stdout
    assert (tmp_path / "result").read_bytes() == expected
    assert not any((stores / "n1").iterdir())
    assert "run 2 on n0, n2, n3" in said(result) and "unknown variable" not in result.stderr
