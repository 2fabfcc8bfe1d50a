/* Random datatypes and views, against a model of the file that MPI_Pack and MPI_Unpack make: nested
 * types, blocks of length 0, memory in any order, holes; all kinds of access; positions, statuses,
 * and short reads at the file's end (with one rank).
 *
 * usage: datatypes FILE-NAME ROUNDS SEED     exit: 0 if all is right
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kDataBytes = 60000,  /* of the view that are modelled */
  kRankBytes = 130000, /* of the file for each rank, if there are several */
  kShortFile = 3000,   /* the file's first size, if there is one rank */
  kBuffer = 200000,    /* memory that accesses use */
  kOperations = 14     /* a round */
};

static int rank, ranks, failures;
static uint64_t random_state;

static unsigned dice(unsigned sides) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(random_state >> 33) % sides;
}

static void expect(int ok, const char* what, long got, long want) {
  if (ok || failures++ > 20) return;
  fprintf(stderr, "datatypes: rank %d: %s: %ld, not %ld\n", rank, what, got, want);
}

/* ---- Random types -----------------------------------------------------------------------------
 */

static MPI_Datatype indexed_type(MPI_Datatype base, int in_order) {
  int lengths[5], offsets[5], at = (int)dice(3);
  const int n = 1 + (int)dice(5);
  MPI_Datatype type;
  for (int i = 0; i < n; ++i) {
    lengths[i] = (int)dice(4);
    offsets[i] = at;
    at += lengths[i] + (int)dice(3);
  }
  if (!in_order) {
    const int offset = offsets[0], length = lengths[0];
    offsets[0] = offsets[n - 1];
    lengths[0] = lengths[n - 1];
    offsets[n - 1] = offset;
    lengths[n - 1] = length;
  }
  MPI_Type_indexed(n, lengths, offsets, base, &type);
  return type;
}

