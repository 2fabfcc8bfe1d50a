/* What tools ask of the engine beside MPI-IO: the only functions of this library that are not
 * MPI's.
 *
 * Plain C, exported by libromio-dedup.so. Nothing throws. MPI must be initialised.
 */
#ifndef DEDUP_ENGINE_ADMIN_H
#define DEDUP_ENGINE_ADMIN_H

#include <mpi.h>
#include <stdint.h>

#include "engine/dedup.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint64_t generation;    /* that was committed */
  uint64_t checked;       /* chunks that were read, each copy counted; 0 unless asked for */
  uint64_t bad;           /* of them */
  uint64_t copies_made;   /* that were lacking or bad */
  uint64_t lost_chunks;   /* of which there is no good copy: reading them is an error */
  uint64_t unknown_bytes; /* whose recipe is lost: likewise */
  uint64_t lowest_copies; /* of any chunk, by the new recipe; 0 if the file has none */
} dedup_admin_healed;

#pragma GCC visibility push(default)

enum {
  DEDUP_ADMIN_VERIFY = 1, /* first compare all chunks of all stores with their fingerprints */
  DEDUP_ADMIN_ACCEPT_LOSS =
      2 /* go on if a chunk has no good copy on these nodes, else MPI_ERR_IO */
};

/* Collective over comm. Commits a new generation of the file at `path` (a name without its prefix)
 * with the same content, of which every chunk is on min(K, nodes of the job) nodes again. K is
 * `replication`, or if that is 0 what the file was committed with. `flags`: a sum of the above.
 * Hints come from the environment. Returns an MPI error class, the same on all ranks, and fills in
 * *healed and *error. After an error the file is as it was. */
int dedup_admin_heal(MPI_Comm comm, const char* path, unsigned replication, int flags,
                     dedup_admin_healed* healed, dedup_error* error);

/* Collective over comm. Brings the plain file at `path` (a name without its prefix) into the
 * stores, and leaves it where it is (dedup_fetch). As above. */
int dedup_admin_fetch(MPI_Comm comm, const char* path, dedup_error* error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
