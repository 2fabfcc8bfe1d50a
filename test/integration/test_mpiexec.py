"""dedup-mpiexec: what reaches the MPI processes, and what comes back.

Most tests run it in a tree of their own, with marking libraries in place of the real ones, so that
they can see which processes a library was loaded into. What the library makes of the environment is
in test_simulated_nodes.py and test_yield.py.
"""

import collections
import functools
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess

import pytest

import completion

BUILD = pathlib.Path(
    os.environ.get("DEDUP_BUILD") or pathlib.Path(__file__).resolve().parents[2] / "build"
).resolve()
TIMEOUT = 60

# Appends the path of the program it was loaded into to the file that MARK_<NAME> names.
MARKING_LIBRARY = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void mark(void) {
  char line[4200];
  const char* name = getenv(VARIABLE);
  if (!name) return;
  ssize_t size = readlink("/proc/self/exe", line, 4096);
  int file = open(name, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (size < 0 || file < 0) abort();
  line[size++] = '\n';
  if (write(file, line, (size_t)size) != size) abort();
  close(file);
}
"""

SHOW = 'echo "$PMI_RANK|${DEDUP_NODES-}|${DEDUP_NODE-}|${DEDUP_STORE-}|${LD_PRELOAD-}|${ROMIO_FSTYPE_FORCE-}|$*"'
Rank = collections.namedtuple("Rank", "rank nodes node store preload force arguments")


def make_tree(root, yield_library=True):
    for part in ("bin", "lib"):
        (root / part).mkdir(parents=True)
    shutil.copy(BUILD / "tools" / "dedup-mpiexec", root / "bin")
    (root / "mark.c").write_text(MARKING_LIBRARY)
    libraries = [("libromio-dedup.so", "MARK_DRIVER")]
    if yield_library:
        libraries.append(("libdedup-yield.so", "MARK_YIELD"))
    for name, variable in libraries:
        subprocess.run(
            ["gcc", "-shared", "-fPIC", f'-DVARIABLE="{variable}"', root / "mark.c", "-o",
             root / "lib" / name], check=True)
    return root


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return make_tree(tmp_path_factory.mktemp("mpiexec") / "build")


@pytest.fixture
def run(tree, tmp_path):
    """Runs dedup-mpiexec with these arguments; environment= adds variables (None removes)."""

    def run_it(*arguments, environment=None, program=None, stdin="", cwd=None):
        # Stores named by default must not depend on, or end up in, the user's environment.
        variables = {k: v for k, v in os.environ.items()
                     if not k.startswith(("DEDUP_", "HYDRA_", "SLURM_", "PBS_"))}
        for name in ("LD_PRELOAD", "ROMIO_FSTYPE_FORCE", "MPIEXEC"):
            variables.pop(name, None)
        for name, value in (environment or {}).items():
            variables[name] = str(value)
        for _ in range(5):
            result = subprocess.run(
                [program or tree / "bin" / "dedup-mpiexec", *map(str, arguments)],
                env=variables, input=stdin, capture_output=True, text=True, timeout=TIMEOUT,
                cwd=cwd or tmp_path)
            # Hydra's mpiexec passes the end of its input on to a rank that has ended already:
            # on a busy machine 1 of 150 runs of `mpiexec -np 1 sh -c 'echo a'` ends so.
            if result.returncode != -signal.SIGPIPE:
                break
        return result

    return run_it


@pytest.fixture
def ranks(run):
    """Runs `options… sh -c SHOW` and returns what each rank saw, by rank."""

    def ranks_of(*options, **keywords):
        return parse_ranks(run(*options, "sh", "-c", SHOW, "sh", **keywords))

    return ranks_of


def parse_ranks(result):
    assert result.returncode == 0, result.stderr
    seen = sorted((Rank(*line.split("|")) for line in result.stdout.splitlines()),
                  key=lambda rank: int(rank.rank))
    assert [int(rank.rank) for rank in seen] == list(range(len(seen)))
    return seen


def assert_usage_error(result, *parts):
    assert result.returncode == 2, (result.returncode, result.stderr)
    assert result.stdout == ""
    message = result.stderr.splitlines()[0]
    assert message.startswith("dedup-mpiexec: ")
    for part in parts:
        assert part in message
    assert "Usage: dedup-mpiexec" in result.stderr


# ---- Nodes and stores ---------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", ["1", "003", "n2,n4,n5", "a b,,\u00e4", "*"])
def test_nodes_are_told_to_all_sections(run, nodes):
    """As they are: the library is who reads them."""
    show = ["sh", "-c", SHOW, "sh"]
    seen = parse_ranks(run("--nodes", nodes, "-n", "2", *show, "first", ":", "-np", "3", *show,
                           "second", "x=:", ":", *show, "third",
                           environment={"DEDUP_NODE": "mine", "DEDUP_NODES": "others"}))
    assert [(rank.nodes, rank.node) for rank in seen] == [(nodes, "")] * 6
    assert [rank.arguments for rank in seen] == ["first"] * 2 + ["second x=:"] * 3 + ["third"]


def test_a_node_that_the_user_names_for_a_rank(run):
    show = ["sh", "-c", SHOW, "sh"]
    seen = parse_ranks(run("--nodes", 2, "-n", 1, "-env", "DEDUP_NODE", "x", *show, ":", "-n", 1,
                           *show))
    assert [(rank.nodes, rank.node) for rank in seen] == [("2", "x"), ("2", "")]


def test_application_numbers_stay_those_of_the_sections(run):
    show = ["sh", "-c", 'echo "$PMI_RANK $PMI_SIZE"']
    result = run("--nodes", "2", "-n", "1", *show, ":", "-n", "2", *show)
    assert sorted(result.stdout.splitlines()) == ["0 3", "1 3", "2 3"]


def test_without_nodes_nothing_is_simulated(ranks):
    seen = ranks("-n", 2)
    assert [(rank.nodes, rank.store, rank.force) for rank in seen] == [("", "", "")] * 2


def test_stores_of_simulated_nodes(ranks, tmp_path):
    assert ranks("--nodes", 2, "-n", 1)[0].store == ""  # the library's own is one for each node
    for value, expected in [
        ("/s/%n/x", "/s/%n/x"),
        (f"{tmp_path}/s", f"{tmp_path}/s/%n"),
        (f"{tmp_path}/50%%n/", f"{tmp_path}/50%%n/%n"),
        ("/a%:b%=c=8GiB:/50%%/:/d", "/a%:b%=c/%n=8GiB:/50%%/%n:/d/%n"),
    ]:
        seen = ranks("--nodes", 2, "-n", 1, environment={"DEDUP_STORE": value})
        assert seen[0].store == expected
    given = ranks("--nodes", 2, "-genv", "DEDUP_STORE", "/mine/%n", "-n", 1)
    assert given[0].store == "/mine/%n"


def test_the_users_store_stays_without_nodes(ranks):
    assert ranks("-n", 1, environment={"DEDUP_STORE": "/s"})[0].store == "/s"


def test_store_option(ranks, tmp_path):
    assert ranks("--store", tmp_path / "a b", "-n", 1)[0].store == f"{tmp_path}/a b/%n"
    assert not (tmp_path / "a b").exists()
    assert ranks("--store=rel", "-n", 1)[0].store == f"{tmp_path}/rel/%n"
    assert ranks("--store", "/", "-n", 1)[0].store == "/%n"
    assert ranks("--store=/m=1GiB:rel/:/5%", "-n", 1)[0].store == f"/m/%n=1GiB:{tmp_path}/rel/%n:/5%%/%n"
    assert ranks("--store", f"{tmp_path}/5%n/", "-n", 1)[0].store == f"{tmp_path}/5%%n/%n"
    seen = ranks("--nodes=2", "--store", tmp_path / "x" / "y", "-n", 1,
                 environment={"DEDUP_STORE": "/other/%n"})
    assert seen[0].store == f"{tmp_path}/x/y/%n"


def test_all_files(ranks):
    assert ranks("--all-files", "-n", 1)[0].force == "dedup:"


def test_mount_option(run, tree, tmp_path, printer):
    """What the library makes of it is in test_mount_in_job.py."""
    elsewhere = make_tree(tmp_path / "tree")
    (elsewhere / "bin" / "dedupctl").symlink_to("/bin/true")
    inside = {"MPIEXEC": printer, "DEDUP_YIELD": "0", "DEDUP_PRELOAD": "0"}
    jobs = set()
    for option, directory in [("--mount", f"/tmp/dedup-{os.geteuid()}-mount"), ("--mount=/a b/", "/a b"),
                              ("--mount=rel/x", f"{tmp_path}/rel/x"), ("--mount=/", "/")]:
        result = run(option, "prog", environment=inside, program=elsewhere / "bin" / "dedup-mpiexec")
        words = result.stdout[1:-1].split("><")
        jobs.add(words.pop(11))
        assert words == ["-genv", "LD_PRELOAD", f"{elsewhere}/lib/libdedup-mount.so", "-genv", "DEDUP_MOUNT", directory,
                         "-genv", "DEDUP_MOUNT_BY", f"{elsewhere}/bin/dedupctl", "-genv", "DEDUP_MOUNT_JOB", "prog"]
    assert len(jobs) == 4, "each has a name of its own"
    both = run("--mount", "prog", environment={**inside, "DEDUP_PRELOAD": "1"}, program=elsewhere / "bin" / "dedup-mpiexec")
    assert f"<{elsewhere}/lib/libromio-dedup.so:{elsewhere}/lib/libdedup-mount.so>" in both.stdout
    none = run("--mount", "prog", environment=inside)
    assert none.returncode == 1 and "cannot find dedupctl" in none.stderr and not none.stdout, "not installed completely"


# ---- Preloading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [[], ["--nodes", "3"]])
@pytest.mark.parametrize("library", ["MARK_DRIVER", "MARK_YIELD"])
def test_preloaded_into_the_processes_only(run, tmp_path, nodes, library):
    marks = tmp_path / "marks"
    result = run(*nodes, "-n", 3, "/bin/sleep", "0", environment={library: marks})
    assert result.returncode == 0
    assert marks.read_text().splitlines() == [os.path.realpath("/bin/sleep")] * 3


def test_an_existing_preload_is_kept(ranks, tree, tmp_path):
    driver = str(tree / "lib" / "libromio-dedup.so")
    mine = tmp_path / "mine.so"
    shutil.copy(driver, mine)
    off = {"DEDUP_YIELD": "0"}
    assert ranks("-n", 1, environment=off)[0].preload == driver
    both = f"{mine}:{driver}"
    inherited = {"LD_PRELOAD": mine, **off}
    assert ranks("-n", 1, environment=inherited)[0].preload == both
    # dedup-mpiexec is who hands it on.
    assert ranks("-genvnone", "-n", 1, environment=inherited)[0].preload == both
    for option in (["-genv", "LD_PRELOAD", mine], ["-genv", f"LD_PRELOAD={mine}"],
                   [f"-genv=LD_PRELOAD={mine}"], ["-genv=LD_PRELOAD", mine],
                   ["--genv", "LD_PRELOAD", mine], ["-env", "LD_PRELOAD", mine],
                   ["-env", f"LD_PRELOAD={mine}"]):
        assert ranks(*option, "-n", 1, environment=off)[0].preload == both, option
        assert ranks("--nodes", 2, *option, "-n", 1, environment=off)[0].preload == both, option
    for option in (["-genv", "LD_PRELOAD", ""], ["-genv", "LD_PRELOAD="]):
        assert ranks(*option, "-n", 1, environment=inherited)[0].preload == driver, option
    for other in (["-genv", "A", "LD_PRELOAD"], ["-genv", "A_LD_PRELOAD", "x"],
                  ["-genv", "A", "LD_PRELOAD=x"]):
        seen = ranks(*other, "-n", 1, environment=off)[0]
        assert seen.preload == driver, other


def test_nothing_is_preloaded_if_the_driver_is_inside(ranks, run, tree, tmp_path):
    mine = tmp_path / "mine.so"
    shutil.copy(tree / "lib" / "libromio-dedup.so", mine)
    inside = {"DEDUP_PRELOAD": "0"}
    assert ranks("-n", 3, environment=inside)[0].preload == ""
    assert ranks("-n", 1, environment={**inside, "LD_PRELOAD": mine})[0].preload == str(mine)
    assert ranks("-genv", "LD_PRELOAD", mine, "-n", 1, environment=inside)[0].preload == str(mine)
    seen = ranks("--nodes", 2, "-n", 2, environment={**inside, "DEDUP_YIELD": "1"})
    assert seen[0].preload == str(tree / "lib" / "libdedup-yield.so")
    assert seen[0].nodes == "2"
    assert_usage_error(run("-n", 1, "true", environment={"DEDUP_PRELOAD": "no"}), "DEDUP_PRELOAD=no")


def test_a_local_preload_is_that_sections(run, tree, tmp_path):
    driver = str(tree / "lib" / "libromio-dedup.so")
    mine = tmp_path / "mine.so"
    shutil.copy(driver, mine)
    show = ["sh", "-c", SHOW, "sh"]
    seen = parse_ranks(run("-n", 1, "-env", "LD_PRELOAD", mine, *show, ":", "-n", 1, *show,
                           environment={"DEDUP_YIELD": "0"}))
    assert [rank.preload for rank in seen] == [f"{mine}:{driver}", driver]


def test_yielding(ranks, run, tree):
    """The library is there unless it must not be; the driver tells it whether to do something."""
    driver, library = (str(tree / "lib" / name)
                       for name in ("libromio-dedup.so", "libdedup-yield.so"))
    for request, expected in [("0", [driver]), ("1", [driver, library]), ("", [driver, library])]:
        seen = ranks("-n", 1, environment={"DEDUP_YIELD": request})[0]
        assert seen.preload.split(":") == expected
    assert_usage_error(run("-n", 1, "true", environment={"DEDUP_YIELD": "yes"}), "DEDUP_YIELD=yes")


def test_without_the_yield_library(run, tmp_path):
    tree = make_tree(tmp_path / "tree", yield_library=False)
    program = tree / "bin" / "dedup-mpiexec"
    result = run("-n", 3, "sh", "-c", "echo $LD_PRELOAD", program=program)
    assert result.stdout.splitlines() == [str(tree / "lib" / "libromio-dedup.so")] * 3
    result = run("-n", 1, "true", program=program, environment={"DEDUP_YIELD": "1"})
    assert result.returncode == 1
    assert "libdedup-yield.so" in result.stderr


# ---- What is passed on, and back ----------------------------------------------------------------


@pytest.mark.parametrize("nodes", [[], ["--nodes", "2"]])
@pytest.mark.parametrize("code", [0, 1, 2, 7, 255])
def test_the_exit_code_is_mpiexecs(run, nodes, code):
    assert run(*nodes, "-n", 2, "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("nodes", [[], ["--nodes", "2"]])
def test_a_killed_rank_and_a_missing_program(run, nodes):
    plain = subprocess.run(["mpiexec", "-n", "1", "sh", "-c", "kill -SEGV $$"], text=True,
                           capture_output=True, timeout=TIMEOUT, check=False)
    assert run(*nodes, "-n", 1, "sh", "-c", "kill -SEGV $$").returncode == plain.returncode != 0
    missing = run(*nodes, "-n", 1, "/no/such/program")
    assert missing.returncode == 255
    assert "/no/such/program" in missing.stderr


@pytest.mark.parametrize("nodes", [[], ["--nodes", "2"]])
def test_standard_input_goes_to_rank_0(run, nodes):
    # The others have a standard input that never ends, with mpiexec too.
    result = run(*nodes, "-n", 2, "sh", "-c", '[ "$PMI_RANK" != 0 ] || cat', stdin="a line\n")
    assert (result.returncode, result.stdout) == (0, "a line\n")


@pytest.mark.parametrize("nodes", [[], ["--nodes", "1"]])
def test_arguments_arrive_unchanged(run, nodes):
    awkward = ["", "a b", "*", "$HOME", '"', "'", "\\", "--nodes", "--store=x", "-n", "x:y", "::",
               "--help", "%n", "line\nline"]
    result = run(*nodes, "-n", 1, "sh", "-c", 'for a; do printf "<%s>" "$a"; done', "sh", *awkward)
    assert result.stdout == "".join(f"<{argument}>" for argument in awkward)


@pytest.mark.parametrize(
    "options",
    [
        ["-genv", "A", "from option", "-n", "1"],
        ["-genv", "A=from option", "-np", "1"],
        ["-n", "1", "-env", "A", "from option"],
        ["-genvnone", "-genv", "A", "from option"],
        ["-genvlist", "PATH,A"],
        ["-hosts", "localhost", "-ppn", "1", "-genvall"],
        ["-f", "hosts", "-launcher", "fork", "-bind-to", "none", "-usize", "INFINITE"],
        ["-wdir", "/", "-print-all-exitcodes", "-disable-auto-cleanup"],
        ["-iface", "lo", "-gpus-per-proc=0"],
    ],
)
def test_mpiexecs_options_and_their_arguments(run, tmp_path, options):
    (tmp_path / "hosts").write_text("localhost\n")
    result = run(*options, "/bin/sh", "-c", "echo $A", environment={"A": "from option"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "from option"


def test_output_options(run, tmp_path):
    assert run("-l", "-n", 1, "echo", "x").stdout == "[0] x\n"
    assert run("-prepend-pattern", "%r> ", "-n", 1, "echo", "x").stdout == "0> x\n"
    run("-outfile", tmp_path / "out.%r", "-n", 2, "echo", "x")
    assert [(tmp_path / f"out.{rank}").read_text() for rank in range(2)] == ["x\n"] * 2
    assert run("-wdir", "/", "-n", 1, "pwd").stdout == "/\n"


def test_configuration_file(run, tree, tmp_path):
    (tmp_path / "sections").write_text("-n 1 env\n-n 1 env\n")
    result = run("-configfile", "sections")
    assert result.stdout.count("/libromio-dedup.so") == 2
    assert run("--nodes", 2, "-configfile", "sections").stdout.count("DEDUP_NODES=2\n") == 2


@pytest.fixture
def printer(tmp_path):
    """An mpiexec that prints its arguments and ends with 9."""
    path = tmp_path / "other mpiexec"
    path.write_text('#!/bin/sh\nprintf "<%s>" "$@"\nexit 9\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "2"],
        ["-n"],
        ["-genv", "A"],
        ["-genv"],
        ["-frobnicate", "2", "true"],
        ["--frobnicate=2", "true"],
        ["-verbose=2", "true"],
        [":", "true"],
        ["true", ":"],
        ["true", ":", "-n", "2"],
        ["true", ":", "--nodes", "2", "true"],
        ["true", ":", "--store=x", "true"],
        ["-n", "2", "--nodes", "2", "true"],
        ["", "x"],
        ["-pmi-port", "true"],
        ["-help"],
        ["--", "--help"],
        ["a b", "*", "$HOME", "line\nline", "\\"],
    ],
)
def test_whatever_is_not_ours_is_passed_on(run, tree, printer, arguments):
    """Known to mpiexec or not, in its place or not."""
    result = run("--nodes", 3, "--store=/s", "--all-files", *arguments,
                 environment={"MPIEXEC": printer, "DEDUP_YIELD": "0"})
    library = tree / "lib" / "libromio-dedup.so"
    ours = ["-genv", "LD_PRELOAD", library, "-genv", "DEDUP_NODES", 3, "-genv", "DEDUP_NODE", "",
            "-genv", "DEDUP_STORE", "/s/%n", "-genv", "ROMIO_FSTYPE_FORCE", "dedup:"]
    assert result.returncode == 9, result.stderr
    assert result.stdout == "".join(f"<{word}>" for word in [*ours, *arguments])


def test_mpiexecs_own_information(run):
    for options in (["-help"], ["-h"], ["-genv", "-help"], ["-np", "--help"], ["-info"]):
        plain = subprocess.run(["mpiexec", *options], capture_output=True, text=True,
                               timeout=TIMEOUT, check=False)
        result = run(*options)
        assert result.stdout.replace("/usr/bin/", "./") == plain.stdout.replace("/usr/bin/", "./")
        assert result.returncode == plain.returncode


def test_help_and_version(run):
    result = run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    for option in ("--nodes", "--store", "--all-files", "--mount", "MPIEXEC", "DEDUP_YIELD"):
        assert option in result.stdout
    result = run("--version", "--nodes")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split()[0] == "dedup-mpiexec" and len(result.stdout.split()) == 2


@pytest.mark.parametrize(
    "arguments, parts",
    [
        ([], ["no program"]),
        (["--all-files"], ["no program"]),
        (["--nodes", "2"], ["no program"]),
        (["--nodes"], ["--nodes needs an argument"]),
        (["--nodes=", "true"], ["--nodes needs an argument"]),
        (["--nodes", "", "true"], ["--nodes needs an argument"]),
        (["--store"], ["--store needs an argument"]),
        (["--store", "", "true"], ["--store needs an argument"]),
        (["--mount=", "true"], ["--mount needs an argument"]),
        (["--mount"], ["no program"]),
    ],
)
def test_wrong_arguments(run, arguments, parts):
    assert_usage_error(run(*arguments), *parts)


# ---- Finding mpiexec and the libraries ----------------------------------------------------------


def test_mpiexec_variable(run, tree, printer):
    result = run("-n", 2, "prog", environment={"MPIEXEC": printer, "DEDUP_YIELD": "0"})
    library = tree / "lib" / "libromio-dedup.so"
    assert result.returncode == 9
    assert result.stdout == f"<-genv><LD_PRELOAD><{library}><-n><2><prog>"
    result = run("-n", 1, "true", environment={"MPIEXEC": "no-such-mpiexec"})
    assert result.returncode == 1
    assert "MPIEXEC=no-such-mpiexec" in result.stderr


@pytest.mark.parametrize("version", ["mpiexec (OpenRTE) 4.1.4", "mpiexec (Open MPI) 5.0.7"])
def test_an_mpiexec_of_open_mpi(run, tmp_path, version):
    program = tmp_path / "mpiexec"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || touch "{tmp_path}/began"\n')
    program.chmod(0o755)
    result = run("-n", 2, "prog", environment={"MPIEXEC": program})
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), result
    assert f"{program} is Open MPI's" in result.stderr and "set MPIEXEC" in result.stderr
    assert not (tmp_path / "began").exists()


def test_mpiexec_variable_that_names_this_program(run, tree):
    result = run("-n", 1, "echo", "x",
                 environment={"MPIEXEC": tree / "bin" / "dedup-mpiexec"})
    assert (result.returncode, result.stdout) == (0, "x\n")


def test_called_through_links_and_path(run, tree, tmp_path):
    library = str(tree / "lib" / "libromio-dedup.so")
    show = ["-n", 1, "sh", "-c", "echo $LD_PRELOAD"]
    (tmp_path / "one").symlink_to(tree / "bin" / "dedup-mpiexec")
    (tmp_path / "two").symlink_to("one")
    assert library in run(*show, program=tmp_path / "two").stdout
    path = {"PATH": f"{tree / 'bin'}:{os.environ['PATH']}"}
    result = run("-c", 'dedup-mpiexec -n 1 sh -c "echo \\$LD_PRELOAD"', program="/bin/sh",
                 environment=path)
    assert library in result.stdout


def test_installed_elsewhere(run, tree, tmp_path):
    """An installed tree that was moved as a whole: configured for /pre/fix, now below tmp_path."""
    text = (tree / "bin" / "dedup-mpiexec").read_text()
    lines = []
    for line in text.splitlines():
        for name, value in [("bindir", "/pre/fix/bin"), ("libdir", "/pre/fix/lib/x86_64")]:
            if line.startswith(f"{name}='"):
                line = f"{name}='{value}'"
        lines.append(line)
    for part in ("bin", "lib/x86_64"):
        (tmp_path / part).mkdir(parents=True)
    program = tmp_path / "bin" / "dedup-mpiexec"
    program.write_text("\n".join(lines) + "\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    result = run("-n", 1, "true", program=program)
    assert result.returncode == 1
    assert "cannot find libromio-dedup.so" in result.stderr
    shutil.copy(tree / "lib" / "libromio-dedup.so", tmp_path / "lib" / "x86_64")
    result = run("--nodes", 2, "-n", 2, "sh", "-c", "echo $DEDUP_NODES $LD_PRELOAD",
                 program=program, environment={"DEDUP_YIELD": "0"})
    library = tmp_path / "lib" / "x86_64" / "libromio-dedup.so"
    assert sorted(result.stdout.splitlines()) == [f"2 {library}"] * 2


def test_a_place_that_cannot_be_preloaded_from(run, tmp_path):
    tree = make_tree(tmp_path / "a b")
    result = run("-n", 1, "true", program=tree / "bin" / "dedup-mpiexec")
    assert result.returncode == 1
    assert "space" in result.stderr


# ---- Completion ---------------------------------------------------------------------------------


offered = functools.partial(completion.offered, "dedup-mpiexec")


def test_completion_knows_every_option():
    summary = subprocess.run([BUILD / "bin" / "dedup-mpiexec", "--help"], capture_output=True, text=True,
                             check=True, timeout=TIMEOUT).stdout
    options = set(re.findall(r"^  (--[a-z-]+)", summary, re.M))
    assert len(options) == 6 and options <= offered("-")
    assert options <= offered("--store", "/tmp", "--nodes", "4", "--mount", "--mount=/mnt", "--")


def test_completion_of_what_is_mpiexecs_has_no_own_options():
    assert "-n" in offered("-n", "4", "-") and "--nodes" not in offered("-n", "4", "-")
    assert offered("--nodes", "") == set() == offered("-n", "")


def test_completion_of_the_program(tmp_path):
    (tmp_path / "simulation").touch()
    assert str(tmp_path / "simulation") in offered("-n", "4", f"{tmp_path}/sim")
    assert "bash" in offered("-genv", "A", "1", "bas")
    assert offered("--store", f"{tmp_path}/") == set()
    # The program's own completion, from its word on.
    offset = "_command_offset() { COMPREPLY=(\"from-$1\"); }"
    assert offered("--nodes", "2", "-n", "2", "dedupctl", "st", before=offset) == {"from-5"}
