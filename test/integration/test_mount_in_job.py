"""dedup-mpiexec --mount: every host of a job has the mount from before its first process until after the last one."""

import os
import pathlib
import signal
import subprocess

import pytest

import form
from ctl import FINE, dedupctl
from form import TEST_BUILD
from mounts import is_mounted, wait_until, why_not
from stores import TIMEOUT, Model, Script, Site, noise, parts

THREE = ["n0", "n1", "n2"]
HINTS = {"replication": 2, "chunk_size": 4096}

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


class MountingSite(Site):
    """Its jobs have a mount, at `directory`."""

    def __init__(self, root):
        super().__init__(root, shared=True)
        (self.root / "data").mkdir()
        self.path = self.root / "data" / "file"
        self.directory = self.root / "mnt"

    def command(self, nodes, ranks, play):
        launcher, *words = super().command(nodes, ranks, play)
        return [launcher, f"--mount={self.directory}", *words]

    def start_program(self, *words, ranks=3, nodes=None, wrapper=()):
        """Another program than play."""
        command = [*wrapper, *self.command(nodes or THREE, ranks, words)]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("DEDUP_")}
        return subprocess.Popen([str(word) for word in command], env={**variables, **form.environment()}, cwd=self.root,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_program(self, *words, **keywords):
        process = self.start_program(*words, **keywords)
        out, err = process.communicate(timeout=TIMEOUT)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def write_noise(self, seed, length=300_000):
        content = noise(seed, length)
        pieces = parts(content, 3)
        Site.write(self, pieces, THREE, 3, HINTS)
        return content

    def processes(self):
        """Of dedupctl, for this mount."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # ended meanwhile
            if b"--for-job" in words and os.fsencode(self.directory) in words:
                found.append(int(entry.name))
        return found

    def wait_for_end(self):
        wait_until(lambda: not self.processes())
        assert not is_mounted(self.directory) and not self.directory.exists()


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    one = MountingSite(tmp_path)
    yield one
    for process in one.processes():
        os.kill(process, signal.SIGTERM)
    if is_mounted(one.directory):
        subprocess.run(["fusermount3", "-u", "-z", one.directory], check=False)


def test_programs_that_know_nothing_of_mpi_have_it(site):
    content = site.write_noise(1)
    (site.root / "expected").write_bytes(content)
    assert not site.directory.exists()
    done = site.run_program("sh", "-c", 'cmp "$DEDUP_MOUNT$1" "$2" && echo "$DEDUP_MOUNT"', "sh", site.path,
                            site.root / "expected")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{site.directory}\n" * 3, "")
    assert not is_mounted(site.directory) and not site.directory.exists(), "made for the job, and gone with it"
    site.directory.mkdir()
    # What becomes of a wrapper, and what it leaves behind, has it too.
    text = 'sh -c "sleep 0.2; cmp \\"$DEDUP_MOUNT$1\\" $2 && echo late" & exec sh -c "exec cmp \\"$DEDUP_MOUNT$1\\" $2"'
    done = site.run_program("sh", "-c", text, "sh", site.path, site.root / "expected", ranks=1)
    assert (done.returncode, done.stdout, done.stderr) == (0, "late\n", "")
    wait_until(lambda: not site.processes())
    assert not is_mounted(site.directory) and site.directory.exists(), "it was there before"


def test_what_the_job_commits_is_seen_by_who_opens_it_then(site):
    """Also the first job of all, whose nodes have no stores when it begins."""
    contents = [noise(number, 200_000 + number) for number in range(3)]
    script = Script()
    copies = [site.root / f"copy{number}" for number in range(3)]
    for content, copy in zip(contents, copies):
        script.open("wc").add("size", 0, 0).write("all-at", parts(content, 3)).close()
        script.add("@2", "shell", f"cat {site.directory}{site.path} >{copy}").add("barrier")
    site.run(script, THREE, 3, HINTS).check()
    assert [copy.read_bytes() for copy in copies] == contents
    site.wait_for_end()
    model = Model(contents[-1])
    site.expect(model, THREE, 3)


def hosts(*names):
    """Nodes that are not simulated: a mount reads the store of the process that it began with, as on a cluster."""
    return [(name, 1) for name in names]


def read_by_all(site, copies, script=None):
    """Further steps of a job: each rank reads the file below the mount."""
    script = script or Script()
    for rank, copy in enumerate(copies):
        script.add(f"@{rank}", "shell", f"cat {site.directory}{site.path} >{copy}")
    return script.add("barrier")


@pytest.mark.parametrize("redundancy", ["copies", "xor:2"])
def test_what_other_nodes_have_is_read_through_their_services(site, redundancy):
    """Of each chunk there is one, or one and a parity, so no node has all; then a node is lost."""
    content = noise(1, 700_001)
    hints = {"chunk_size": 4096, **({"replication": 1} if redundancy == "copies" else {"redundancy": redundancy})}
    copies = [site.root / f"copy{rank}" for rank in range(3)]
    # While it is open, and a newer generation is being written.
    script = Script().open("wc").write("all-at", parts(content, 3)).add("sync", 0)
    script.write("all-at", parts(noise(2, 700_001), 3)).add("barrier")
    read_by_all(site, copies, script).write("all-at", parts(content, 3)).close()
    site.run(script, hosts("a", "b", "c"), 3, hints).check()
    assert [copy.read_bytes() == content for copy in copies] == [True] * 3
    # When nobody has it open.
    site.run(read_by_all(site, copies), hosts("c", "a", "b"), 3, hints).check()
    assert [copy.read_bytes() == content for copy in copies] == [True] * 3
    site.wait_for_end()
    # Without a node.
    if redundancy == "copies":
        shell = f'test "$(cat {site.directory}{site.path} 2>&1 >/dev/null | grep -c "Input/output error")" = 1'
        job = site.run(Script().add("@0", "shell", shell), hosts("a", "b"), 2, hints)
        assert job.code == 0 and "the stores here and the job's services do not have bytes" in job.stderr, f"{job}"
        assert "node c" in job.stderr, f"{job}"
    else:
        site.run(read_by_all(site, copies[:2]), hosts("a", "b"), 2, hints).check()
        assert [copy.read_bytes() == content for copy in copies[:2]] == [True] * 2
    site.wait_for_end()


def test_the_driver_opens_nothing_in_the_mount(site):
    """Services would look there, which the mount may be waiting for."""
    site.write_noise(1)
    path = f"{site.directory}{site.path}"
    for script in (Script().open("r"), Script().open("wc")):
        assert site.run(script, THREE, 3, HINTS, path=path).errors_of("open") == ["READ_ONLY"] * 3
    assert "READ_ONLY" in site.run(Script().add("delete"), THREE, 3, HINTS, path=path).errors_of("delete")
    site.wait_for_end()


def test_nodes_that_are_not_the_jobs_are_not_read(site):
    """Simulated ones, whose stores are on this host all the same."""
    site.write_noise(1)
    done = site.run_program("sh", "-c", 'cat "$DEDUP_MOUNT$1" >/dev/null', "sh", site.path, nodes=["n0"], ranks=1)
    assert done.returncode != 0 and "dedupctl: error" in done.stderr, done
    site.wait_for_end()


@pytest.mark.parametrize("end", ["code", "killed", "MPI_Abort", "SIGINT", "SIGTERM", "SIGKILL"])
def test_it_goes_however_the_job_ends(site, end):
    site.write_noise(1)
    started = site.root / "started"
    look = f'test -r {site.directory}{site.path} || exit 99; [ "$PMI_RANK" != 1 ] || '
    if end == "MPI_Abort":
        script = Script().open("r").add("shell", look + f"touch {started}").add("@1", "abort").add("barrier")
        job = site.start(script, THREE, 3).finish()
        assert job.code != 0 and started.exists(), job
    elif end in ("code", "killed"):
        last = "exit 7" if end == "code" else "kill -KILL $$"
        # mpiexec ends the others, which are no programs of MPI's, after a signal only.
        others = "exit 0" if end == "code" else "exec sleep 1000"
        done = site.run_program("sh", "-c", look + "{ " + f"touch {started}; {last}; " + "}; " + others)
        assert done.returncode != 0 and started.exists(), done
    else:
        # As in a terminal: with SIGINT not ignored.
        process = site.start_program("sh", "-c", look + f"touch {started}; exec sleep 1000",
                                     wrapper=["env", "--default-signal=INT"])
        wait_until(lambda: started.exists() or process.poll() is not None)
        process.send_signal(getattr(signal, end))
        process.communicate(timeout=TIMEOUT)
        assert process.returncode != 0 and started.exists()
    site.wait_for_end()


def test_the_next_job_need_not_wait(site):
    """Also where the one before was ended, and its mount may be about to be taken down."""
    (site.root / "expected").write_bytes(site.write_noise(1))
    for number in range(4):
        done = site.run_program("sh", "-c", 'cmp "$DEDUP_MOUNT$1" "$2" && touch "$3$PMI_RANK"; '
                                '[ "$PMI_RANK" = 1 ] && kill -KILL $$; exec sleep 1000', "sh", site.path, site.root / "expected",
                                site.root / f"read{number}.")
        assert done.returncode != 0 and "dedup" not in done.stderr, done
        assert (site.root / f"read{number}.1").exists()
    site.wait_for_end()


def assert_nothing_began(site, done, *parts_of_line):
    assert done.returncode != 0 and not list(site.root.glob("began*")), done
    told = [line for line in done.stderr.splitlines() if line.startswith(("dedup", "dedupctl"))]
    assert len(told) == 1 and all(part in told[0] for part in parts_of_line), done


def test_what_cannot_be_mounted_is_said_once_and_nothing_begins(site):
    began = ["sh", "-c", f"touch {site.root}/began$PMI_RANK"]
    site.directory.mkdir()
    (site.directory / "something").touch()
    assert_nothing_began(site, site.run_program(*began), "dedupctl: error", f"{site.directory}: is not empty")
    (site.directory / "something").unlink()
    no_device = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /dev/fuse && exec "$@"', "sh"]
    assert_nothing_began(site, site.run_program(*began, wrapper=no_device), f"{site.directory}: cannot mount there")
    site.directory.rmdir()
    site.directory = site.root / "none" / "mnt"
    assert_nothing_began(site, site.run_program(*began), "dedupctl: error", str(site.directory))
    site.directory = site.root / "plain"
    site.directory.touch()
    assert_nothing_began(site, site.run_program(*began), f"{site.directory}: is no directory")
    wait_until(lambda: not site.processes())


def test_two_jobs_need_two_directories(site):
    site.write_noise(1)
    started = site.root / "started"
    process = site.start_program("sh", "-c", f"touch {started}; exec sleep 1000", ranks=1)
    wait_until(lambda: started.exists() or process.poll() is not None)
    done = site.run_program("sh", "-c", f"touch {site.root}/began", ranks=1)
    assert_nothing_began(site, done, "another job", "--mount=DIR")
    # One that no job has put up.
    other = site.root / "other"
    other.mkdir()
    assert dedupctl(site, "mount", other).code == FINE
    first, site.directory = site.directory, other
    try:
        done = site.run_program("sh", "-c", f"touch {site.root}/began", ranks=1)
        assert_nothing_began(site, done, "is mounted already")
    finally:
        assert dedupctl(site, "umount", other).code == FINE
    site.directory = first
    assert is_mounted(first)
    process.terminate()
    process.communicate(timeout=TIMEOUT)
    site.wait_for_end()


def test_what_is_left_of_a_mount_whose_process_was_killed_goes(site):
    content = site.write_noise(1)
    (site.root / "expected").write_bytes(content)
    started = site.root / "started"
    process = site.start_program("sh", "-c", f"touch {started}; exec sleep 1000", ranks=1)
    wait_until(lambda: started.exists() or process.poll() is not None)
    (mount,) = site.processes()
    os.kill(mount, signal.SIGKILL)
    wait_until(lambda: not site.processes())
    assert is_mounted(site.directory)
    process.terminate()
    process.communicate(timeout=TIMEOUT)
    done = site.run_program("cmp", f"{site.directory}{site.path}", site.root / "expected")
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: not site.processes())
    assert not is_mounted(site.directory)
