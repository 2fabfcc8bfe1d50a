#include "adio/flatten.h"

#include "adio/romio_glue.h"
#include "mpir_ext.h"

/* ---- Lists ------------------------------------------------------------------------------------
 */

/* As ROMIO's own: there is nobody to return an error to. */
static void* checked(void* memory) {
  if (memory == NULL) {
    fprintf(stderr, "dedup: no memory for the list of a datatype's pieces\n");
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

struct list {
  MPI_Count count, room;
  ADIO_Offset *offsets, *lengths;
};

static void append(struct list* list, ADIO_Offset offset, ADIO_Offset length) {
  const MPI_Count last = list->count - 1;
  if (length == 0) return;
  if (last >= 0 && list->offsets[last] + list->lengths[last] == offset) {
    list->lengths[last] += length;
    return;
  }
  if (list->count == list->room) {
    list->room = list->room > 0 ? 2 * list->room : 4;
    list->offsets = checked(realloc(list->offsets, (size_t)list->room * sizeof *list->offsets));
    list->lengths = checked(realloc(list->lengths, (size_t)list->room * sizeof *list->lengths));
  }
  list->offsets[list->count] = offset;
  list->lengths[list->count] = length;
  list->count++;
}

/* `count` copies of `item`, the first at `offset`, each `stride` behind the one before it. */
static void append_copies(struct list* list, const struct list* item, MPI_Count count,
                          ADIO_Offset offset, ADIO_Offset stride) {
  if (item->count == 1 && item->lengths[0] == stride) {
    append(list, offset + item->offsets[0], count * stride);
    return;
  }
  for (MPI_Count i = 0; i < count; ++i) {
    for (MPI_Count j = 0; j < item->count; ++j) {
      append(list, offset + i * stride + item->offsets[j], item->lengths[j]);
    }
  }
}

static void free_list(struct list* list) {
  free(list->offsets);
  free(list->lengths);
}

/* ---- How a datatype was made ------------------------------------------------------------------
 */

struct contents {
  MPI_Count integers, addresses, counts, types;
  int combiner;
  int* integer;
  MPI_Aint* address;
  MPI_Count* large; /* a type made by a large-count (_c) function has its numbers here */
  MPI_Datatype* type;
};

static void get_contents(MPI_Datatype datatype, struct contents* c) {
  *c = (struct contents){.combiner = MPI_COMBINER_NAMED};
  PMPI_Type_get_envelope_c(datatype, &c->integers, &c->addresses, &c->counts, &c->types,
                           &c->combiner);
  if (c->combiner == MPI_COMBINER_NAMED) return;
  c->integer = checked(calloc((size_t)c->integers + 1, sizeof *c->integer));
  c->address = checked(calloc((size_t)c->addresses + 1, sizeof *c->address));
  c->large = checked(calloc((size_t)c->counts + 1, sizeof *c->large));
  c->type = checked(calloc((size_t)c->types + 1, sizeof *c->type));
  PMPI_Type_get_contents_c(datatype, c->integers, c->addresses, c->counts, c->types, c->integer,
                           c->address, c->large, c->type);
}

static void free_contents(struct contents* c) {
  if (c->combiner == MPI_COMBINER_NAMED) return;
  for (MPI_Count i = 0; i < c->types; ++i) {
    MPI_Count integers, addresses, counts, types;
    int combiner;
    PMPI_Type_get_envelope_c(c->type[i], &integers, &addresses, &counts, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&c->type[i]);
  }
  free(c->integer);
  free(c->address);
  free(c->large);
  free(c->type);
}

/* The i-th of the numbers that large-count functions take as MPI_Count and others as int. */
static MPI_Count number(const struct contents* c, MPI_Count i) {
  return c->counts > 0 ? c->large[i] : c->integer[i];
}

/* The i-th displacement in bytes; those follow `before` other numbers in the large-count form. */
static MPI_Count displacement(const struct contents* c, MPI_Count before, MPI_Count i) {
  return c->counts > 0 ? c->large[before + i] : c->address[i];
}

/* ---- Flattening -------------------------------------------------------------------------------
 */

static void flatten(MPI_Datatype datatype, struct list* list);

static MPI_Count extent_of(MPI_Datatype datatype) {
  MPI_Count lb, extent;
  PMPI_Type_get_extent_x(datatype, &lb, &extent);
  return extent;
}

/* MPI_SHORT_INT and its like have a hole between the number and the int behind it, or after both.
 */
static void flatten_named(MPI_Datatype datatype, struct list* list) {
  MPI_Count size, lb, extent;
  PMPI_Type_size_x(datatype, &size);
  PMPI_Type_get_true_extent_x(datatype, &lb, &extent);
  if (size == extent) {
    append(list, 0, size);
  } else {
    const ADIO_Offset second = (ADIO_Offset)sizeof(int);
    append(list, 0, size - second);
    append(list, extent - second, second);
  }
}

static void flatten_blocks(const struct contents* c, struct list* list) {
  const MPI_Count count = number(c, 0);
  const MPI_Count extent = extent_of(c->type[0]);
  struct list item = {0};
  flatten(c->type[0], &item);
  for (MPI_Count i = 0; i < count; ++i) {
    MPI_Count length = 1, offset = 0;
    switch (c->combiner) {
      case MPI_COMBINER_VECTOR:
        length = number(c, 1);
        offset = i * number(c, 2) * extent;
        break;
      case MPI_COMBINER_HVECTOR:
        length = number(c, 1);
        offset = i * displacement(c, 2, 0);
        break;
      case MPI_COMBINER_INDEXED:
        length = number(c, 1 + i);
        offset = number(c, 1 + count + i) * extent;
        break;
      case MPI_COMBINER_HINDEXED:
        length = number(c, 1 + i);
        offset = displacement(c, 1 + count, i);
        break;
      case MPI_COMBINER_INDEXED_BLOCK:
        length = number(c, 1);
        offset = number(c, 2 + i) * extent;
        break;
      case MPI_COMBINER_HINDEXED_BLOCK:
        length = number(c, 1);
        offset = displacement(c, 2, i);
        break;
    }
    append_copies(list, &item, length, offset, extent);
  }
  free_list(&item);
}

static void flatten_struct(const struct contents* c, struct list* list) {
  const MPI_Count count = number(c, 0);
  for (MPI_Count i = 0; i < count; ++i) {
    struct list item = {0};
    if (number(c, 1 + i) == 0) continue;
    flatten(c->type[i], &item);
    append_copies(list, &item, number(c, 1 + i), displacement(c, 1 + count, i),
                  extent_of(c->type[i]));
    free_list(&item);
  }
}

/* Row by row, then plane by plane, from the dimension that varies fastest. */
static void flatten_subarray(const struct contents* c, struct list* list) {
  const int dimensions = c->integer[0];
  const int large = c->counts > 0;
  const int order = c->integer[large ? 1 : 3 * dimensions + 1];
  ADIO_Offset stride = extent_of(c->type[0]);
  struct list inner = {0};
  flatten(c->type[0], &inner);
  for (int i = 0; i < dimensions; ++i) {
    const int d = order == MPI_ORDER_C ? dimensions - 1 - i : i;
    const MPI_Count size = number(c, !large + d);
    const MPI_Count part = number(c, !large + dimensions + d);
    const MPI_Count start = number(c, !large + 2 * dimensions + d);
    struct list outer = {0};
    append_copies(&outer, &inner, part, start * stride, stride);
    free_list(&inner);
    inner = outer;
    stride *= size;
  }
  append_copies(list, &inner, 1, 0, 0);
  free_list(&inner);
}

/* ROMIO expresses a distributed array by simpler types. */
static void flatten_darray(const struct contents* c, struct list* list) {
  MPI_Datatype simpler;
  const int dimensions = c->integer[2];
  int* sizes = checked(malloc(((size_t)dimensions + 1) * sizeof *sizes));
  int* rest = c->integer + 3; /* behind the sizes, in the form with ints */
  for (int d = 0; d < dimensions; ++d) {
    sizes[d] = (int)(c->counts > 0 ? c->large[d] : c->integer[3 + d]);
  }
  if (c->counts == 0) rest += dimensions;
  ADIO_Type_create_darray(c->integer[0], c->integer[1], dimensions, sizes, rest, rest + dimensions,
                          rest + 2 * dimensions, rest[3 * dimensions], c->type[0], &simpler);
  flatten(simpler, list);
  PMPI_Type_free(&simpler);
  free(sizes);
}

/* Appends the pieces of one item at 0. */
static void flatten(MPI_Datatype datatype, struct list* list) {
  struct contents c;
  struct list item = {0};
  get_contents(datatype, &c);
  switch (c.combiner) {
    case MPI_COMBINER_NAMED:
      flatten_named(datatype, list);
      break;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      flatten(c.type[0], list);
      break;
    case MPI_COMBINER_CONTIGUOUS:
      flatten(c.type[0], &item);
      append_copies(list, &item, number(&c, 0), 0, extent_of(c.type[0]));
      break;
    case MPI_COMBINER_STRUCT:
      flatten_struct(&c, list);
      break;
    case MPI_COMBINER_SUBARRAY:
      flatten_subarray(&c, list);
      break;
    case MPI_COMBINER_DARRAY:
      flatten_darray(&c, list);
      break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      flatten_blocks(&c, list);
      break;
    default: /* a Fortran 90 parametrised type: a number */
      flatten_named(datatype, list);
  }
  free_list(&item);
  free_contents(&c);
}

/* ---- Keeping lists ----------------------------------------------------------------------------
 */

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

static int flags_of(const struct list* list) {
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
  struct list list = {0};
  flatten(datatype, &list);
  node = checked(calloc(1, sizeof *node));
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