static MPI_Datatype subarray_type(MPI_Datatype base) {
  int sizes[2], parts[2], starts[2];
  MPI_Datatype type;
  for (int i = 0; i < 2; ++i) {
    sizes[i] = 2 + (int)dice(4);
    parts[i] = 1 + (int)dice((unsigned)sizes[i]);
    starts[i] = (int)dice((unsigned)(sizes[i] - parts[i] + 1));
  }
  MPI_Type_create_subarray(2, sizes, parts, starts, dice(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, base,
                           &type);
  return type;
}

static MPI_Datatype struct_type(MPI_Datatype base, MPI_Aint extent) {
  int lengths[3];
  MPI_Aint offsets[3], at = (MPI_Aint)dice(2) * extent;
  MPI_Datatype bases[3] = {base, base, base}, type;
  for (int i = 0; i < 3; ++i) {
    lengths[i] = 1 + (int)dice(2);
    offsets[i] = at;
    at += lengths[i] * extent + (MPI_Aint)dice(2) * extent;
  }
  MPI_Type_create_struct(3, lengths, offsets, bases, &type);
  return type;
}

static MPI_Datatype one_type(MPI_Datatype base, int in_order) {
  MPI_Datatype type, inner;
  MPI_Aint lb, extent;
  const int n = 1 + (int)dice(5);
  MPI_Type_get_extent(base, &lb, &extent);
  switch (dice(6)) {
    case 0:
      MPI_Type_contiguous(n, base, &type);
      break;
    case 1: {
      const int length = 1 + (int)dice(3);
      MPI_Type_vector(n, length, length + (int)dice(3), base, &type);
      break;
    }
    case 2:
      type = indexed_type(base, in_order);
      break;
    case 3:
      type = subarray_type(base);
      break;
    case 4:
      MPI_Type_contiguous(n, base, &inner);
      MPI_Type_create_resized(inner, 0, (n + (int)dice(3)) * extent, &type);
      MPI_Type_free(&inner);
      break;
    default:
      type = struct_type(base, extent);
  }
  return type;
}

/* A type of one or two levels. */
static MPI_Datatype random_type(MPI_Datatype base, int in_order) {
  MPI_Datatype type = one_type(base, in_order);
  if (dice(2)) {
    MPI_Datatype outer = one_type(type, in_order);
    MPI_Type_free(&type);
    type = outer;
  }
  MPI_Type_commit(&type);
  return type;
}

/* ---- The model --------------------------------------------------------------------------------
 */

static struct {
  long at[kDataBytes + 1]; /* the file byte of each data byte of the view; -1 behind the last */
  unsigned char* file;
  long size; /* only known with one rank */
  long position;
  int etype;
} model;

/* Packs byte k of each address, for each k in turn: what is packed says where it came from. */
static void locate(MPI_Datatype filetype, MPI_Offset disp) {
  MPI_Aint lb, extent;
  int size, packed = 0;
  MPI_Type_get_extent(filetype, &lb, &extent);
  MPI_Type_size(filetype, &size);
  const int count = kDataBytes / size;
  const long length = (long)extent * count + 10000;
  unsigned char *bytes = malloc((size_t)length), *data = malloc(kDataBytes);
  memset(model.at, 0, sizeof model.at);
  for (int k = 0; k < 3; ++k) {
    for (long i = 0; i < length; ++i) bytes[i] = (unsigned char)(i >> (8 * k));
    packed = 0;
    MPI_Pack(bytes, count, filetype, data, kDataBytes, &packed, MPI_COMM_SELF);
    for (int i = 0; i < packed; ++i) model.at[i] |= (long)data[i] << (8 * k);
  }
  for (int i = 0; i <= kDataBytes; ++i) model.at[i] = i < packed ? model.at[i] + disp : -1;
  free(bytes);
  free(data);
}

static void model_write(long start, const void* buffer, int count, MPI_Datatype type) {
  unsigned char* data = malloc(kBuffer);
  int packed = 0;
  MPI_Pack(buffer, count, type, data, kBuffer, &packed, MPI_COMM_SELF);
  for (long i = 0; i < packed; ++i) {
    const long at = model.at[start + i];
    model.file[at] = data[i];
    if (at >= model.size) model.size = at + 1;
  }
  free(data);
}

/* What `memory` should have become. Returns the bytes read. */
static long model_read(long start, unsigned char* memory, int count, MPI_Datatype type) {
  unsigned char* data = malloc(kBuffer);
  int packed = 0, unpacked = 0;
  long done = 0;
  MPI_Pack(memory, count, type, data, kBuffer, &packed, MPI_COMM_SELF);
  while (done < packed && model.at[start + done] < model.size) {
    data[done] = model.file[model.at[start + done]];
    ++done;
  }
  MPI_Unpack(data, packed, &unpacked, memory, count, type, MPI_COMM_SELF);
  free(data);
  return done;
}

/* ---- One operation ----------------------------------------------------------------------------
 */

enum kind {
  kWriteAt,
  kWrite,
  kWriteAll,
  kWriteAtAll,
  kIwrite,
  kIwriteAtAll,
  kSplitWrite,
  kReadAt,
  kReadAll,
  kIread,
  kSeek,
  kKinds
};

static int is_write(enum kind kind) {
  return kind <= kSplitWrite;
}
static int is_individual(enum kind kind) {
  return kind == kWrite || kind == kWriteAll || kind == kIwrite || kind == kReadAll ||
         kind == kIread;
}

static int transfer(MPI_File fh, enum kind kind, MPI_Offset offset, void* buffer, int count,
                    MPI_Datatype type, MPI_Status* status) {
  MPI_Request request;
  int result;
  switch (kind) {
    case kWriteAt:
      return MPI_File_write_at(fh, offset, buffer, count, type, status);
    case kWrite:
      return MPI_File_write(fh, buffer, count, type, status);
    case kWriteAll:
      return MPI_File_write_all(fh, buffer, count, type, status);
    case kWriteAtAll:
      return MPI_File_write_at_all(fh, offset, buffer, count, type, status);
    case kSplitWrite:
      result = MPI_File_write_at_all_begin(fh, offset, buffer, count, type);
      MPI_File_write_at_all_end(fh, buffer, status);
      return result;
    case kReadAt:
      return MPI_File_read_at(fh, offset, buffer, count, type, status);
    case kReadAll:
      return MPI_File_read_all(fh, buffer, count, type, status);
    case kIwrite:
      result = MPI_File_iwrite(fh, buffer, count, type, &request);
      break;
    case kIwriteAtAll:
      result = MPI_File_iwrite_at_all(fh, offset, buffer, count, type, &request);
      break;
    default:
      result = MPI_File_iread(fh, buffer, count, type, &request);
  }
  MPI_Wait(&request, status);
  return result;
}

static void seek(MPI_File fh, MPI_Offset offset) {
  if (dice(2)) {
    model.position = (long)offset * model.etype;
    MPI_File_seek(fh, offset, MPI_SEEK_SET);
  } else {
    model.position += (long)offset * model.etype;
    MPI_File_seek(fh, offset, MPI_SEEK_CUR);
  }
}

static void one_transfer(MPI_File fh, enum kind kind, MPI_Offset offset, MPI_Datatype type,
                         int count, int bytes) {
  unsigned char *buffer = malloc(kBuffer), *expected = malloc(kBuffer);
  const long start = is_individual(kind) ? model.position : (long)offset * model.etype;
  long done = bytes;
  MPI_Status status;
  MPI_Count elements;
  for (int i = 0; i < kBuffer; ++i) buffer[i] = (unsigned char)dice(256);
  memcpy(expected, buffer, kBuffer);

  MPI_Status_set_elements(&status, MPI_BYTE, 99999);
  expect(transfer(fh, kind, offset, buffer, count, type, &status) == MPI_SUCCESS, "an error", kind,
         0);
  if (is_write(kind)) {
    model_write(start, buffer, count, type);
  } else {
    done = model_read(start, expected, count, type);
  }
  expect(memcmp(buffer, expected, kBuffer) == 0, "wrong memory after operation", kind, start);
  MPI_Get_elements_x(&status, MPI_BYTE, &elements);
  expect(elements == done, "bytes in the status", (long)elements, done);
  if (is_individual(kind)) model.position += done;
  free(buffer);
  free(expected);
}

static void operation(MPI_File fh, MPI_Datatype etype, enum kind kind) {
  MPI_Datatype type = random_type(etype, 0);
  MPI_Aint lb, extent;
  MPI_Offset position, byte;
  const int count = (int)dice(4);
  const MPI_Offset offset = (MPI_Offset)dice(60);
  int size;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lb, &extent);
  const int fits = extent * (count + 2) < kBuffer / 2 && size * count < 4000;
  if (kind == kSeek) {
    seek(fh, offset);
  } else {
    one_transfer(fh, kind, offset, type, fits ? count : 0, fits ? size * count : 0);
  }
  if (model.position % model.etype != 0) { /* a read ended within an etype */
    model.position -= model.position % model.etype;
    MPI_File_seek(fh, model.position / model.etype, MPI_SEEK_SET);
  }
  MPI_File_get_position(fh, &position);
  expect(position == model.position / model.etype, "position", (long)position,
         model.position / model.etype);
  MPI_File_get_byte_offset(fh, position, &byte);
  expect(byte == model.at[model.position], "byte offset", (long)byte, model.at[model.position]);
  MPI_Type_free(&type);
}

