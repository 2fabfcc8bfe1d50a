"""Hosts on one machine: each with its own network, host name, processes, IPC and a small private
file system, on a bridge that nobody else sees.

Nothing of it has a name outside, and nothing is left to be taken down: namespaces live as long as
processes in them. The first process of the cluster (`switch`) ends when its standard input does,
that is with whoever started it, however that ended; the kernel then ends all processes below it, and
with them their networks and file systems. A host is ended in the same way, by its first process.
"""

import os
import pathlib
import select
import shutil
import signal
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FRONT_END = "10.77.0.254"  # the bridge's address, in `switch` too
PATIENCE = 60  # seconds for what takes less than one


class Unavailable(Exception):
    """Why there can be no cluster here."""


def why_not():
    """What keeps a cluster from running on this machine; None if nothing is known to."""
    if os.geteuid() != 0:
        return "namespaces for hosts take root"
    for tool in ("ip", "tc", "nsenter", "unshare", "hostname"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    return None


def _children(pid):
    try:
        return [int(child) for task in os.listdir(f"/proc/{pid}/task") for child in
                pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except OSError:
        return []


def _namespace_pids(pid):
    """A process's ids, from the one we know it by to that in its innermost namespace."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return [int(word) for word in line.split()[1:]]
    raise Unavailable("this kernel does not tell process ids of namespaces")


class First:
    """The first process of a new PID namespace, started by `words`, which ends in `unshare`'s."""

    def __init__(self, words):
        self.started = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        line = ""
        if select.select([self.started.stdout], [], [], PATIENCE)[0]:
            line = self.started.stdout.readline()
        if line != "ready\n":
            self.started.kill()
            raise Unavailable(f"{' '.join(map(str, words))}: {self.started.communicate()[1].strip()}")
        self.pid = self._find()
        self.handle = os.pidfd_open(self.pid)
        # Checked once there is a handle: the number cannot have become another process's then.
        self.inner_pids = _namespace_pids(self.pid)
        assert self.inner_pids[-1] == 1, self.inner_pids

    def _find(self):
        """It is the last of a line of only children: nsenter, unshare, and it."""
        pid = self.started.pid
        while _namespace_pids(pid)[-1] != 1 or pid == self.started.pid:
            (pid,) = _children(pid)
        return pid

    def is_alive(self):
        return not select.select([self.handle], [], [], 0)[0]

    def wait(self):
        """Until it and all processes of its namespace have ended."""
        if not select.select([self.handle], [], [], PATIENCE)[0]:
            raise AssertionError(f"process {self.pid} does not end")
        self.started.communicate(timeout=PATIENCE)

    def end(self):
        try:
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.wait()

    def close(self):
        self.end()
        os.close(self.handle)


class Host:
    def __init__(self, number, name):
        self.name = name
        self.address = f"10.77.0.{number + 1}"
        self.hardware = f"02:00:0a:4d:00:{number + 1:02x}"
        self.link = f"link{number}"  # its end at the bridge; the other one is eth0
        self.first = None


class Cluster:
    """directory: an empty one, which all hosts share; `own` in it is each host's own."""

    def __init__(self, directory, names, size="256m"):
        self.directory = pathlib.Path(directory)
        self.size = size
        self.own = self.directory / "own"
        self.own.mkdir()
        self.hosts = {name: Host(number, name) for number, name in enumerate(names)}
        known_hosts = self.directory / "known-hosts"
        known_hosts.write_text("127.0.0.1 localhost\n" + f"{FRONT_END} front-end\n" + "".join(
            f"{host.address} {host.name}\n" for host in self.hosts.values()))
        self.first = None
        try:
            self.first = First(["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork",
                                "--kill-child", "--mount-proc", HERE / "switch", known_hosts])
            for name in names:
                self.start(name)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends everything. What is left of it is in the directory."""
        if self.first is None:
            return
        self.first.close()
        for host in self.hosts.values():
            if host.first is not None:
                host.first.close()
        self.first = None

    # ---- Hosts ----------------------------------------------------------------------------------

    def start(self, name):
        """A new host, with nothing in its store, in place of one that was killed."""
        host = self.hosts[name]
        assert host.first is None
        host.first = First(self.command(
            ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
             "--mount-proc", HERE / "host", name, self.own, self.size]))
        try:
            self._plug_in(host)
        except BaseException:
            host.first.close()
            host.first = None
            raise
        self._write_hosts()

    def _plug_in(self, host):
        pid = host.first.inner_pids[-2]
        # Always the same hardware address: others remember it longer than a host is away.
        self.ip(f"link add {host.link} type veth peer name eth0 address {host.hardware} netns {pid}")
        self.ip(f"link set {host.link} master bridge up")
        self.run(["nsenter", "--target", pid, "--net", "sh", "-c",
                  f"ip address add {host.address}/24 dev eth0 && ip link set eth0 up"])

    def _write_hosts(self):
        lines = [f"{host.name} {host.first.inner_pids[-2]}\n" for host in self.hosts.values()
                 if host.first is not None]
        # In one go: a job that is running looks into it when it pleases.
        anew = self.directory / "hosts.new"
        anew.write_text("".join(lines))
        anew.replace(self.directory / "hosts")

    def names(self):
        """Of the hosts that are there."""
        return [host.name for host in self.hosts.values() if host.first is not None]

    def kill(self, name):
        """Ends all processes of a host, whose connections are reset, its link and its store."""
        self.hosts[name].first.end()
        self.bury(name)

    def bury(self, name):
        """The same for a host that ends by itself; waits until it does."""
        host = self.hosts[name]
        host.first.wait()
        os.close(host.first.handle)
        host.first = None
        # The kernel deletes it some time after the last process; it may be doing so now.
        self.run(["sh", "-c", f"ip link delete {host.link} || ! ip link show {host.link}"])
        self._write_hosts()

    def cut(self, name):
        """Unplugs a host: nothing reaches it any more, and nobody is told."""
        self.ip(f"link set {self.hosts[name].link} nomaster")

    def plug(self, name):
        self.ip(f"link set {self.hosts[name].link} master bridge")

    def slow(self, name, rate):
        """Limits what a host sends and receives to `rate` (tc's notation). Raises Unavailable if
        this kernel cannot."""
        host = self.hosts[name]
        words = ["root", "tbf", "rate", rate, "burst", "64kbit", "latency", "200ms"]
        inside = ["nsenter", "--target", host.first.inner_pids[-2], "--net"]
        try:
            self.run(["tc", "qdisc", "replace", "dev", host.link, *words])
            self.run([*inside, "tc", "qdisc", "replace", "dev", "eth0", *words])
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"tc: {error.stderr.strip()}") from None

    def introduce(self):
        """Tells all hosts each other's hardware addresses. Without, clusters of more than about 30 do
        not work: the kernel learns 1024 neighbours in all namespaces together, and forgets some."""
        hosts = [host for host in self.hosts.values() if host.first is not None]
        for host in hosts:
            lines = "".join(f"neighbour replace {other.address} lladdr {other.hardware} dev eth0 "
                            "nud permanent\n" for other in hosts if other is not host)
            batch = self.directory / "neighbours"
            batch.write_text(lines)
            self.run(["nsenter", "--target", host.first.inner_pids[-2], "--net", "ip", "-batch",
                      batch])

    def fill(self, name, free):
        """Leaves so many bytes free in a host's own file system, if there are that many."""
        path = self._filling(name)
        with open(path, "ab") as file:
            room = os.statvfs(path)
            more = room.f_bavail * room.f_frsize - free
            if more > 0:
                os.posix_fallocate(file.fileno(), file.tell(), more)

    def empty(self, name):
        """Takes back what fill() took."""
        self._filling(name).unlink(missing_ok=True)

    def _filling(self, name):
        return self.root(name) / self.own.relative_to("/") / "filling"

    def processes(self, name):
        """Process ids and command lines of what runs on a host, without its first process."""
        first = self.hosts[name].first.pid
        namespace = os.readlink(f"/proc/{first}/ns/pid")
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(entry.name) != first and os.readlink(entry / "ns" / "pid") == namespace:
                    words = (entry / "cmdline").read_text().split("\0")
                    found[int(entry.name)] = " ".join(words).strip()
            except OSError:
                continue  # ended meanwhile
        # Without a command line: ended, and not waited for yet.
        return {pid: command for pid, command in found.items() if command}

    def root(self, name):
        """The root directory as a host sees it."""
        return pathlib.Path(f"/proc/{self.hosts[name].first.pid}/root")

    # ---- Commands at the front end, whose network has no host on it ------------------------------

    def command(self, words):
        """The words that run a command there, in this process's directory and environment."""
        return [str(word) for word in
                ["nsenter", "--target", self.first.pid, "--net", "--mount", "--uts", "--ipc", "--pid",
                 "--", "env", "-C", os.getcwd(), *words]]

    def run(self, words):
        return subprocess.run(self.command(words), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=True, timeout=PATIENCE).stdout

    def ip(self, arguments):
        return self.run(["ip", *arguments.split()])

    def mpiexec_words(self, hosts, ranks):
        """Options of hydra's mpiexec: the ranks in equal blocks on these hosts."""
        counts = [ranks * (n + 1) // len(hosts) - ranks * n // len(hosts) for n in range(len(hosts))]
        places = ",".join(f"{host}:{count}" for host, count in zip(hosts, counts) if count > 0)
        return ["-launcher", "ssh", "-launcher-exec", str(HERE / "launcher"), "-hosts", places,
                "-localhost", FRONT_END, "-n", str(ranks)]

    def on(self, name, text):
        """Has a host's shell run a command; its output."""
        return self.run(["env", *(f"{key}={value}" for key, value in self.environment().items()),
                         HERE / "launcher", name, text])

    def environment(self):
        """What the launcher reads."""
        return {"CLUSTER_HOSTS": str(self.directory / "hosts")}
