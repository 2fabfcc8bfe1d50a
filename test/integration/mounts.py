"""What tests of mounts need to know of this host."""

import os
import pathlib
import shutil
import subprocess
import time

import pytest

HANG_GUARD_SECONDS = 120


def why_not():
    """Why nothing can be mounted here; None if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse that this user may open"
    if shutil.which("fusermount3") is None:
        return "fusermount3 is not installed"
    if os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        return "mounting is not allowed here, not even to root"
    return None


def is_mounted(directory):
    lines = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return any(line.split()[1] == str(directory) for line in lines)


def wait_until(condition):
    for _ in range(HANG_GUARD_SECONDS * 100):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("waited for too long")
