#include "adio/ad_dedup.h"
#include "adio/flatten.h"

dedup_flat ad_dedup_contiguous(MPI_Offset bytes, MPI_Offset store[2]) {
  store[0] = 0;
  store[1] = bytes > 0 ? bytes : 1;
  return (dedup_flat){
      .count = 1, .offsets = &store[0], .lengths = &store[1], .extent = store[1], .size = store[1]};
}

void ad_dedup_forget_view(struct ad_dedup_view* view) {
  if (view->before != NULL) ADIOI_Free(view->before);
  *view = (struct ad_dedup_view){0};
}

const struct ad_dedup_view* ad_dedup_view(ADIO_File fd) {
  struct ad_dedup_view* view = &ad_dedup(fd)->view;
  if (view->built) return view;
  int contiguous;
  ADIOI_Datatype_iscontig(fd->filetype, &contiguous);
  if (!contiguous) {
    MPI_Count lb, extent;
    PMPI_Type_get_extent_x(fd->filetype, &lb, &extent);
    const ADIOI_Flatlist_node* flat = dedup_flatten(fd->filetype);
    view->filetype.count = flat->count;
    view->filetype.offsets = flat->indices;
    view->filetype.lengths = flat->blocklens;
    view->filetype.extent = extent;
    view->before = ADIOI_Malloc(((size_t)view->filetype.count + 1) * sizeof *view->before);
    MPI_Offset sum = 0;
    for (MPI_Count i = 0; i < view->filetype.count; ++i) {
      view->before[i] = sum;
      sum += view->filetype.lengths[i];
    }
    view->filetype.size = sum;
  }
  view->built = 1;
  return view;
}

MPI_Offset ad_dedup_file_byte(ADIO_File fd, MPI_Offset data) {
  const struct ad_dedup_view* view = ad_dedup_view(fd);
  if (view->before == NULL) return fd->disp + data;
  const dedup_flat* type = &view->filetype;
  if (type->size == 0) return fd->disp;
  const MPI_Offset in_repetition = data % type->size;
  /* The last piece with no more data before it than this. */
  MPI_Count low = 0, high = type->count;
  while (high - low > 1) {
    const MPI_Count middle = low + (high - low) / 2;
    if (view->before[middle] <= in_repetition) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return fd->disp + data / type->size * type->extent + type->offsets[low] + in_repetition -
         view->before[low];
}

MPI_Offset ad_dedup_data_byte(ADIO_File fd, MPI_Offset file_byte) {
  const struct ad_dedup_view* view = ad_dedup_view(fd);
  const MPI_Offset at = file_byte - fd->disp;
  if (view->before == NULL) return at;
  const dedup_flat* type = &view->filetype;
  if (type->size == 0) return 0;
  const MPI_Count last = type->count - 1;
  const MPI_Offset type_end = type->offsets[last] + type->lengths[last];
  /* The first repetition that ends at or behind the position, and in it the first piece that does:
   * the end of a piece is the same data byte as the start of the next. */
  MPI_Offset repetition = 0;
  if (at > type_end && type->extent > 0) {
    repetition = (at - type_end + type->extent - 1) / type->extent;
  }
  const MPI_Offset rest = at - repetition * type->extent;
  MPI_Count low = 0, high = last;
  while (low < high) {
    const MPI_Count middle = low + (high - low) / 2;
    if (type->offsets[middle] + type->lengths[middle] >= rest) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  MPI_Offset into = rest - type->offsets[low];
  if (into < 0) into = 0;
  return repetition * type->size + view->before[low] + into;
}
