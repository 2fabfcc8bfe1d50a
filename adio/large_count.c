/* The MPI_File functions with an MPI_Count, which ROMIO 4.0 has but stops at an assertion in if the
 * count does not fit an int. (build-romio makes ROMIO's definitions weak, so that these are taken.)
 *
 * A larger count becomes a count of one of a larger datatype, if the data is contiguous in memory.
 * Otherwise the result is MPI_ERR_COUNT: ROMIO would have to flatten the datatype that many times.
 */
#include <limits.h>

#include "adio.h"
#include "mpir_ext.h"

enum { kBlock = 1 << 30 };

/* `count` items of a contiguous type, of which one is `size` bytes, as one committed datatype. */
static int large_type(MPI_Count count, MPI_Datatype item, MPI_Count size, MPI_Datatype* large) {
  MPI_Datatype block;
  const int lengths[2] = {(int)(count / kBlock), (int)(count % kBlock)};
  const MPI_Aint offsets[2] = {0, (MPI_Aint)(count / kBlock * kBlock * size)};
  int result = PMPI_Type_contiguous(kBlock, item, &block);
  if (result != MPI_SUCCESS) return result;
  const MPI_Datatype types[2] = {block, item};
  result = PMPI_Type_create_struct(2, lengths, offsets, types, large);
  PMPI_Type_free(&block);
  return result == MPI_SUCCESS ? PMPI_Type_commit(large) : result;
}

/* What the function without _c takes in place of (count, datatype). */
struct substitute {
  int count;
  MPI_Datatype type;
  int made; /* type is to be freed */
};

static int substitute(MPI_File file, MPI_Count count, MPI_Datatype type, struct substitute* s) {
  *s = (struct substitute){.count = (int)count, .type = type, .made = 0};
  if (count >= INT_MIN && count <= INT_MAX) return MPI_SUCCESS;
  if (type == MPI_DATATYPE_NULL || file == MPI_FILE_NULL) {
    s->count = 1; /* for that function to complain about */
    return MPI_SUCCESS;
  }
  MPI_Count size = 0;
  int contiguous = 0;
  if (count > 0 && PMPI_Type_size_x(type, &size) == MPI_SUCCESS) {
    ADIOI_Datatype_iscontig(type, &contiguous);
  }
  if (size == 0 && contiguous) {
    s->count = 0;
    return MPI_SUCCESS;
  }
  if (contiguous && count <= LLONG_MAX / size && count / kBlock <= INT_MAX &&
      large_type(count, type, size, &s->type) == MPI_SUCCESS) {
    s->count = 1;
    s->made = 1;
    return MPI_SUCCESS;
  }
  const int error_code = MPIO_Err_create_code(
      MPI_SUCCESS, MPIR_ERR_RECOVERABLE, "MPI_File (large count)", __LINE__, MPI_ERR_COUNT, "**io",
      "**io %s", "a count beyond 2^31 - 1 needs a datatype without holes");
  return MPIO_Err_return_file(file, error_code);
}

/* Both names of one function. `parameters` and `arguments` are those of the function without _c. */
#define LARGE_COUNT(name, parameters, arguments)      \
  int PMPI_File_##name##_c parameters {               \
    struct substitute s;                              \
    int result = substitute(fh, count, datatype, &s); \
    if (result != MPI_SUCCESS) return result;         \
    result = PMPI_File_##name arguments;              \
    if (s.made) PMPI_Type_free(&s.type);              \
    return result;                                    \
  }                                                   \
  int MPI_File_##name##_c parameters __attribute__((alias("PMPI_File_" #name "_c")));

#define READ_AT                                                                       \
  (MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, \
   MPI_Status* status)
#define WRITE_AT                                                                            \
  (MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, \
   MPI_Status* status)
#define READ (MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status)
#define WRITE \
  (MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status)
#define READ_AT_BEGIN \
  (MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype)
#define WRITE_AT_BEGIN \
  (MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype)
#define READ_BEGIN (MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype)
#define WRITE_BEGIN (MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype)
#define IREAD_AT                                                                      \
  (MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, \
   MPI_Request* request)
#define IWRITE_AT                                                                           \
  (MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, \
   MPI_Request* request)
#define IREAD (MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request)
#define IWRITE \
  (MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request)

LARGE_COUNT(read_at, READ_AT, (fh, offset, buf, s.count, s.type, status))
LARGE_COUNT(read_at_all, READ_AT, (fh, offset, buf, s.count, s.type, status))
LARGE_COUNT(read_at_all_begin, READ_AT_BEGIN, (fh, offset, buf, s.count, s.type))
LARGE_COUNT(read, READ, (fh, buf, s.count, s.type, status))
LARGE_COUNT(read_all, READ, (fh, buf, s.count, s.type, status))
LARGE_COUNT(read_all_begin, READ_BEGIN, (fh, buf, s.count, s.type))
LARGE_COUNT(read_shared, READ, (fh, buf, s.count, s.type, status))
LARGE_COUNT(read_ordered, READ, (fh, buf, s.count, s.type, status))
LARGE_COUNT(read_ordered_begin, READ_BEGIN, (fh, buf, s.count, s.type))
LARGE_COUNT(iread_at, IREAD_AT, (fh, offset, buf, s.count, s.type, request))
LARGE_COUNT(iread_at_all, IREAD_AT, (fh, offset, buf, s.count, s.type, request))
LARGE_COUNT(iread, IREAD, (fh, buf, s.count, s.type, request))
LARGE_COUNT(iread_all, IREAD, (fh, buf, s.count, s.type, request))
LARGE_COUNT(iread_shared, IREAD, (fh, buf, s.count, s.type, request))

LARGE_COUNT(write_at, WRITE_AT, (fh, offset, buf, s.count, s.type, status))
LARGE_COUNT(write_at_all, WRITE_AT, (fh, offset, buf, s.count, s.type, status))
LARGE_COUNT(write_at_all_begin, WRITE_AT_BEGIN, (fh, offset, buf, s.count, s.type))
LARGE_COUNT(write, WRITE, (fh, buf, s.count, s.type, status))
LARGE_COUNT(write_all, WRITE, (fh, buf, s.count, s.type, status))
LARGE_COUNT(write_all_begin, WRITE_BEGIN, (fh, buf, s.count, s.type))
LARGE_COUNT(write_shared, WRITE, (fh, buf, s.count, s.type, status))
LARGE_COUNT(write_ordered, WRITE, (fh, buf, s.count, s.type, status))
LARGE_COUNT(write_ordered_begin, WRITE_BEGIN, (fh, buf, s.count, s.type))
LARGE_COUNT(iwrite_at, IWRITE_AT, (fh, offset, buf, s.count, s.type, request))
LARGE_COUNT(iwrite_at_all, IWRITE_AT, (fh, offset, buf, s.count, s.type, request))
LARGE_COUNT(iwrite, IWRITE, (fh, buf, s.count, s.type, request))
LARGE_COUNT(iwrite_all, IWRITE, (fh, buf, s.count, s.type, request))
LARGE_COUNT(iwrite_shared, IWRITE, (fh, buf, s.count, s.type, request))