/* ---- A round ----------------------------------------------------------------------------------
 */

static void check_content(MPI_File fh) {
  MPI_Offset size;
  MPI_Status status;
  unsigned char* content = calloc(1, (size_t)ranks * kRankBytes);
  MPI_File_sync(fh);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  if (ranks == 1) {
    MPI_File_get_size(fh, &size);
    expect(size == model.size, "size", (long)size, model.size);
  }
  MPI_File_read_at_all(fh, (MPI_Offset)rank * kRankBytes, content, kRankBytes, MPI_BYTE, &status);
  expect(memcmp(content, model.file + (long)rank * kRankBytes, kRankBytes) == 0, "wrong content", 0,
         0);
  free(content);
}

static void one_round(const char* name, unsigned long seed) {
  MPI_File fh;
  MPI_Aint lb, extent;
  int size;
  random_state = seed; /* the same type on all ranks */
  MPI_Datatype etype = dice(2) ? MPI_INT : MPI_BYTE, filetype = random_type(etype, 1);
  MPI_Type_size(etype, &model.etype);
  MPI_Type_size(filetype, &size);
  MPI_Type_get_extent(filetype, &lb, &extent);
  if (size == 0 || extent > 2000 || kRankBytes / (extent + 1) * size < 20000) {
    MPI_Type_free(&filetype);
    return;
  }
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh) !=
      MPI_SUCCESS) {
    fprintf(stderr, "datatypes: cannot open %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  model.size = ranks == 1 ? kShortFile : (long)ranks * kRankBytes;
  MPI_File_set_size(fh, 0);
  MPI_File_set_size(fh, model.size);
  memset(model.file, 0, (size_t)ranks * kRankBytes);
  model.position = 0;

  const MPI_Offset disp = (MPI_Offset)rank * kRankBytes + dice(100);
  expect(MPI_File_set_view(fh, disp, etype, filetype, "native", MPI_INFO_NULL) == MPI_SUCCESS,
         "set_view failed", 0, 0);
  locate(filetype, disp);
  for (int i = 0; i < kOperations; ++i) {
    random_state = seed * 31 + (unsigned long)i;
    const enum kind kind = (enum kind)dice(kKinds);
    random_state += (unsigned long)rank * 131;
    operation(fh, etype, kind);
  }
  check_content(fh);
  MPI_File_close(&fh);
  MPI_Type_free(&filetype);
}

int main(int argc, char** argv) {
  int all_failures;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4) {
    fprintf(stderr, "usage: datatypes FILE-NAME ROUNDS SEED\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  model.file = malloc((size_t)(ranks + 1) * kRankBytes);
  for (int round = 0; round < atoi(argv[2]); ++round) {
    one_round(argv[1], strtoul(argv[3], NULL, 10) + (unsigned long)round * 7919);
  }
  free(model.file);
  MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(all_failures ? "datatypes: %d failures\n" : "datatypes: ok\n", all_failures);
  }
  MPI_Finalize();
  return all_failures != 0;
}
