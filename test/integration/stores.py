"""Jobs on simulated nodes, what they should have written, and what their stores really hold.

A Site is a directory with the stores of some nodes and one file's name. A Script says what the
ranks of a job do with the file (programs/play.c), a Model what the file must be afterwards. walk()
looks at the stores without the driver (test/tools/store_walk.cc).
"""

import collections
import functools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import numpy

import form
from form import BUILD, TEST_BUILD

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT = 120  # a job that takes longer hangs

Entry = collections.namedtuple("Entry", "line operation error text")


# ---- Programs -----------------------------------------------------------------------------------


@functools.cache
def _program_directory():
    return tempfile.TemporaryDirectory(prefix="dedup-test-")


@functools.cache
def program(name):
    """The path of programs/NAME.c, compiled."""
    path = pathlib.Path(_program_directory().name) / name
    subprocess.run([form.command("mpicc"), "-std=gnu11", "-O1", "-Wall", f"-I{HERE.parent.parent}",
                    "-o", path, HERE / "programs" / f"{name}.c", "-ldl"], check=True)
    return path


@functools.cache
def fault_library(name="fault"):
    """programs/NAME.c, to be preloaded. fault: kills a process, or lets its calls fail, at the n-th call."""
    path = pathlib.Path(_program_directory().name) / f"{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-o", path,
                    HERE / "programs" / f"{name}.c", "-ldl"], check=True)
    return path


class Count:
    """What processes read and write of a site's plain file while this is on; writers: what each of them wrote."""

    def __init__(self, site):
        self.site = site
        self.to = site.root / "counted"
        self.to.unlink(missing_ok=True)
        library = fault_library("count_io")
        site.variables.update(LD_PRELOAD=library, COUNT_DIRECTORY=site.path.parent, COUNT_TO=self.to)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in ("LD_PRELOAD", "COUNT_DIRECTORY", "COUNT_TO"):
            del self.site.variables[name]
        lines = self.to.read_text().splitlines() if self.to.exists() else []
        counted = [[int(number) for number in line.split()] for line in lines]
        self.read = sum(read for read, _ in counted)
        self.writers = sorted(written for _, written in counted if written)
        self.written = sum(self.writers)


# ---- Scripts and models -------------------------------------------------------------------------


class Script:
    """Lines for programs/play.c, and the data they write."""

    def __init__(self):
        self.lines = []
        self.data = bytearray()
        self.places = {}

    def add(self, *words):
        self.lines.append(" ".join(str(word) for word in words))
        return self

    def open(self, mode="wc", handle=0, comm="world"):
        return self.add("open", handle, mode, comm)

    def close(self, handle=0):
        return self.add("close", handle)

    def write(self, how, pieces, handle=0):
        """pieces: {rank: [(offset, bytes)]}; ascending offsets, unless `how` is at."""
        for rank in sorted(pieces):
            for offset, content in pieces[rank]:
                self.add("piece", rank, offset, len(content), self._place(bytes(content)))
        return self.add("write", handle, how)

    def _place(self, content):
        if content not in self.places:
            self.places[content] = len(self.data)
            self.data += content
        return self.places[content]


class Model:
    """A file's content."""

    def __init__(self, content=b""):
        self.content = bytearray(content)

    def write(self, pieces):
        for rank in sorted(pieces):
            for offset, content in pieces[rank]:
                end = offset + len(content)
                if end > len(self.content):
                    self.content.extend(bytes(end - len(self.content)))
                self.content[offset:end] = content

    def resize(self, size):
        del self.content[size:]
        self.content.extend(bytes(size - len(self.content)))

    def copy(self):
        return Model(self.content)


def noise(seed, length):
    return random.Random(seed).randbytes(length)


