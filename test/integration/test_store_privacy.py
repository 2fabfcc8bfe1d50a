"""Stores belong to their user, the service answers nobody else, and names stay names."""

import os
import pathlib
import socket
import stat
import struct
import time

import pytest

from stores import TIMEOUT, Model, Script, Site, descendants, noise, parts

HINTS = {"replication": 2}
LISTEN = "0A"


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


# ---- Permissions ---------------------------------------------------------------------------------


def test_stores_are_private_whatever_the_umask(site):
    before = os.umask(0)
    try:
        site.write(parts(noise(1, 900_000), 3), 3, 3, HINTS)
    finally:
        os.umask(before)
    count = 0
    for node in site.node_names():
        for path in [site.store(node), *site.store(node).rglob("*")]:
            mode = stat.S_IMODE(path.lstat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"
            count += 1
    assert count > 30


def test_a_store_that_others_may_enter_is_closed(site):
    model = Model(noise(1, 400_000))
    site.write(parts(bytes(model.content), 3), 3, 3, HINTS)
    site.store("n1").chmod(0o755)
    site.expect(model, 3, 3)
    assert stat.S_IMODE(site.store("n1").stat().st_mode) == 0o700


# ---- The service ---------------------------------------------------------------------------------


def listeners(process):
    """Ports on which a process listens."""
    sockets = set()
    try:
        for descriptor in pathlib.Path(f"/proc/{process}/fd").iterdir():
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    except OSError:
        return []
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTEN and words[9] in sockets:
                found.append((family, int(words[1].rsplit(":", 1)[1], 16)))
    return found


def service_ports(job):
    """The ports of a job's services: where processes listen that run our program. They inherit
    mpiexec's own listener, which does not bear being disturbed."""
    ours, others = set(), set()
    for process in descendants(job.process.pid):
        try:
            name = pathlib.Path(os.readlink(f"/proc/{process}/exe")).name
        except OSError:
            continue
        (ours if name == "play" else others).update(listeners(process))
    return sorted(ours - others)


def connect(family, port):
    peer = socket.socket(family, socket.SOCK_STREAM)
    peer.settimeout(TIMEOUT)
    peer.connect(("127.0.0.1" if family == socket.AF_INET else "::1", port))
    return peer


def drain(peer):
    """What comes until the other side closes."""
    received = b""
    while True:
        try:
            more = peer.recv(65536)
        except ConnectionResetError:
            return received
        if not more:
            return received
        received += more


FRAME = struct.pack("<II", 16, 1) + bytes(16)


GREETING = 40  # of a service: its name and version, and a challenge
PULSE = 8  # what says that a process runs: the first of these, to everybody


def greeting_of(family, port):
    with connect(family, port) as peer:
        return peer.recv(GREETING, socket.MSG_WAITALL)


@pytest.fixture
def running(site):
    """A job in the middle of its work: its service ports, and a function that ends it well."""
    model = Model(noise(1, 900_000))
    opened, go_on = site.root / "opened", site.root / "go_on"
    script = Script().open("wc").write("all-at", parts(bytes(model.content), 3))
    script.add("touch", opened).add("wait", go_on)
    script.write("at", {0: [(5, b"hello")]}).add("barrier").add("sync", 0)
    script.add("read", 0, site.root / "out", 0).close()
    model.write({0: [(5, b"hello")]})
    # MPICH does without TCP here, so whoever listens is a service.
    job = site.start(script, 3, 3, HINTS, {"UCX_TLS": "self,sm"})
    for _ in range(TIMEOUT * 100):
        if opened.exists() or job.process.poll() is not None:
            break
        time.sleep(0.01)
    ports = service_ports(job) if job.process.poll() is None else []
    # Each service has a thread that only tells that it runs, at a port of its own.
    greetings = {port: greeting_of(*port) for port in ports}
    pulses = [port for port in ports if len(greetings[port]) == PULSE]
    ports = [port for port in ports if port not in pulses]
    assert len(pulses) == len(ports)
    assert all(greetings[pulse] == greetings[port][:PULSE] for pulse, port in zip(pulses, ports))

    def end():
        go_on.touch()
        job.finish().check()
        assert (site.root / "out").read_bytes() == model.content
        site.check_stores(model, 2)

    yield ports, end
    if job.process.poll() is None:
        job.kill()


def test_one_service_a_node(running):
    ports, end = running
    assert len(ports) == 3
    end()


def test_the_service_refuses_who_does_not_know_the_secret(running):
    """Garbage, a request without a handshake, a wrong proof, a replayed hello, too many bytes: the
    connection is closed, and nothing but the greeting was said."""
    ports, end = running
    for family, port in ports:
        greeting = greeting_of(family, port)
        assert len(greeting) == GREETING
        for attempt in (os.urandom(64), FRAME + bytes(64), bytes(64), greeting[8:40] + bytes(32),
                        greeting + greeting, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(64),
                        b"\xff" * 100_000):
            with connect(family, port) as peer:
                try:
                    peer.sendall(attempt)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                assert len(drain(peer)) <= GREETING
    end()


def test_unfinished_handshakes_do_not_disturb(running):
    """Many connections that say nothing, or a part, and then stay or go."""
    ports, end = running
    peers = []
    for number in range(300):
        family, port = ports[number % len(ports)]
        peers.append(connect(family, port))
        peers[-1].sendall(b"x" * (number % 64))
        if number % 3 == 0:
            peers.pop().close()
    end()
    for peer in peers:
        peer.close()


def test_a_proof_for_one_service_is_none_for_another(running):
    """Somebody in the middle who hands a greeting on learns nothing: the services do not answer
    first."""
    ports, end = running
    (family_a, a), (family_b, b) = ports[:2]
    with connect(family_a, a) as left, connect(family_b, b) as right:
        first = left.recv(GREETING, socket.MSG_WAITALL)
        second = right.recv(GREETING, socket.MSG_WAITALL)
        assert first[:8] == second[:8] and first[8:] != second[8:]
        left.sendall(second[8:] + first[8:])
        right.sendall(first[8:] + second[8:])
        assert drain(left) == b"" and drain(right) == b""
    end()


# ---- Names ---------------------------------------------------------------------------------------


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.mark.parametrize("name", [
    "../../escape", "/../../../escape", "a/../../../b", "..", ".", "~/x", "$HOME", "%n", "%s%n%n",
    "new\nline", "tab\t", "\x01\x7f", "back\\slash", "sp ace", "n\u00e4me", "files", "STORE",
    "a" * 255, "d/" * 500 + "e", "-rf", "*", "dedup:twice", "a//b/./c/"])
def test_names_never_lead_outside_the_store(site, name):
    work = site.root / "work" / "deep" / "inside"
    work.mkdir(parents=True)
    site.root = work  # the job's directory
    content = noise(1, 300_000)
    script = Script().open("wc").write("all-at", {0: [(0, content)]}).close()
    script.open("r").add("read", 0, work / "out", 0).close()
    job = site.run(script, 2, 2, HINTS, path=name)
    if job.code == 0 and not job.failures():
        assert (work / "out").read_bytes() == content
        (file,) = site.walk()["files"]
        assert file["path"].startswith("/") and ".." not in file["path"].split("/")
    else:
        failed = [e for entries in job.results for e in entries if e.error != "SUCCESS"]
        assert failed and failed[0].operation == "open", f"{job}"
        assert failed[0].error in ("BAD_FILE", "NO_SUCH_FILE", "ACCESS", "ARG"), f"{job}"
    top = work.parents[2]
    for path in tree(top):
        inside = path.startswith("stores/")
        expected = path.startswith("work") or path == "stores"
        assert inside or expected, f"{path} was made"
    for node in site.node_names():
        for path in site.store(node).rglob("*"):
            assert not path.is_symlink()
            plain = path.name.replace("-", "").replace(".", "").replace("path", "")
            assert plain.isalnum(), path
    allowed = {"script1", "data1", "results1.0", "results1.1", "results1.out", "results1.err",
               "out"}
    assert {path.name for path in work.iterdir()} <= allowed


@pytest.mark.parametrize("name", ["", "x" * 256, "x" * 5000, "y/" * 3000],
                         ids=["empty", "long-part", "long", "many-parts"])
def test_names_that_cannot_be(site, name):
    job = site.run(Script().open("wc").close(), 2, 2, HINTS, path=name)
    assert job.code == 0, f"{job}"
    errors = set(job.errors_of("open"))
    assert errors == {"BAD_FILE"}, f"{job}"
    assert not list(site.root.glob("x*")) and not list(site.root.glob("y*"))


def test_two_spellings_of_a_name_are_one_file(site):
    model = Model(noise(1, 300_000))
    site.write(parts(bytes(model.content), 2), 2, 2, HINTS)
    script = Script().open("r").add("read", 0, site.root / "out", 0).close()
    other = f"{site.root}/./nowhere/..//{site.path.name}"
    job = site.run(script, 2, 2, HINTS, path=other)
    if job.failures():
        assert set(job.errors_of("open")) == {"NO_SUCH_FILE"}
    else:
        assert (site.root / "out").read_bytes() == model.content


@pytest.mark.parametrize("node", ["../../evil", "a/b", "..", "%n", "n\n1"])
def test_a_nodes_name_is_one_path_component(site, node):
    """A host's name comes from outside, too."""
    model = Model(noise(1, 300_000))
    script = Script().open("wc").write("all-at", {0: [(0, bytes(model.content))]}).close()
    job = site.run(script, [(node, 1)], 1, HINTS)
    job.check()
    (store,) = site.stores.iterdir()
    assert (store / "STORE").exists()
    assert not (site.root / "evil").exists() and not (site.root.parent / "evil").exists()
