/* The dedup: driver for HDF5 (1.14 and newer), for programs that name it themselves. Others need no
 * header: HDF5_DRIVER=dedup in the environment is enough. doc/hdf5.md has examples.
 */
#ifndef DEDUP_HDF5_H
#define DEDUP_HDF5_H

#include <hdf5.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In place of H5Pset_fapl_mpio: the files that are created or opened with this list are in the
 * nodes' stores. `comm` and `info` as there; info may have hints (dedup_replication and others).
 * Collective over comm. Negative on failure, with the cause on HDF5's error stack. */
herr_t H5Pset_fapl_dedup(hid_t fapl_id, MPI_Comm comm, MPI_Info info);

/* The driver's number in HDF5, registered if it is not yet. */
hid_t H5FDdedup_init(void);
#define H5FD_DEDUP (H5FDdedup_init())

#ifdef __cplusplus
}
#endif

#endif