def changed(content, seed, chunk, every=10):
    """Content of which every so many-th chunk is another one."""
    out = bytearray(content)
    for n in range(0, len(content) // chunk, every):
        out[n * chunk:(n + 1) * chunk] = noise(f"{seed} {n}", chunk)
    return bytes(out)


def names_file(path, text):
    """Whether a message names the file; where MPICH keeps little text, its directory is left out."""
    return str(path) in text or re.search(rf"\.\.\./{re.escape(path.name)}[,:]", text) is not None


def is_placeholder(path):
    content = path.read_bytes()
    return len(content) == 4096 and content[8:].startswith(b"\nThis is a placeholder. ")


def difference(found, expected):
    """None if equal; else what a person wants to know."""
    if found == expected:
        return None
    if len(found) != len(expected):
        return f"{len(found)} bytes instead of {len(expected)}"
    wrong = numpy.flatnonzero(
        numpy.frombuffer(found, numpy.uint8) != numpy.frombuffer(expected, numpy.uint8))
    return f"{len(wrong)} of {len(expected)} bytes differ, from {wrong[0]} to {wrong[-1]}"


# ---- Jobs ---------------------------------------------------------------------------------------


def descendants(process):
    """Process ids of a process and of all below it."""
    found = [process]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                text = pathlib.Path(f"/proc/{parent}/task/{task}/children").read_text()
                found.extend(int(child) for child in text.split())
        except OSError:
            continue
    return found


def process_states(process):
    """What a process and all below it are doing, for a message about a job that hangs."""
    lines = []
    for pid in descendants(process):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            state = re.search(r"State:\s+(.*)", pathlib.Path(f"/proc/{pid}/status").read_text())
        except OSError:
            continue  # ended meanwhile
        lines.append(f"{pid} {state.group(1)}: {command[:100]}")
        if "play" in command.split(" ")[0] and shutil.which("gdb"):
            stacks = subprocess.run(
                ["timeout", "-k", "5", "60", "gdb", "-p", str(pid), "-batch", "-nx", "-ex",
                 "thread apply all backtrace 25"], stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", check=False).stdout
            lines += [f"    {line[:150]}" for line in stacks.splitlines()
                      if line.startswith(("#", "Thread"))]
    return "\n".join(lines)


class Job:
    """A job that runs."""

    def __init__(self, command, environment, directory, results, ranks):
        self.results_path = results
        self.ranks = ranks
        self.output = open(directory / f"{results.name}.out", "w+", encoding="utf-8",
                           errors="replace")
        self.errors = open(directory / f"{results.name}.err", "w+", encoding="utf-8",
                           errors="replace")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=self.errors, cwd=directory)

    def _signal_all(self, which):
        for process in descendants(self.process.pid):
            try:
                os.kill(process, which)
            except ProcessLookupError:
                pass

    def kill(self):
        self._signal_all(signal.SIGKILL)
        self.process.wait()

    def end_as_batch_systems_do(self):
        """SIGTERM to all processes, which have 30 s to end by themselves; which of them ends first, and so what the
        launcher says, is by chance."""
        self._signal_all(signal.SIGTERM)
        self.finish(30)

    def wait_for(self, path):
        """Waits for the `touch` of a running job."""
        for _ in range(TIMEOUT * 100):
            if path.exists():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        if self.process.poll() is None:
            self.kill()
        raise AssertionError(f"the job never got there\n{self.finish()}")

    def finish(self, timeout=TIMEOUT):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            states = process_states(self.process.pid)
            self.kill()
            self._read()
            raise AssertionError(f"the job hangs\n{states}\n{self}") from None
        self._read()
        return self

    def _read(self):
        for name, file in (("stdout", self.output), ("stderr", self.errors)):
            file.seek(0)
            setattr(self, name, file.read())
            file.close()
        self.code = self.process.returncode
        self.results = []
        for rank in range(self.ranks):
            entries = []
            try:
                lines = pathlib.Path(f"{self.results_path}.{rank}").read_text(
                    errors="replace").splitlines()
            except FileNotFoundError:
                lines = []
            for line in lines:
                words = line.split("\t", 3)
                entries.append(Entry(int(words[0]), *words[1:]))
            self.results.append(entries)

    def failures(self):
        return [(rank, *entry) for rank, entries in enumerate(self.results)
                for entry in entries if entry.error != "SUCCESS"]

    def check(self):
        """The job ended well, and all its operations did."""
        assert self.code == 0 and not self.failures(), f"{self}"
        return self

    def entries(self, operation):
        """Each rank's last entry of this operation."""
        return [next((e for e in reversed(entries) if e.operation == operation), None)
                for entries in self.results]

    def errors_of(self, operation):
        """The classes of the ranks' last entries of this operation."""
        return [entry.error if entry else None for entry in self.entries(operation)]

    def __str__(self):
        return "\n".join([f"exit code {self.code}",
                          *(f"rank {f[0]}, line {f[1]}: {f[2]}: {f[3]} {f[4]}"
                            for f in self.failures()),
                          "--- stderr", self.stderr[-4000:]])


class Site:
    """shared: whether the nodes see one file system at the file's path, as simulated nodes do; else
    each acts as if its own were another one, and the stores find the file by its path."""

    def __init__(self, root, shared=False):
        self.root = pathlib.Path(root)
        self.shared = shared
        self.stores = self.root / "stores"
        self.away = self.root / "away"
        self.path = self.root / "file"
        self.jobs = 0
        self.variables = {}  # of every job's environment, and of dedupctl's
        self.options = []  # of mpiexec
        self.launcher = []  # of each rank
        self.fast = form.fast_tiers(self.stores)
        self.fast_limit = None  # of the faster tiers in that directory, if there are to be some
        self.limit = None  # of the stores themselves, then

    def start(self, script, nodes, ranks, hints=None, environment=None, path=None, wrapper=()):
        """nodes: a number, a list of names, or [(name, ranks on it), or with a failure domain]; path: another file's;
        wrapper: words of a command that runs the job."""
        self.jobs += 1
        script_path = self.root / f"script{self.jobs}"
        script_path.write_text("\n".join(script.lines) + "\n")
        data_path = self.root / f"data{self.jobs}"
        data_path.write_bytes(script.data)
        results = self.root / f"results{self.jobs}"
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("DEDUP_")}
        variables.update(form.environment())
        variables.update({f"DEDUP_{name.upper()}": str(value)
                          for name, value in (hints or {}).items()})
        if not self.shared:
            variables["DEDUP_TEST_PRIVATE_PATHS"] = "1"
        variables.update(self.variables)
        variables.update(environment or {})
        name = f"dedup:{self.path if path is None else path}"
        play = [*self.launcher, program("play"), name, script_path, data_path, results]
        command = [*wrapper, *self.command(nodes, ranks, play)]
        return Job([str(word) for word in command], variables, self.root, results, ranks)

    def command(self, nodes, ranks, play):
        """The words that run a program on these nodes."""
        command = [TEST_BUILD / "bin" / "dedup-mpiexec", "--store", self.places()]
        if isinstance(nodes, int) or isinstance(nodes[0], str):
            names = nodes if isinstance(nodes, int) else ",".join(nodes)
            return [*command, "--nodes", names, *self.options, "-n", ranks, *play]
        self.stores.mkdir(exist_ok=True)
        sections = [["-n", count, "-env", "DEDUP_NODE", name,
                     *(word for each in domain for word in ("-env", "DEDUP_FAILURE_DOMAIN", each)), *play]
                    for name, count, *domain in nodes]
        return command + self.options + [word for section in sections for word in [":", *section]][1:]

    def run(self, script, nodes, ranks, hints=None, environment=None, path=None, wrapper=(),
            timeout=TIMEOUT):
        return self.start(script, nodes, ranks, hints, environment, path, wrapper).finish(timeout)

    def write(self, pieces, nodes, ranks, hints=None, how="all-at", mode="wc"):
        """Opens the file, writes, closes it; all must go well."""
        return self.run(Script().open(mode).write(how, pieces).close(), nodes, ranks,
                        hints).check()

    def read(self, nodes, ranks, block=0, hints=None, environment=None):
        """The whole file as bytes, read collectively."""
        path = self.root / f"read{self.jobs + 1}"
        script = Script().open("r").add("read", 0, path, block).close()
        self.run(script, nodes, ranks, hints, environment).check()
        content = path.read_bytes()
        path.unlink()
        return content

    def expect(self, model, nodes, ranks, block=0, hints=None):
        wrong = difference(self.read(nodes, ranks, block, hints), bytes(model.content))
        assert wrong is None, f"nodes {nodes}, {ranks} ranks: {wrong}"

    def read_pieces(self, nodes, ranks, length, hints=None):
        """What can be read, piece by piece: the job, the bytes, and for each piece whether it was
        read."""
        path = self.root / f"pieces{self.jobs + 1}"
        script = Script().open("r").add("pieces", 0, path, length).close()
        job = self.run(script, nodes, ranks, hints)
        assert job.code == 0, f"{job}"
        return job, path.read_bytes(), pathlib.Path(f"{path}.map").read_bytes()

    def places(self):
        """What --store is."""
        return form.tiers(self.stores, self.fast_limit) + (f"={self.limit}" if self.limit else "")

    def store(self, node):
        return self.stores / node

    def node_names(self):
        """Of the nodes that have made a store."""
        return sorted(path.name for path in self.stores.glob("*"))

    def lose(self, *nodes):
        """These nodes are not there, with all they had."""
        self.away.mkdir(exist_ok=True)
        for node in nodes:
            self.store(node).rename(self.away / node)
            if (self.fast / node).exists():
                (self.fast / node).rename(self.away / f"{node}-fast")

    def bring_back(self, *nodes):
        for node in nodes:
            if self.store(node).exists():
                shutil.rmtree(self.store(node))
            (self.away / node).rename(self.store(node))
            if (self.away / f"{node}-fast").exists():
                shutil.rmtree(self.fast / node, ignore_errors=True)
                (self.away / f"{node}-fast").rename(self.fast / node)

    def file_directory(self, node):
        """The one file's directory in a store."""
        found = list((self.store(node) / "files").iterdir())
        assert len(found) == 1, found
        return found[0]

    def bytes_used(self, node):
        """Allocated on disk by a store's segments, logs and generations."""
        return sum(path.stat().st_blocks * 512 for path in (self.store(node) / "files").rglob("*")
                   if path.is_file())

    def segment_bytes(self):
        """Of all stores; each segment once, however many names it has."""
        sizes = {path.stat().st_ino: path.stat().st_size for directory in (self.stores, self.fast)
                 for path in directory.rglob("*.seg")}
        return sum(sizes.values())

    def walk(self, *nodes, content=None):
        """What store_walk says of these nodes' stores (default: all that are there)."""
        command = [BUILD / "test" / "tools" / "store_walk"]
        if content:
            command += ["--content", content]
        command += [self.store(node) for node in nodes or self.node_names()]
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                timeout=TIMEOUT, check=False)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def check_stores(self, model, replication, *nodes, nothing_else=True):
        """The invariants, on the stores themselves; `nodes` are those of the last commit."""
        content = self.root / "content"
        content.unlink(missing_ok=True)
        walked = self.walk(*nodes, content=content)
        wrong = difference(content.read_bytes(), bytes(model.content))
        assert wrong is None, f"in the stores: {wrong}"
        (file,) = walked["files"]
        check_file(file, replication, nothing_else)
        return file


