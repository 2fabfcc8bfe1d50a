/* What ROMIO asks of the MPICH it is built into, supplied by this driver instead (romio_glue.c,
 * romio_threads.c). ROMIO includes this file by its name because build-romio defines
 * ROMIO_INSIDE_MPICH; only what ROMIO then uses is here.
 */
#ifndef DEDUP_ADIO_ROMIO_MPIR_EXT_H
#define DEDUP_ADIO_ROMIO_MPIR_EXT_H

#include <assert.h>
#include <mpi.h>

#define MPIR_Ext_assert(condition) assert(condition)

int MPIR_Ext_init(void);
void MPIR_Ext_cs_enter(void);
void MPIR_Ext_cs_exit(void);
int MPIR_Ext_datatype_iscommitted(MPI_Datatype datatype);
int MPIR_Get_node_id(MPI_Comm comm, int rank, int* id);
void MPIR_Datatype_iscontig(MPI_Datatype datatype, int* flag);
int MPIR_Ext_datatype_iscontig(MPI_Datatype datatype, int* flag);
void* MPIR_Ext_gpu_host_alloc(const void* buffer, MPI_Aint count, MPI_Datatype datatype);
void MPIR_Ext_gpu_host_free(void* host, MPI_Aint count, MPI_Datatype datatype);
void* MPIR_Ext_gpu_host_swap(const void* buffer, MPI_Aint count, MPI_Datatype datatype);
void MPIR_Ext_gpu_swap_back(void* host, void* buffer, MPI_Aint count, MPI_Datatype datatype);

#endif
