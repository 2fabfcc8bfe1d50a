"""dedupctl mount: committed files as plain ones, through FUSE."""

import ctypes
import errno
import mmap
import os
import random
import signal
import subprocess
import sys
import tarfile
import time

import pytest

from ctl import FAILED, FINE, IN_USE, NO_STORE, USAGE, dedupctl
from form import TEST_BUILD
from mounts import HANG_GUARD_SECONDS, is_mounted, wait_until, why_not
from stores import Model, Script, Site, changed, noise, parts, shared_site

BLOCK = 4 << 20
CHUNK = 4096
THREE = ["n0", "n1", "n2"]
HINTS = {"replication": 2, "chunk_size": CHUNK}
MNT_FORCE = 1  # of <sys/mount.h>


pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    return shared_site(tmp_path)


class Mount:
    """Of a site's stores, at `directory`."""

    def __init__(self, site, directory):
        self.site = site
        self.directory = directory
        self.log = site.root / "mount.log"
        self.process = None
        directory.mkdir()

    def up(self, *options):
        answer = dedupctl(self.site, "mount", "--log", self.log, *options, self.directory)
        assert answer.code == FINE, answer
        return self

    def up_in_foreground(self):
        """So that it can be sent signals, and ends as this process's child."""
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [TEST_BUILD / "bin" / "dedupctl", "--store", self.site.stores, "mount", "-f", self.directory],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: os.path.ismount(self.directory) or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        return self

    def down(self):
        return dedupctl(self.site, "umount", f"{self.directory}/")

    def of(self, path):
        """A path as it is in the mount."""
        return self.directory / str(path)[1:]

    def kept(self, path, number):
        return self.directory / ".generations" / f"{str(path)[1:]}@{number}"

    def clean_up(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if is_mounted(self.directory):
            subprocess.run(["fusermount3", "-u", "-z", self.directory], check=True)


@pytest.fixture(name="mounts")
def fixture_mounts():
    """A function that makes mounts, which go with the test."""
    made = []

    def make(site, directory=None):
        made.append(Mount(site, directory or site.root / "mnt"))
        return made[-1]

    yield make
    for mount in made:
        mount.clean_up()


@pytest.fixture(name="mount")
def fixture_mount(site, mounts):
    return mounts(site)


def write(site, content, path=None, nodes=None, **hints):
    """A new generation of the file, or of the one at `path`."""
    nodes = nodes or THREE
    script = Script().open("wc").write("all-at", parts(content, len(nodes))).close()
    site.run(script, nodes, len(nodes), {**HINTS, **hints}, path=path).check()
    return content


def write_with_holes(site):
    """In several blocks, with a hole of more than one; bytes that repeat, and some that do not."""
    pieces = {rank: [(rank * BLOCK // 2 + 7, noise("same", 100_000) + noise(rank, 100_000))] for rank in range(3)}
    pieces[2].append((5 * BLOCK - 10, noise("end", 100_010)))
    model = Model()
    model.write(pieces)
    site.write(pieces, THREE, 3, HINTS, how="all-view")
    return bytes(model.content)


def read_at(file, offset, length):
    """What pread gives, or the name of its error."""
    try:
        return os.pread(file, length, offset)
    except OSError as error:
        return errno.errorcode[error.errno]


def flip(site, node, step):
    for segment in (site.file_directory(node) / "segments").iterdir():
        content = bytearray(segment.read_bytes())
        for place in range(64 + 50, len(content), step):
            content[place] ^= 0x10
        segment.write_bytes(content)


def tree(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def list_in_parts(directory):
    """The names, in as many parts as a program with little memory gets them in."""
    descriptor = os.open(directory, os.O_DIRECTORY)
    parts_of_list, buffer = [], ctypes.create_string_buffer(4096)
    while (size := ctypes.CDLL(None).getdents64(descriptor, buffer, len(buffer))) > 0:
        part, begin = [], 0
        while begin < size:
            length = int.from_bytes(buffer[begin + 16:begin + 18], sys.byteorder)
            part.append(os.fsdecode(buffer[begin + 19:begin + length].split(b"\0")[0]))
            begin += length
        parts_of_list.append(part)
    os.close(descriptor)
    assert size == 0
    return parts_of_list


def test_a_file_is_there_as_it_was_written(site, mount):
    content = write_with_holes(site)
    site.path.chmod(0o640)
    mount.up()
    path = mount.of(site.path)
    assert path.read_bytes() == content
    assert subprocess.run(["cmp", path, "-"], input=content, check=False).returncode == 0
    about, placeholder = path.stat(), site.path.stat()
    committed = dedupctl(site, "--json", "ls").file["time"]
    assert time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(about.st_mtime)) == committed
    assert (about.st_size, about.st_mode & 0o7777) == (len(content), 0o440)
    assert (about.st_uid, about.st_gid) == (placeholder.st_uid, placeholder.st_gid)
    assert tree(mount.directory) == [str(path.relative_to(mount.directory)) for path in
                                     [*reversed(path.parents), path] if path.is_relative_to(mount.directory)][1:]
    # In any order, through no cache of the kernel's, across ends of blocks and of the file.
    choose = random.Random(1)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for _ in range(200):
            begin = choose.choice([choose.randrange(len(content)), BLOCK * choose.randrange(6) - 3])
            begin, length = max(begin, 0), choose.choice([1, 6, 5000, 300_000])
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert os.pread(file.fileno(), length, begin) == content[begin:begin + length], (begin, length)
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            assert memory[BLOCK - 100:BLOCK + 100] == content[BLOCK - 100:BLOCK + 100]
    for change in (lambda: open(path, "r+b"), path.unlink, lambda: path.rename(path.with_name("other")),
                   lambda: path.with_name("new").touch()):
        with pytest.raises(OSError) as error:
            change()
        assert error.value.errno == errno.EROFS
    assert not path.with_name("none").exists() and not (mount.directory / "none").exists()
    assert mount.down().code == FINE and not list(mount.directory.iterdir())


def test_programs_that_know_nothing_of_mpi(site, mount):
    """h5dump, and tar of all files, each once; one is of a byte, some have names that are unusual."""
    numbers = site.root / "numbers"
    numbers.write_text(" ".join(str(i) for i in range(1000)))
    plain = site.root / "plain.h5"
    subprocess.run(["h5import", numbers, "-dims", "1000", "-path", "a", "-type", "TEXTIN", "-size", "32",
                    "-outfile", plain], check=True, capture_output=True)
    script = Script()
    names = ["a\nb", "..hidden", "-rf", " ", "é", "byte", "data.h5", *(f"{i}".zfill(255) for i in range(16))]
    contents = {name: noise(name, 10_000) for name in names}
    contents["byte"], contents["data.h5"] = b"x", plain.read_bytes()
    for number, name in enumerate(names):
        script.open("wc").write("all-at", {0: [(0, contents[name])]}).close()
        script.add("@0", "shell", f"mv {site.path} {site.root / f'moved{number}'}").add("barrier")
    site.run(script, 1, 1, {**HINTS, "replication": 1, "fsync": "never"}).check()
    for number, name in enumerate(names):
        (site.root / f"moved{number}").rename(site.path.parent / name)
    mount.up()
    path = mount.of(site.path.parent / "data.h5")
    dumped = subprocess.run(["h5dump", path], check=True, capture_output=True, text=True).stdout
    assert "999" in dumped
    assert dumped.replace(str(path), "") == subprocess.run(
        ["h5dump", plain], check=True, capture_output=True, text=True).stdout.replace(str(plain), "")
    archive = site.root / "all.tar"
    subprocess.run(["tar", "-cf", archive, "-C", mount.directory, "."], check=True)
    with tarfile.open(archive) as tar:
        found = {os.path.basename(member.name): tar.extractfile(member).read() for member in tar if member.isfile()}
    assert found == contents
    listed = list_in_parts(path.parent)
    assert len(listed) > 1 and sorted(name for part in listed for name in part) == sorted([".", "..", *names])


def test_a_reader_keeps_its_generation_and_the_next_gets_the_new_one(site, mount):
    old = write(site, noise(1, 300_000))
    mount.up()
    path = mount.of(site.path)
    with open(path, "rb") as before:
        assert os.pread(before.fileno(), 5000, 0) == old[:5000]
        new = write(site, noise(2, 400_000))
        with open(path, "rb") as after:
            assert after.read() == new
            assert os.pread(before.fileno(), len(new), 0) == old
            assert os.fstat(before.fileno()).st_size == len(old) and path.stat().st_size == len(new)
            assert dedupctl(site, "rm", site.path).code == IN_USE, "as if a job had it open"
    assert path.read_bytes() == new
    # Closing is not waited for by who closes.
    wait_until(lambda: dedupctl(site, "rm", site.path).code == FINE)
    assert not path.exists()


def test_new_files_and_directories_are_seen(site, mount):
    write(site, noise(1, 10_000))
    mount.up()
    assert mount.of(site.path).exists()
    there = {site.path.parent / "other": noise(2, 10_000), site.root / "new" / "below" / "file": noise(3, 10_000)}
    (site.root / "new" / "below").mkdir(parents=True)
    for path, content in there.items():
        write(site, content, path)
        assert mount.of(path).read_bytes() == content
    # A directory that is listed may be a second old.
    wait_until(lambda: sum(path.is_file() for path in mount.directory.rglob("*")) == 3)
    # A node that had no store.
    content = write(site, noise(4, 300_000), nodes=[*THREE, "n3"], replication=1)
    assert mount.of(site.path).read_bytes() == content


def test_the_nodes_that_are_left_are_enough(site, mount):
    content = write_with_holes(site)
    site.lose("n1")
    mount.up()
    assert mount.of(site.path).read_bytes() == content


def test_a_store_that_fails_meanwhile_is_left_out(site, mount):
    content = write_with_holes(site)
    mount.up()
    assert mount.of(site.path).stat().st_size == len(content)
    (site.store("n1") / "files").rename(site.root / "files")
    (site.store("n1") / "files").touch()
    assert mount.of(site.path).read_bytes() == content
    assert "stores/n1/files" in mount.log.read_text()


def test_a_bad_copy_is_not_read(site, mount):
    content = write_with_holes(site)
    flip(site, "n1", 3000)
    mount.up()
    assert mount.of(site.path).read_bytes() == content


def test_what_is_lost_is_an_error_and_is_named(site, mount):
    content = write(site, noise(1, 3 * BLOCK), replication=1)
    missing = dedupctl(site, "--json", "ls").file["stores"]
    (missing,) = [store["uuid"] for store in missing if store["node"] == "n1"]
    site.lose("n1")
    mount.up()
    with open(mount.of(site.path), "rb") as file:
        got = [read_at(file.fileno(), begin, CHUNK) for begin in range(0, len(content), CHUNK)]
    lost = [number for number, piece in enumerate(got) if piece == "EIO"]
    assert 0 < len(lost) < len(got)
    for number, piece in enumerate(got):
        assert piece in ("EIO", content[number * CHUNK:(number + 1) * CHUNK]), number
    said = mount.log.read_text().splitlines()
    assert f"bytes {lost[0] * CHUNK} to " in said[0] and str(site.path) in said[0], said[0]
    assert f"store {missing} of node n1" in said[0], said[0]
    assert len(said) < 20 and "dedupctl check" in said[-1], "a file without end of lines in the log"


def test_stripes_of_which_nodes_are_lost(site, mount):
    nodes = [f"n{i}" for i in range(6)]
    content = write(site, noise(1, 6 * 40 * CHUNK), nodes=nodes, replication=3, redundancy="rs:4+2")
    site.lose("n1", "n4")
    mount.up()
    assert mount.of(site.path).read_bytes() == content


def test_older_generations(site, mount):
    contents = {}
    for number in (1, 2, 3):
        contents[number] = write(site, changed(noise(1, 40 * CHUNK), number, CHUNK), keep=3)
    site.path.chmod(0o600)
    mount.up()
    assert mount.of(site.path).read_bytes() == contents[3]
    for number in (1, 2):
        assert mount.kept(site.path, number).read_bytes() == contents[number]
        assert mount.kept(site.path, number).stat().st_mode & 0o777 == 0o400
    for wrong in (3, 4):
        assert not mount.kept(site.path, wrong).exists()
    assert sorted(os.listdir(mount.kept(site.path, 1).parent)) == ["file@1", "file@2"]
    assert ".generations" not in os.listdir(mount.directory), "who goes through all finds each file once"
    assert not mount.kept(site.path, 1).parent.with_name("none").exists()


def test_where_nodes_share_no_file_system(tmp_path, mounts):
    """The stores find the file by its path; nothing stands there."""
    site = Site(tmp_path)
    old = write(site, noise(1, 300_000))
    mount = mounts(site).up()
    path = mount.of(site.path)
    assert path.read_bytes() == old
    assert path.stat().st_mode & 0o777 == 0o400
    new = write(site, noise(2, 400_000))
    assert path.read_bytes() == new


def output_of(mount, *command):
    """Of a program that looks at a mount. One that waits for it for ever cannot be killed, and is helped out."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            return process.communicate(timeout=HANG_GUARD_SECONDS)[0]
        except subprocess.TimeoutExpired:
            ctypes.CDLL(None).umount2(os.fsencode(mount.directory), MNT_FORCE)  # ends what waits, also if it fails
            pytest.fail(f"hangs: {command}")


def test_it_is_not_led_into_itself(site, mounts):
    """A search for a placeholder goes through all directories beside those that the stores know."""
    content = write(site, noise(1, 10_000))
    site.path.rename(site.path.with_name("moved"))
    mount = mounts(site, site.path.parent / "mnt").up("--search", site.root)
    moved = mount.of(site.path.with_name("moved"))
    assert output_of(mount, "cat", moved) == content
    (site.root / "empty").mkdir()
    for _ in range(3):
        assert b"No such file" in output_of(mount, "ls", mount.of(site.root / "empty")), "looks through all"
    assert output_of(mount, "ls", mount.of(site.path.parent)) == b"moved\n"
    assert b"No such file" in output_of(mount, "ls", mount.of(site.path))
    site.path.with_name("moved").unlink()
    assert b"No such file" in output_of(mount, "ls", moved)


def test_taking_it_down_while_a_file_is_open(site, mount):
    content = write(site, noise(1, 300_000))
    mount.up_in_foreground()
    with open(mount.of(site.path), "rb") as file:
        assert os.pread(file.fileno(), 10, 0) == content[:10]
        answer = mount.down()
        assert answer.code == IN_USE and "use it?" in answer.err, answer
        assert os.pread(file.fileno(), len(content), 0) == content
        mount.process.send_signal(signal.SIGTERM)
        assert mount.process.wait(HANG_GUARD_SECONDS) == 0
        assert not is_mounted(mount.directory)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert read_at(file.fileno(), 0, 10) in ("ENOTCONN", "ECONNABORTED")
    assert dedupctl(site, "rm", site.path).code == FINE, "nothing is locked any more"


def test_one_that_was_killed_is_taken_down(site, mount):
    write(site, noise(1, 10_000))
    mount.up_in_foreground()
    answer = dedupctl(site, "mount", mount.directory)
    assert answer.code == USAGE and "mounted already" in answer.err, answer
    mount.process.kill()
    mount.process.wait()
    answer = dedupctl(site, "mount", mount.directory)
    assert answer.code == USAGE and "dedupctl umount" in answer.err, answer
    assert mount.down().code == FINE
    mount.up()
    assert mount.of(site.path).exists()


def test_in_a_job_each_process_mounts_by_itself(site, mount):
    """As where a launcher is all that reaches a cluster's hosts."""
    content = write(site, noise(1, 10_000))
    for command in ("mount", "umount"):
        answer = dedupctl(site, command, mount.directory, nodes=["n0"])
        assert answer.code == FINE, answer
        assert is_mounted(mount.directory) == (command == "mount")
        assert command == "umount" or mount.of(site.path).read_bytes() == content


def test_what_cannot_be_mounted(site, mount):
    write(site, noise(1, 10_000))
    answer = dedupctl(site, "mount", site.root / "none")
    assert answer.code == USAGE and "make it first" in answer.err, answer
    answer = dedupctl(site, "mount", site.path)
    assert answer.code == USAGE and "is no directory" in answer.err, answer
    answer = dedupctl(site, "mount", site.path.parent)
    assert answer.code == USAGE and "is not empty" in answer.err, answer
    answer = dedupctl(site, "mount", mount.directory, stores=[site.root / "none"])
    assert answer.code == NO_STORE and str(site.root / "none") in answer.err, answer
    answer = dedupctl(site, "mount", "--log", site.root / "none" / "log", mount.directory)
    assert answer.code == FAILED and "none/log" in answer.err, answer
    answer = dedupctl(site, "umount", mount.directory)
    assert answer.code == USAGE and "has not mounted" in answer.err, answer
    assert not is_mounted(mount.directory)
