#include "adio/flatten.h"

#include "adio/romio_glue.h"
#include "engine/dedup.h"
#include "mpir_ext.h"

static int keyval = MPI_KEYVAL_INVALID;

static int free_node(MPI_Datatype datatype, int key, void* value, void* extra) {
  ADIOI_Flatlist_node* node = value;
  (void)datatype;
  (void)key;
  (void)extra;
  free(node->indices);
  free(node->blocklens);
  free(node);
  return MPI_SUCCESS;
}

void dedup_flatten_end(void) {
  if (keyval != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&keyval);
}

static int flags_of(const dedup_pieces* list) {
  int flags = 0;
  for (MPI_Count i = 0; i < list->count; ++i) {
    if (list->offsets[i] < 0) flags |= ADIOI_TYPE_NEGATIVE;
    if (i == 0) continue;
    if (list->offsets[i] < list->offsets[i - 1]) flags |= ADIOI_TYPE_DECREASE;
    if (list->offsets[i] < list->offsets[i - 1] + list->lengths[i - 1]) flags |= ADIOI_TYPE_OVERLAP;
  }
  return flags;
}

ADIOI_Flatlist_node* dedup_flatten(MPI_Datatype datatype) {
  ADIOI_Flatlist_node* node;
  int found = 0;
  if (keyval == MPI_KEYVAL_INVALID) {
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, free_node, &keyval, NULL);
  }
  PMPI_Type_get_attr(datatype, keyval, &node, &found);
  if (found) return node;
  dedup_pieces list;
  node = calloc(1, sizeof *node);
  if (node == NULL || !dedup_get_pieces(datatype, &list)) {
    /* As ROMIO does: there is nobody to return an error to. */
    fprintf(stderr, "dedup: no memory for the list of a datatype's pieces\n");
    PMPI_Abort(MPI_COMM_WORLD, 1);
    return node;
  }
  node->type = datatype;
  node->count = list.count;
  node->indices = list.offsets;
  node->blocklens = list.lengths;
  node->lb_idx = node->ub_idx = -1;
  node->refct = 1;
  node->flag = flags_of(&list);
  PMPI_Type_set_attr(datatype, keyval, node);
  return node;
}

/* What MPICH answers from its inside: is the data, in its order, one piece without holes that
 * starts at 0, and the extent its length? */
void MPIR_Datatype_iscontig(MPI_Datatype datatype, int* flag) {
  MPI_Count size = 0, lb = 1, extent = 0, true_lb = 0, true_extent = 0;
  PMPI_Type_size_x(datatype, &size);
  PMPI_Type_get_extent_x(datatype, &lb, &extent);
  PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent);
  *flag = lb == 0 && size == extent;
  if (size == 0 || !*flag) return;
  *flag = true_lb == 0 && size == true_extent && dedup_flatten(datatype)->count == 1;
}

/* Its name from 4.3 on. */
int MPIR_Ext_datatype_iscontig(MPI_Datatype datatype, int* flag) {
  MPIR_Datatype_iscontig(datatype, flag);
  return MPI_SUCCESS;
}
