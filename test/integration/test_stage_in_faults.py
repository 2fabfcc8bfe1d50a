"""Faults while a plain file is brought into stores of two tiers (dedup_fetch=open, dedupctl import --cache), and while it
is dropped from them: at every call, full tiers, a plain file that others change half-way. After each the plain file is
what it was, or what they made of it, is read right, and can be brought in; and what was brought in can be dropped again."""

import os
import struct
import subprocess

import pytest

from ctl import FINE, dedupctl
from stores import Count, Model, Script, fault_library, noise, parts, shared_site
from test_fault_points import FAULTS, PLAN_BYTES
from test_write_back import files_in

KIB, MIB = 1 << 10, 1 << 20
NODES = ["n0", "n1"]
FETCH = {"replication": 2, "fetch": "open"}
WAYS = ["open", "import"]
KILLED = "killed"


@pytest.fixture
def site(tmp_path):
    site = shared_site(tmp_path)
    site.fast_limit = "1GiB"
    return site


class Plain:
    """A plain file at a site's path."""

    def __init__(self, site, size=300_000):
        self.site = site
        self.model = Model(noise(1, size))
        site.path.write_bytes(self.model.content)
        self.stat = self.about()

    def about(self):
        about = self.site.path.stat()
        return (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)

    def fetch(self, how, environment=None):
        """Whether it went well. What is read then is right."""
        if how == "import":
            before = dict(self.site.variables)
            self.site.variables.update(environment or {})
            answer = dedupctl(self.site, "import", "--cache", self.site.path, nodes=NODES)
            self.site.variables = before
            self.said = f"{answer}"
            return answer.code == FINE
        out = self.site.root / "out"
        out.unlink(missing_ok=True)
        script = Script().open("r").add("read", 0, out, 0).close()
        job = self.site.run(script, NODES, 2, FETCH, environment)
        self.said = f"{job}"
        if job.code != 0:
            return False
        opened = job.errors_of("open")
        assert len(set(opened)) == 1, self.said
        if opened[0] != "SUCCESS":
            return False
        job.check()
        assert out.read_bytes() == bytes(self.model.content), self.said
        return True

    def is_as_it_was(self):
        assert self.about() == self.stat, self.said
        assert self.site.path.read_bytes() == bytes(self.model.content)
        assert [path.name for path in self.site.path.parent.iterdir()] == [self.site.path.name]

    def is_cached(self):
        with Count(self.site) as count:
            self.site.expect(self.model, NODES, 2)
        return count.read == 0

    def goes_in_and_out(self):
        """It can be brought in and dropped, and then the stores have nothing."""
        assert self.fetch("open"), self.said
        self.is_as_it_was()
        assert self.is_cached(), self.said
        # gc is for what somebody left who was killed before a store had noted what the file is.
        for command in (["evict"], ["gc", "--unnamed", "--yes"]):
            answer = dedupctl(self.site, *command)
            assert answer.code == FINE, answer
        assert files_in(self.site) == []
        assert list(self.site.fast.rglob("*.seg")) == []
        self.is_as_it_was()


# ---- At every call ------------------------------------------------------------------------------


NUMBERS = {fault: number for number, fault in enumerate([*FAULTS, KILLED], 1)}  # store::Fault


class Plan:
    """What is to happen to a call of a rank to its stores and real paths (test/hooks/faults.h)."""

    def __init__(self, site, below):
        self.files = [site.root / f"plan.{rank}" for rank in range(2)]
        self.environment = {"DEDUP_TEST_FAULT": site.root / "plan", "DEDUP_TEST_FAULT_BELOW": below}

    def arm(self, rank, fault, call):
        """rank: None is all of them."""
        for number, file in enumerate(self.files):
            plan = struct.pack("<IIQQ", NUMBERS[fault] if rank in (None, number) else 0, 0, call, 0)
            file.write_bytes(plan.ljust(PLAN_BYTES, b"\0"))

    def calls(self, rank):
        return struct.unpack_from("<Q", self.files[rank].read_bytes(), 16)[0]

    def struck(self):
        return any(struct.unpack_from("<I", file.read_bytes(), 4)[0] for file in self.files)

    def where(self):
        return [file.read_bytes()[24:].rstrip(b"\0").decode(errors="replace") for file in self.files]


def points(calls, first):
    """Numbers of calls; all with DEDUP_TEST_EVERY_POINT=1."""
    step = 1 if os.environ.get("DEDUP_TEST_EVERY_POINT") else 31
    return range(1 + first % min(step, calls), calls + 1, step)


@pytest.mark.long
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("fault, tiers", [("full", "fast"), ("full", "slow"), ("full", "all"), ("ENOSPC", "fast"),
                                          ("ENOSPC", "slow"), ("EIO", "all"), (KILLED, "all")])
