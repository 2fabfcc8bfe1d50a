"""Running programs: they end, or are ended, and say what went wrong."""

import os
import signal
import subprocess

HANG_GUARD_SECONDS = 600


class Failed(Exception):
    """A program that a section needs ended badly; the text has its command and its words."""


def clean_environment(**more):
    """The environment without what would change how programs or the driver behave."""
    drop = ("DEDUP_", "ROMIO_", "HYDRA_", "MPIEXEC", "MPICH_", "SLURM_", "PBS_", "LD_PRELOAD")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return {**kept, **{k: str(v) for k, v in more.items()}}


def run(command, environment=None, timeout=HANG_GUARD_SECONDS, codes=(0,)):
    """The standard output of a command that ends well, with one of these codes; raises Failed otherwise."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, env=environment or clean_environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # mpiexec ends its processes when it is ended.
        os.killpg(process.pid, signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        raise Failed(f"ended after {timeout} s: {' '.join(words)}\n{out[-1000:]}\n{err[-4000:]}")
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=10)
        raise
    if process.returncode not in codes:
        raise Failed(f"exit code {process.returncode}: {' '.join(words)}\n{out[-1000:]}\n"
                     f"{err[:4000]}")
    return out
