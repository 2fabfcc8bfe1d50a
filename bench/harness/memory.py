"""Memory that a job need not wait for."""

import mmap

MADV_POPULATE_WRITE = 23  # Linux 5.14; not in Python's mmap yet


def warm(size):
    """Touches so many bytes and gives them back at once.

    A virtual machine may have given free memory back to its host, and gets it again page by page,
    ten times slower than a copy. What a job touches first would then be what is measured.
    """
    if size == 0:
        return
    with mmap.mmap(-1, size) as memory:
        memory.madvise(MADV_POPULATE_WRITE)


def free():
    """Bytes that can be had."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            name, value, *_ = line.split()
            if name == "MemAvailable:":
                return 1024 * int(value)
    raise RuntimeError("/proc/meminfo does not say what is available")