# Files as small as those of most tests have their index written whole, and all of it told to nodes, each time.
AS_IF_LARGE = {"DEDUP_TEST_WORTH_KEEPING": "1"}


# What is logged as if it were worth leaving it where it is.
AS_IF_MUCH = {"DEDUP_TEST_WORTH_VIEWING": "1"}


def shared_site(root):
    """A Site whose nodes share a file system, with a directory that has nothing but the file."""
    (root / "data").mkdir()
    site = Site(root, shared=True)
    site.path = root / "data" / "file"
    return site


def kept_as_by_copies(file, chunk):
    """How many nodes must be lost, at least, before this chunk of a walked file is."""
    if chunk["stripe"] is None:
        return len(chunk["held"])
    stripe = file["stripes"][chunk["stripe"]]
    return max(len(chunk["held"]), len(stripe["sound"]) - stripe["data"] + 1)


def check_file(file, replication, nothing_else=True):
    copies = min(replication, len(file["stores"]))
    assert not file["problems"], file["problems"][:5]
    assert not file["missing"] and not file["behind"], file
    assert min(file["shards"], default=copies) >= copies, file["shards"]
    for chunk in file["chunks"]:
        assert kept_as_by_copies(file, chunk) >= copies, f"too few copies: {chunk}"
        assert set(chunk["named"]) <= set(chunk["held"]), f"not where the recipe says: {chunk}"
    for node, store in file["on_store"].items():
        assert not store["twice"], f"{node} has chunks twice: {store['twice'][:5]}"
        # What was overwritten stays in its segment for a while, and may come back.
        assert not store["again"] or file["generation"] > 2, f"{node}: {store['again'][:5]}"
        if nothing_else:
            assert store["dead_segments"] == 0, f"{node}: {store}"
            assert store["other_attempts"] == 0, f"{node}: {store}"
            assert store["logs"] == 0, f"{node}: {store}"


def parts(content, ranks, unit=1):
    """Content dealt to ranks in contiguous parts (whole units): {rank: [(offset, bytes)]}."""
    units = -(-len(content) // unit)
    cuts = [min(units * r // ranks * unit, len(content)) for r in range(ranks + 1)]
    return {r: [(cuts[r], content[cuts[r]:cuts[r + 1]])] for r in range(ranks)
            if cuts[r + 1] > cuts[r]}