def test_a_fault_at_every_call(site, how, fault, tiers):
    plain = Plain(site)
    plain.fetch(how)
    plain.goes_in_and_out()
    plan = Plan(site, {"fast": site.fast, "slow": site.stores, "all": f"{site.fast}:{site.stores}"}[tiers])
    plan.arm(None, fault, 0)
    assert plain.fetch(how, plan.environment), plain.said
    calls = [plan.calls(rank) for rank in range(2)]
    plain.goes_in_and_out()
    # In each tier something takes space.
    assert min(calls) > 0, calls
    for rank in range(2):
        for call in points(calls[rank], 5 * rank + len(how) + 3 * len(tiers)):
            everywhere = (fault, tiers) == ("full", "all")
            plan.arm(None if everywhere else rank, fault, call)
            went_well = plain.fetch(how, plan.environment)
            plain.said += f"\ncall {call} of rank {rank}: {plan.where()}"
            assert plan.struck() or went_well, plain.said
            plain.is_as_it_was()
            # A file that can be read at its path is, unless a store cannot even be opened.
            is_full = fault in ("full", "ENOSPC")
            assert went_well or how != "open" or not is_full or "open: NO_SPACE" in plain.said, plain.said
            assert went_well or tiers != "fast" or "cannot flush" in plain.said, plain.said
            assert not went_well or fault != KILLED or not plan.struck(), plain.said
            plain.goes_in_and_out()


@pytest.mark.long
def test_killed_at_every_call_of_an_eviction(site):
    plain = Plain(site)
    wanted = {"LD_PRELOAD": str(fault_library()), "FAULT_RANK": "1"}
    count = site.root / "count"

    def evict(**more):
        before = dict(site.variables)
        site.variables.update({**wanted, **more})
        answer = dedupctl(site, "evict", nodes=NODES)
        site.variables = before
        return answer

    assert plain.fetch("open")
    assert evict(FAULT_COUNT=str(count)).code == FINE
    calls = int(count.read_text())
    assert calls > 5 and files_in(site) == []
    for call in range(1, calls + 1):
        assert plain.fetch("open"), plain.said
        assert evict(FAULT_CALL=str(call)).code != FINE, f"call {call}"
        plain.is_as_it_was()
        site.expect(plain.model, NODES, 2)
        plain.goes_in_and_out()


@pytest.mark.long
@pytest.mark.parametrize("function", ["unlink", "rename", "rmdir"])
def test_killed_while_it_makes_room(site, function):
    """A job needs the room that a file takes which is at its path, too, and an older generation of another."""
    site.fast_limit, site.limit = "4MiB", "4MiB"
    plain = Plain(site, 2 * MIB)
    kept, new = site.root / "kept", site.root / "new"
    count = site.root / "count"
    wanted = {"LD_PRELOAD": str(fault_library()), "FAULT_RANK": "0", "FAULT_ONLY": function}
    content = noise(5, 4 * MIB)

    def job(mode, content, path, environment=None, **hints):
        script = Script().open(mode).write("all-at", parts(content, 1)).close()
        return site.run(script, ["n0"], 1, {"replication": 1, **hints}, environment, path=path)

    def begin():
        for path in (kept, new):
            site.run(Script().add("delete"), ["n0"], 1, {}, path=path)
        assert dedupctl(site, "gc", "--unnamed", "--yes").code == FINE
        job("wc", noise(3, MIB), kept).check()
        job("w", noise(4, MIB), kept, keep=2).check()
        script = Script().open("r").close()
        site.run(script, ["n0"], 1, {"replication": 1, "fetch": "open"}).check()

    begin()
    job("wc", content, new, {**wanted, "FAULT_COUNT": str(count)}).check()
    calls = int(count.read_text())
    assert calls > 0
    for call in points(calls, len(function)):
        begin()
        done = job("wc", content, new, {**wanted, "FAULT_CALL": str(call)})
        assert done.code != 0, f"call {call}: {done}"
        plain.said = f"call {call}: {done}"
        assert site.path.read_bytes() == bytes(plain.model.content)
        site.expect(plain.model, ["n0"], 1)
        answer = dedupctl(site, "cat", kept, text=False)
        assert answer.code == FINE and answer.out == noise(4, MIB), f"call {call}: {answer}"
        job("wc", content, new).check()
        answer = dedupctl(site, "cat", new, text=False)
        assert answer.code == FINE and answer.out == content, f"call {call}: {answer}"


