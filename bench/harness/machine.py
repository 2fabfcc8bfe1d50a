"""What a run was done on, and with."""

import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _output(*command):
    """The command's standard output, or "" where it cannot be had."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, check=False)
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def _field(path, name):
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _medium(directory):
    """File system, device and whether that turns, of what a directory is on."""
    source, kind, options = (_output("findmnt", "-n", "-o", "SOURCE,FSTYPE,OPTIONS", "-T",
                                     str(directory)).split(None, 2) + ["", "", ""])[:3]
    out = {"directory": str(directory), "filesystem": kind, "device": source, "options": options}
    device = _output("lsblk", "-n", "-d", "-o", "ROTA,MODEL,SIZE", source) if source else ""
    if device:
        out["block_device"] = " ".join(device.split())
    return out


def machine(media):
    """media: {name: directory}."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(_field("/proc/meminfo", "MemTotal").split()[0]) * 1024,
        "kernel": platform.release(),
        "media": {name: _medium(directory) for name, directory in media.items()},
    }


def _package(name):
    return _output("dpkg-query", "-W", "-f", "${Version}", name)


def versions():
    commit = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    mpich = re.search(r"^\s*Version:\s*(\S+)", _output("mpiexec.mpich", "--version"), re.M)
    compiler = _output("g++", "--version").splitlines()
    return {
        "commit": commit + (" and changes" if changed else ""),
        "mpich": mpich.group(1) if mpich else "",
        "compiler": compiler[0] if compiler else "",
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "openssl": _output("openssl", "version"),
        **{name: _package(name) for name in ("libmpich12", "libxxhash0", "libzstd1", "libipsec-mb1")},
        "python": platform.python_version(),
    }
