/* Datatypes as lists of pieces.
 *
 * ROMIO has such lists too (ADIOI_Flatten), but 4.0 gets datatypes wrong that have blocks of length
 * 0 of a type with holes, stops at MPI_SHORT_INT and its like, and knows none of the types that the
 * large-count functions make. So the driver's data never goes by them.
 */
#ifndef DEDUP_ADIO_FLATTEN_H
#define DEDUP_ADIO_FLATTEN_H

#include "adio.h"

/* The pieces in the order of the data, none of them empty, neighbours joined; flags as ROMIO sets
 * them. Kept as an attribute of the datatype, so valid until that is freed. Thread-safety: in
 * ROMIO's critical section. */
ADIOI_Flatlist_node* dedup_flatten(MPI_Datatype datatype);

#endif
