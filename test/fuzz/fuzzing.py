"""Random sequences of MPI-IO calls, run on ROMIO's own driver and on dedup: (README.md).

A Case is all that a seed determines: sequences, layouts, hints, which stores get lost in between.
"""

import dataclasses
import fcntl
import importlib.util
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INTEGRATION = HERE.parent / "integration" / "conftest.py"

# How programs are compiled, started and killed is the same as for the integration tests.
_spec = importlib.util.spec_from_file_location("integration_conftest", INTEGRATION)
integration = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(integration)


DIFFERS = 10  # the program's exit code
MOST_RANKS = 8
STEPS = 60  # operations in a sequence

# Ranks and nodes: 1 to 4 ranks a node, also unevenly.
LAYOUTS = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (5, 2), (5, 3), (5, 5), (8, 2), (8, 3),
           (8, 4), (8, 8)]


def compile_fuzzer():
    """The compiled program; only what is older than its sources is compiled."""
    directory = integration.BUILD / "test-programs"
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / "mpi_io_fuzz"
    inputs = [*HERE.glob("*.c"), *HERE.glob("*.h")]
    with open(directory / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(i.stat().st_mtime for i in inputs)
        if not target.exists() or target.stat().st_mtime < newest:
            subprocess.run(["mpicc", *integration.C_FLAGS, *sorted(HERE.glob("*.c")), "-o", target],
                           check=True)
    return target


@dataclasses.dataclass
class Job:
    """One run of the program."""

    ranks: int
    nodes: list
    seed: int = 0
    steps: int = 0  # 0: only compares what earlier jobs left
    only: list = None
    lost: list = dataclasses.field(default_factory=list)  # nodes whose stores go before it

    def operations(self):
        return list(range(self.steps)) if self.only is None else self.only


@dataclasses.dataclass
class Case:
    jobs: list
    hints: dict
    sync: bool = False
    large: bool = False
    options: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Outcome:
    kind: str  # "ok", "difference", "hang", "crash"
    text: str = ""
    job: int = 0


def draw_hints(draw):
    """The hints that lead to other code, each in a part of the cases."""
    hints = {"DEDUP_REPLICATION": str(draw.choice([1, 2, 2, 3])),
             "DEDUP_MODE": draw.choice(["collective", "collective", "collective", "local", "none"])}
    if draw.random() < 0.75:
        hints["DEDUP_FSYNC"] = "never"
    if draw.random() < 0.5:
        hints["DEDUP_CHUNK_SIZE"] = draw.choice(["512", "512", "1000", "64 KiB"])
    if draw.random() < 0.25:
        hints["DEDUP_THRESHOLD"] = draw.choice(["1", "4", "100"])
    if draw.random() < 0.25:
        hints["DEDUP_EXCHANGE"] = "put"
    if draw.random() < 0.25:
        hints["DEDUP_PARTNERS"] = "ring"
    return hints


def may_lose(draw, jobs, copies):
    """A set of nodes without which every job's files must still be whole."""
    nodes = sorted({node for job in jobs for node in job.nodes})
    draw.shuffle(nodes)
    lost = []
    for node in nodes:
        more = {*lost, node}
        if all(len(more & set(job.nodes)) < min(copies, len(job.nodes)) for job in jobs):
            lost.append(node)
    return lost


def case_of(seed, steps=STEPS):
    draw = random.Random(seed)
    ranks, count = draw.choice(LAYOUTS)
    hints = draw_hints(draw)
    case = Case([Job(ranks, [f"n{i}" for i in range(count)], seed, steps)], hints)
    if draw.random() < 0.4:
        hints["DEDUP_BUFFER"] = "1 MiB"  # the least
        case.large = draw.random() < 0.5  # so that a dump needs many rounds
    if draw.random() < 0.15:
        case.sync = True
        hints["DEDUP_VISIBILITY"] = "sync"
    if draw.random() < 0.3:  # another job goes on with the files
        more = draw.randrange(0, 3)
        nodes = case.jobs[0].nodes + [f"m{i}" for i in range(more)]
        nodes = nodes[:MOST_RANKS]
        case.jobs.append(Job(draw.randint(len(nodes), MOST_RANKS), nodes, seed + 500000000, steps))
    if draw.random() < 0.5:  # and one on other nodes, without some of the stores, compares them
        lost = may_lose(draw, case.jobs, int(hints["DEDUP_REPLICATION"]))
        nodes = [n for n in dict.fromkeys(n for job in case.jobs for n in job.nodes)
                 if n not in lost]
        nodes = (nodes + [f"k{i}" for i in range(draw.randrange(0, 3))])[:MOST_RANKS]
        draw.shuffle(nodes)
        case.jobs.append(Job(draw.randint(len(nodes), MOST_RANKS), nodes, lost=lost))
    if draw.random() < 0.2:
        hints["DEDUP_FLUSH"] = "close"
    return case


# ---- Running --------------------------------------------------------------------------------------


def plan_options(case, job):
    """What determines the job's operations."""
    options = ["--seed", job.seed, "--steps", job.steps]
    if case.large:
        options.append("--large")
    if job.only is not None:
        options += ["--only", ",".join(map(str, job.only)) or "-1"]
    return options


def command_of(case, job, program, stores, files):
    command = [integration.BUILD / "bin" / "dedup-mpiexec", "--nodes", ",".join(job.nodes),
               "--store", stores, "-n", job.ranks, program, *case.options]
    if case.sync:
        command.append("--sync")
    command += ["--check"] if job.steps == 0 else plan_options(case, job)
    return [str(word) for word in (*command, files)]


def script_of(case):
    """The case as shell commands, in a directory of its own."""
    program = compile_fuzzer()
    lines = ['cd "$(mktemp -d)" && mkdir files']
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(case.hints.items())]
    for job in case.jobs:
        if job.lost:
            lines.append("rm -r " + " ".join(f"stores/{node}" for node in job.lost))
        command = command_of(case, job, program, "$PWD/stores", "$PWD/files")
        lines.append(" ".join(word if word.startswith("$PWD") else shlex.quote(word)
                              for word in command))
    return "\n".join(lines)


