"""Runs dedupctl on the stores of a Site: on this host's alone, or in a job on simulated nodes."""

import json
import os
import subprocess

from form import TEST_BUILD
from stores import TIMEOUT

FINE, PROBLEMS, USAGE, NO_STORE, NO_FILE, IN_USE, FAILED = range(7)


class Answer:
    def __init__(self, process, text=True):
        self.code = process.returncode
        self.out = process.stdout.decode() if text else process.stdout
        self.err = process.stderr.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def file(self):
        (file,) = self.json["files"]
        return file

    def __repr__(self):
        return f"exit code {self.code}\n{self.out[:3000]}\n--- stderr\n{self.err[-3000:]}"


def dedupctl(site, *arguments, nodes=None, ranks=None, stores=None, text=True, hints=None):
    """nodes: names of simulated nodes, each with a rank (or `ranks` in all); None: without a job.
    stores: values of --store in place of the site's directory."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("DEDUP_")}
    if not site.shared:
        environment["DEDUP_TEST_PRIVATE_PATHS"] = "1"
    environment.update(site.variables)
    environment.update({f"DEDUP_{name.upper()}": str(value)
                        for name, value in (hints or {}).items()})
    command = [TEST_BUILD / "bin" / "dedupctl"]
    if nodes is not None:
        command = [TEST_BUILD / "bin" / "dedup-mpiexec", "--store", site.places(), "--nodes",
                   ",".join(nodes), "-n", ranks or len(nodes), *command]
    else:
        for store in [site.places()] if stores is None else stores:
            command += ["--store", store]
    process = subprocess.run([str(word) for word in [*command, *arguments]], env=environment,
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
                             check=False, cwd=site.root)
    return Answer(process, text)
