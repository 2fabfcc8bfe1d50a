"""What programs without the driver make of a placeholder: an error when they open it, never data;
and of the file that is written back: what it was."""

import ctypes
import ctypes.util
import shutil

import pytest

from conftest import run

CDL = """netcdf sample {
dimensions: x = 3000 ;
variables: double v(x) ; v:units = "m" ;
data: v = %s ;
}""" % ", ".join(str(i / 8) for i in range(3000))
KINDS = ["classic", "64-bit offset", "cdf5", "netCDF-4"]

NC_WRITE = 1


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.fixture(params=KINDS)
def netcdf_file(request, bed):
    """A plain NetCDF file."""
    needs("ncgen")
    path = bed.directory / "sample.nc"
    source = bed.directory / "sample.cdl"
    source.write_text(CDL)
    run(["ncgen", "-k", request.param, "-o", path, source])
    return path


def is_placeholder(path):
    return path.stat().st_size == 4096 and b"\nThis is a placeholder. " in path.read_bytes()


def test_netcdf(bed, programs, netcdf_file):
    before = run(["ncdump", netcdf_file]).stdout
    assert "374.875" in before
    magic = netcdf_file.read_bytes()[:8]
    bed.run(1, programs / "retain", f"dedup:{netcdf_file}", replication=4)
    assert is_placeholder(netcdf_file) and netcdf_file.read_bytes()[:8] == magic

    refused = run(["ncdump", netcdf_file], ok=False)
    assert refused.returncode != 0 and refused.stdout == ""
    library = ctypes.CDLL(ctypes.util.find_library("netcdf"))
    for mode in (0, NC_WRITE):
        handle = ctypes.c_int(-1)
        assert library.nc_open(str(netcdf_file).encode(), mode, ctypes.byref(handle)) != 0
    assert is_placeholder(netcdf_file)

    bed.run(1, programs / "retain", f"dedup:{netcdf_file}", env={"DEDUP_FLUSH": "close"})
    assert run(["ncdump", netcdf_file]).stdout == before


def test_hdf5(bed, programs):
    needs("h5dump")
    path = bed.directory / "file.h5"
    bed.run(4, programs / "parallel", "create", bed.file, "collective", replication=4)
    assert is_placeholder(path)
    refused = run(["h5dump", path], ok=False)
    assert refused.returncode != 0 and "DATA" not in refused.stdout
    run(["mpiexec", "-n", 1, programs / "refused", path])
    assert is_placeholder(path)

    bed.run(1, programs / "retain", bed.file, env={"DEDUP_FLUSH": "close"})
    assert "DATA" in run(["h5dump", path]).stdout
    run(["mpiexec", "-n", 4, programs / "parallel", "check-created", path, "collective"])