def run_job(case, job, program, directory, timeout):
    environment = integration.clean_environment()
    environment.update(case.hints)
    for node in job.lost:
        shutil.rmtree(directory / "stores" / node, ignore_errors=True)
    report = directory / "report"
    command = command_of(case, job, program, directory / "stores", directory / "files")
    command += ["--report", str(report), "--verbose"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        text, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        integration.kill_tree(process)
        text, _ = process.communicate()
        return Outcome("hang", text)
    finally:
        if process.poll() is None:
            integration.kill_tree(process)
    if process.returncode == 0 and "no difference" in text:
        return Outcome("ok", text)
    if report.exists():
        text = report.read_text(errors="replace") + text
    if process.returncode == DIFFERS or "DIFFERENCE" in text:
        return Outcome("difference", text)
    return Outcome("crash", f"exit code {process.returncode}\n{text}")


def compare_plain_files(directory):
    """With dedup_flush=close a job leaves whole plain files, as ufs: does."""
    for name in "AB":
        first, second = (path.read_bytes() if path.exists() else None
                         for path in (directory / f"first-{name}", directory / f"second-{name}"))
        if first == second:
            continue
        if first is None or second is None:
            words = f"with {'dedup:' if first is None else 'ufs:'} only"
        elif len(first) != len(second):
            words = f"{len(first)} bytes with ufs:, {len(second)} with dedup:"
        else:
            words = f"byte {next(i for i, b in enumerate(first) if b != second[i])} differs"
        return Outcome("difference", f"DIFFERENCE: plain file {name}: {words}\n")
    return Outcome("ok")


def run_case(case, timeout=integration.HANG_GUARD_SECONDS):
    """Runs the jobs up to the first that does not end well."""
    program = compile_fuzzer()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="dedup-fuzz."))
    try:
        (directory / "files").mkdir()
        for number, job in enumerate(case.jobs):
            outcome = run_job(case, job, program, directory, timeout)
            if outcome.kind == "ok" and case.hints.get("DEDUP_FLUSH") == "close":
                outcome = compare_plain_files(directory / "files")
            outcome.job = number
            if outcome.kind != "ok":
                return outcome
        return outcome
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def summary(outcome):
    """The program's own words about what went wrong, or what it did last."""
    words = [line for line in dict.fromkeys(outcome.text.splitlines())
             if re.match(r"(DIFFERENCE|BROKEN|dedup:|  in |exit code)", line)]
    if outcome.kind != "difference":
        words += re.findall(r"^ *\d+: .*", outcome.text, re.MULTILINE)[-1:]
    return "\n".join(words[:8])


