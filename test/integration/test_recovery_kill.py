"""Jobs that are killed: the file reads as the previous generation or the new one, whole."""

import random

import pytest

from stores import AS_IF_MUCH, Model, Script, Site, fault_library, noise, parts

SEED = 42
ENCODING_STEPS = ["commit.encoding", "commit.encoded"]  # of those that speak for nodes
STRIPE_STEPS = [*ENCODING_STEPS, "commit.striped"]
STEPS = ["write.dumped", "commit.begin", "commit.dumped", *STRIPE_STEPS, "commit.shards", "commit.indexed",
         "commit.prepared", "commit.renamed", "commit.unfenced", "commit.fenced",
         "commit.installed", "commit.collected", "close.committed"]
GENERATIONS = 3
NODES = 3
RANKS = 4
LEADERS = (0, 2, 3)  # the nodes' first ranks, with the services
CALLS = 120  # that change files, by one of them in one job, at least


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


class Loop:
    """Writes generation after generation in jobs that are killed, and reads back after each."""

    def __init__(self, site, seed):
        self.site = site
        self.rng = random.Random(seed)
        site.shared = self.rng.choice([False, True])
        site.variables.update(self.rng.choice([{}, AS_IF_MUCH]))
        self.hints = {"replication": 2, "chunk_size": 4096,
                      "fsync": self.rng.choice(["commit", "never"]),
                      "redundancy": self.rng.choice(["copies", "xor:2"])}
        self.model = Model(noise(seed, 900_000))
        self.outcomes = {"none": 0, "old": 0, "new": 0}
        site.write(parts(bytes(self.model.content), RANKS), NODES, RANKS, self.hints)

    def change(self, step):
        """A collective write over everything, a smaller one, and independent ones."""
        rng = self.rng
        shift = rng.randrange(1, 5000)
        seed = rng.random()
        yield "all-at", parts(noise(seed, shift), 1)
        size = rng.randrange(1_100_000, 1_500_000)  # large enough to be dumped at once
        yield "all-at", {rank: [(at + shift, content)] for rank, pieces in
                         parts(noise(f"{seed} all", size), RANKS).items()
                         for at, content in pieces}
        # Disjoint: they happen at the same time.
        yield "at", {rank: [(rng.randrange(rank * 250_000, rank * 250_000 + 247_000),
                             noise(f"{seed} {step} {rank}", 3000))] for rank in range(RANKS)}

    def script(self, deaths):
        """The job's script, and what the file is after each of its generations. `deaths`: a rank
        dies after that many operations."""
        script = Script().open("w")
        model = self.model.copy()
        models = [model.copy()]
        operations = 0
        for step in range(GENERATIONS):
            for how, pieces in self.change(step):
                script.write(how, pieces).add("barrier")
                model.write(pieces)
                operations += 1
                if deaths and operations == deaths[0]:
                    script.add("die", deaths[1])
            script.add("sync", 0)
            models.append(model.copy())
            operations += 1
            if deaths and operations == deaths[0]:
                script.add("die", deaths[1])
        return script.close(), models

    def kill(self, environment=None, deaths=None):
        """One job, killed or not. Returns whether it was."""
        script, models = self.script(deaths)
        job = self.site.run(script, NODES, RANKS, self.hints, environment)
        # What a rank was told is committed. (When one is dead, others may get errors.)
        committed = max(sum(e.operation in ("sync", "close") and e.error == "SUCCESS"
                            for e in entries) for entries in job.results)
        committed = min(committed, GENERATIONS)
        readers = self.rng.choice([3, 5, 7])
        content = self.site.read(NODES, readers, self.rng.choice([0, 7001]))
        fits = [number for number, model in enumerate(models)
                if bytes(model.content) == content]
        assert fits, f"no generation, after {committed} were committed\n{job}"
        assert committed <= fits[-1] <= committed + 1, \
            f"generation {fits}, after {committed} were committed\n{job}"
        self.model = models[fits[-1]]
        was_killed = job.code != 0
        self.outcomes["none" if not was_killed
                      else "new" if fits[-1] > committed else "old"] += 1
        return was_killed

    def finish(self):
        """Everything that the killed jobs left behind is gone after another commit."""
        print(self.outcomes)
        final = {0: [(11, b"the end")]}
        self.model.write(final)
        self.site.write(final, NODES, RANKS, self.hints, mode="w")
        self.site.check_stores(self.model, 2)
        self.site.expect(self.model, ["n0", "n2"], 2)

    def at_step(self, step):
        rank = self.rng.randrange(RANKS)
        count = self.rng.randint(1, GENERATIONS)
        if step == "close.committed":
            count = 1
        if step in STRIPE_STEPS:
            self.hints["redundancy"] = "xor:2"
        print(f"kill {rank} at {step} {count}")
        killed = self.kill({"DEDUP_TEST_KILL": f"{step}:{count}:{rank}"})
        assert killed, f"rank {rank} never got to {step} for the {count}-th time"

    def at_operation(self):
        deaths = (self.rng.randint(1, GENERATIONS * 4), self.rng.randrange(RANKS))
        print("die", deaths)
        assert self.kill(deaths=deaths)

    def at_call(self, rank=None, call=None):
        """At the n-th call that changes a file, anywhere in the job."""
        rank = self.rng.randrange(RANKS) if rank is None else rank
        call = call or self.rng.randint(1, CALLS if rank in LEADERS else CALLS // 6)
        print(f"kill {rank} at call {call}")
        return self.kill({"LD_PRELOAD": str(fault_library()), "FAULT_RANK": str(rank),
                          "FAULT_CALL": str(call)})


@pytest.mark.parametrize("number", range(3))
def test_killed_again_and_again(site, number):
    loop = Loop(site, SEED + number)
    for step in STEPS[number::3][:2]:
        loop.at_step(step)
    loop.at_operation()
    loop.at_call()
    loop.finish()


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_killed_sixty_times(site, number):
    """20 kills each; half at named steps, the others anywhere."""
    loop = Loop(site, SEED + 100 + number)
    for turn in range(10):
        loop.at_step(STEPS[(number * 10 + turn) % len(STEPS)])
        if turn % 2:
            loop.at_operation()
        else:
            loop.at_call()
    loop.finish()


@pytest.mark.long
@pytest.mark.parametrize("step, rank", [(step, rank) for step in STEPS for rank in range(RANKS)
                                        if step not in ENCODING_STEPS or rank in LEADERS])
def test_killed_at_each_step_on_each_rank(site, step, rank):
    loop = Loop(site, f"{step} {rank}")
    if step in STRIPE_STEPS:
        loop.hints["redundancy"] = "xor:2"
    assert loop.kill({"DEDUP_TEST_KILL": f"{step}:1:{rank}"})
    loop.finish()


@pytest.mark.long
@pytest.mark.parametrize("rank", LEADERS)
def test_killed_at_every_few_calls(site, rank):
    loop = Loop(site, f"calls {rank}")
    for call in range(1 + rank, CALLS, 5):
        # There are fewer without flushes.
        if not loop.at_call(rank, call):
            assert call > CALLS / 2
            break
    loop.finish()


@pytest.mark.parametrize("step", ["commit.shards", "commit.prepared", "commit.renamed"])
def test_killed_while_the_first_generation_is_made(site, step):
    """Then there is no previous one: no file, or the new one."""
    model = Model(noise(3, 900_000))
    script = Script().open("wcx").write("all-at", parts(bytes(model.content), 3)).close()
    job = site.run(script, 3, 3, {"replication": 2}, {"DEDUP_TEST_KILL": f"{step}:1:1"})
    assert job.code != 0
    job = site.run(Script().open("r").close(), 3, 3)
    if job.errors_of("open") == ["SUCCESS"] * 3:
        # Not before all are prepared.
        assert step != "commit.shards"
        site.expect(model, 3, 4)
    else:
        assert job.errors_of("open") == ["NO_SUCH_FILE"] * 3, f"{job}"
    # The next job can make it, and leaves nothing of the killed one's.
    site.run(Script().add("delete"), 3, 3)
    site.write(parts(bytes(model.content), 3), 3, 3, {"replication": 2})
    site.check_stores(model, 2)


def test_killed_and_then_two_nodes_are_lost(site):
    """A node may vanish with the job that is killed."""
    hints = {"replication": 3}
    nodes = ["n0", "n1", "n2", "n3"]
    old = Model(noise(1, 1_000_000))
    site.write(parts(bytes(old.content), 4), nodes, 4, hints)
    new = Model(noise(2, 1_000_000))
    script = Script().open("w").write("all-at", parts(bytes(new.content), 4)).close()
    job = site.run(script, nodes, 4, hints, {"DEDUP_TEST_KILL": "commit.renamed:1:3"})
    assert job.code != 0
    site.lose("n0", "n3")
    content = site.read(["n1", "n2"], 3)
    assert content in (bytes(old.content), bytes(new.content))