# ---- Full tiers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("tiers", ["fast", "slow", "all"])
def test_tiers_with_less_and_less_room(site, mount_tmpfs, how, tiers):
    """… of real file systems, so that they are full at one step and at another."""
    small = [directory for name, directory in (("fast", site.fast), ("slow", site.stores)) if tiers in (name, "all")]
    plain = Plain(site, 5 * MIB)
    for directory in small:
        for node in NODES:
            mount_tmpfs(directory / node, "64m", ",mode=700")
    plain.goes_in_and_out()
    outcomes = set()
    for size in (12 * KIB, 64 * KIB, 300 * KIB, 1100 * KIB, 2500 * KIB, 3500 * KIB, 6 * MIB, 12 * MIB):
        for directory in small:
            for node in NODES:
                mount_tmpfs(directory / node, size)
        went_well = plain.fetch(how)
        plain.is_as_it_was()
        # What finds no room is read where it is; by hand that is an error.
        cached = plain.is_cached()
        assert went_well or (how == "import" and not cached), plain.said
        assert cached or how == "open" or "space" in plain.said or "room" in plain.said, plain.said
        assert cached or how == "import" or "is read where it is" in plain.said, plain.said
        # What does not fit into one tier fits into the other, but for what is in the last one only.
        assert cached or tiers != "fast", f"{size}: {plain.said}"
        outcomes.add(cached)
        for directory in small:
            for node in NODES:
                mount_tmpfs(directory / node, "64m")
        plain.goes_in_and_out()
    assert outcomes == ({True} if tiers == "fast" else {True, False})


# ---- The plain file is changed half-way ---------------------------------------------------------

HALVES = 12 * MIB  # of which each rank reads one

CHANGES = {
    "rewritten": "printf other | dd of={0} conv=notrunc status=none",
    "shortened": "truncate -s 100000 {0}",
    "replaced": "cp {0} {0}.new; printf other | dd of={0}.new conv=notrunc status=none; mv {0}.new {0}",
    "renamed": "mv {0} {0}.moved",
    "removed": "rm {0}",
    "unmounted": None,
}


def stalled_reading(site):
    """The environment of who waits, when half of the plain file is read, until the first path is there; the second one
    says that he does."""
    go = site.root / "go"
    return go, site.root / "go.stalled", {
        "LD_PRELOAD": str(fault_library("copy_faults")), "COPY_FAULT": "stall-read", "COPY_OF": str(site.path),
        "COPY_GO": str(go)}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("change", CHANGES)
def test_the_plain_file_is_changed_half_way(site, request, how, change):
    bound = request.getfixturevalue("bound") if change == "unmounted" else None
    plain = Plain(site, HALVES)
    content = bytes(plain.model.content)
    go, stalled, environment = stalled_reading(site)
    command = bound.command("umount") if bound else CHANGES[change].format(site.path)
    changer = subprocess.Popen(["bash", "-c", f"until [ -e {stalled} ]; do sleep 0.02; done; {command}; touch {go}"])
    out = site.root / "out"
    try:
        if how == "open":
            job = site.run(Script().open("r").add("read", 0, out, 0).close(), NODES, 2, FETCH, environment)
            plain.said, opened = f"{job}", job.errors_of("open")
        else:
            site.variables.update(environment)
            answer = dedupctl(site, "import", "--cache", site.path, nodes=NODES)
            for name in environment:
                del site.variables[name]
            plain.said, opened = f"{answer}", None
            assert answer.code != FINE and "another program" in answer.err, plain.said
        assert stalled.exists(), plain.said
        changer.wait()
    finally:
        changer.kill()
        changer.wait()
    # What is there now is what is read, by this job too.
    if change in ("removed", "renamed", "unmounted"):
        assert opened in (None, ["NO_SUCH_FILE"] * 2), plain.said
        assert not site.path.exists()
        if change == "unmounted":
            assert bound.run("mount").returncode == 0
        elif change == "renamed":
            site.path = site.path.with_name(f"{site.path.name}.moved")
        else:
            site.path.write_bytes(content)
        now = content
    else:
        now = {"shortened": content[:100_000]}.get(change, b"other" + content[5:])
        if how == "open":
            job.check()
            assert out.read_bytes() == now, plain.said
    assert site.path.read_bytes() == now
    plain.model = Model(now)
    plain.stat = plain.about()
    # Nothing of the one before is taken for it.
    site.expect(plain.model, NODES, 2)
    plain.is_as_it_was()
    plain.goes_in_and_out()


# ---- SIGTERM ------------------------------------------------------------------------------------


def test_ended_by_a_batch_system_while_it_is_brought_in(site, start):
    plain = Plain(site, HALVES)
    _, stalled, environment = stalled_reading(site)
    job = start(Script().open("r").close(), NODES, 2, FETCH, environment)
    job.wait_for(stalled)
    job.end_as_batch_systems_do()
    plain.said = f"{job}"
    plain.is_as_it_was()
    site.expect(plain.model, NODES, 2)
    plain.goes_in_and_out()