# ---- Shrinking ------------------------------------------------------------------------------------


def list_of(case, job):
    """The job's operations, readable."""
    if job.steps == 0:
        return f"compares everything on {job.ranks} ranks\n"
    command = [compile_fuzzer(), *plan_options(case, job), "--list"]
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


class Shrinker:
    """Makes a failing case smaller as long as it fails in the same way."""

    def __init__(self, case, timeout, attempts=1, say=print):
        self.case, self.timeout, self.attempts, self.say = case, timeout, attempts, say
        self.outcome = self.fails(case, None)

    def fails(self, case, kind):
        for _ in range(self.attempts):
            outcome = run_case(case, self.timeout)
            if outcome.kind != "ok" and kind in (None, outcome.kind):
                return outcome
        return None

    def attempt(self, case):
        outcome = self.fails(case, self.outcome.kind)
        if outcome is None:
            return False
        self.case, self.outcome = case, outcome
        return True

    def with_job(self, number, **changes):
        jobs = list(self.case.jobs)
        jobs[number] = dataclasses.replace(jobs[number], **changes)
        return dataclasses.replace(self.case, jobs=jobs)

    def drop_operations(self, number):
        part = max(1, len(self.case.jobs[number].operations()) // 2)
        while True:
            at = 0
            while at < len(self.case.jobs[number].operations()):
                operations = self.case.jobs[number].operations()
                if not self.attempt(self.with_job(number, only=operations[:at]
                                                  + operations[at + part:])):
                    at += part
                self.say(f"job {number}: {len(self.case.jobs[number].operations())} operations")
            if part == 1:
                return
            part //= 2

    def drop_jobs(self):
        del self.case.jobs[self.outcome.job + 1:]
        number = 0
        while number < len(self.case.jobs) - 1:
            jobs = self.case.jobs[:number] + self.case.jobs[number + 1:]
            if not self.attempt(dataclasses.replace(self.case, jobs=jobs)):
                number += 1

    def drop_hints(self):
        for name in list(self.case.hints):
            hints = {n: v for n, v in self.case.hints.items() if n != name}
            self.attempt(dataclasses.replace(self.case, hints=hints))
        if self.case.sync:
            self.attempt(dataclasses.replace(self.case, sync=False))

    def drop_ranks(self, number):
        for ranks in range(1, self.case.jobs[number].ranks):
            nodes = self.case.jobs[number].nodes
            if any(self.attempt(self.with_job(number, ranks=ranks, nodes=nodes[:count]))
                   for count in range(1, min(ranks, len(nodes)) + 1)):
                return

    def run(self):
        if self.outcome is None:
            return False
        self.drop_jobs()
        self.drop_hints()
        while True:
            before = self.case
            for number, job in enumerate(self.case.jobs):
                if job.steps > 0:
                    self.drop_operations(number)
                if not any(later.lost for later in self.case.jobs):
                    self.drop_ranks(number)
            self.drop_hints()
            if self.case == before:
                return True
