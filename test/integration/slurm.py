"""A Slurm of this test's own: its controller, and nodes of which each is a slurmd on this host."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from stores import descendants

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool.%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdParameters=config_overrides
{more}
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State=UNKNOWN\n"
PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sinfo", "sbatch", "squeue", "scontrol"]


def why_not():
    """Why there can be no Slurm here; None if there can."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return None if os.geteuid() == 0 else "slurmd starts tasks as root only"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """Ends with close(). cpus: of each node, which no one checks. more: lines of slurm.conf."""

    def __init__(self, root, nodes, cpus, more=""):
        self.root = pathlib.Path(root)
        self.started = []
        self.slurmds = {}
        host = socket.gethostname().split(".")[0]
        ports = free_ports(1 + len(nodes))
        text = CONFIGURATION.format(host=host, port=ports[0], user="root", root=self.root,
                                    more=more)
        for name, port in zip(nodes, ports[1:]):
            text += NODE.format(name=name, host=host, port=port, cpus=cpus)
            (self.root / f"spool.{name}").mkdir()
        text += f"PartitionName=all Nodes={','.join(nodes)} Default=YES State=UP\n"
        (self.root / "state").mkdir()
        (self.root / "slurm.conf").write_text(text)
        key = self.root / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.environment = dict(os.environ, SLURM_CONF=str(self.root / "slurm.conf"),
                                PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        try:
            self._start("munged", "--foreground", "--force", "--key-file", key, "--socket",
                        self.root / "munge.socket", "--pid-file", self.root / "munged.pid",
                        "--log-file", self.root / "munged.log", "--seed-file",
                        self.root / "munged.seed")
            self._until(lambda: (self.root / "munge.socket").exists())
            self._start("slurmctld", "-D")
            for name in nodes:
                self.slurmds[name] = self._start("slurmd", "-D", "-N", name)
            self._until(lambda: self._idle() == len(nodes))
        except BaseException:
            self.close()
            raise

    def _start(self, *command):
        words = [str(word) for word in command]
        with open(self.root / "out.log", "ab") as log:
            self.started.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=log,
                                                 stdin=subprocess.DEVNULL, cwd=self.root))
        return self.started[-1]

    def run(self, *command, **keywords):
        """One of Slurm's commands; its output."""
        return subprocess.run([str(word) for word in command], env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **keywords).stdout

    def kill(self, node):
        """Kills all that runs on a node. Slurm knows it at once, in place of after SlurmdTimeout."""
        doomed = self._processes(node)
        self.slurmds[node].kill()
        self.slurmds[node].wait()
        self.started.remove(self.slurmds.pop(node))
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _processes(self, node):
        """The slurmstepds of a node, and all that they have started."""
        marks = {f"SLURM_CONF={self.root}/slurm.conf", f"SLURMD_NODENAME={node}"}
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                # Ranks have the environment of mpiexec, which may be on another node.
                if marks <= set((entry / "environ").read_text(errors="replace").split("\0")):
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if pathlib.Path(f"/proc/{parent}/comm").read_text() == "slurmstepd\n":
                        found += descendants(parent)
            except OSError:
                continue  # ended meanwhile
        return found

    def _idle(self):
        found = subprocess.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], env=self.environment,
                               capture_output=True, text=True, check=False)
        return len(found.stdout.split())

    def _until(self, there):
        """Daemons come up when they do; one that ended never will."""
        for _ in range(1200):
            if there():
                return
            for process in self.started:
                if process.poll() is not None:
                    logs = "\n".join(path.read_text(errors="replace")[-2000:]
                                     for path in sorted(self.root.glob("*.log")))
                    raise AssertionError(f"{process.args[0]} ended: {process.returncode}\n{logs}")
            time.sleep(0.1)
        raise AssertionError(f"Slurm does not come up, see {self.root}")

    def close(self):
        for process in reversed(self.started):
            process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.started = []
