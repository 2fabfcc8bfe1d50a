#include "transfer.h"

#include "check.h"

static int transfer_blocking(MPI_File f, const struct transfer* t, void* p, MPI_Status* s) {
  const int n = t->count;
  const MPI_Datatype type = t->type;
  switch (t->pointer) {
    case kExplicit:
      return t->write ? MPI_File_write_at(f, t->offset, p, n, type, s)
                      : MPI_File_read_at(f, t->offset, p, n, type, s);
    case kIndividual:
      return t->write ? MPI_File_write(f, p, n, type, s) : MPI_File_read(f, p, n, type, s);
    default:
      return t->write ? MPI_File_write_shared(f, p, n, type, s)
                      : MPI_File_read_shared(f, p, n, type, s);
  }
}

static int transfer_collective(MPI_File f, const struct transfer* t, void* p, MPI_Status* s) {
  const int n = t->count;
  const MPI_Datatype type = t->type;
  switch (t->pointer) {
    case kExplicit:
      return t->write ? MPI_File_write_at_all(f, t->offset, p, n, type, s)
                      : MPI_File_read_at_all(f, t->offset, p, n, type, s);
    case kIndividual:
      return t->write ? MPI_File_write_all(f, p, n, type, s) : MPI_File_read_all(f, p, n, type, s);
    default:
      return t->write ? MPI_File_write_ordered(f, p, n, type, s)
                      : MPI_File_read_ordered(f, p, n, type, s);
  }
}

static int start_nonblocking(MPI_File f, const struct transfer* t, void* p, MPI_Request* r) {
  const int n = t->count, all = t->mode == kNonblockingCollective;
  const MPI_Datatype type = t->type;
  switch (t->pointer) {
    case kExplicit:
      if (all) {
        return t->write ? MPI_File_iwrite_at_all(f, t->offset, p, n, type, r)
                        : MPI_File_iread_at_all(f, t->offset, p, n, type, r);
      }
      return t->write ? MPI_File_iwrite_at(f, t->offset, p, n, type, r)
                      : MPI_File_iread_at(f, t->offset, p, n, type, r);
    case kIndividual:
      if (all) {
        return t->write ? MPI_File_iwrite_all(f, p, n, type, r)
                        : MPI_File_iread_all(f, p, n, type, r);
      }
      return t->write ? MPI_File_iwrite(f, p, n, type, r) : MPI_File_iread(f, p, n, type, r);
    default:
      return t->write ? MPI_File_iwrite_shared(f, p, n, type, r)
                      : MPI_File_iread_shared(f, p, n, type, r);
  }
}

static int begin_split(MPI_File f, const struct transfer* t, void* p) {
  const int n = t->count;
  const MPI_Datatype type = t->type;
  switch (t->pointer) {
    case kExplicit:
      return t->write ? MPI_File_write_at_all_begin(f, t->offset, p, n, type)
                      : MPI_File_read_at_all_begin(f, t->offset, p, n, type);
    case kIndividual:
      return t->write ? MPI_File_write_all_begin(f, p, n, type)
                      : MPI_File_read_all_begin(f, p, n, type);
    default:
      return t->write ? MPI_File_write_ordered_begin(f, p, n, type)
                      : MPI_File_read_ordered_begin(f, p, n, type);
  }
}

static int end_split(MPI_File f, const struct transfer* t, void* p, MPI_Status* s) {
  switch (t->pointer) {
    case kExplicit:
      return t->write ? MPI_File_write_at_all_end(f, p, s) : MPI_File_read_at_all_end(f, p, s);
    case kIndividual:
      return t->write ? MPI_File_write_all_end(f, p, s) : MPI_File_read_all_end(f, p, s);
    default:
      return t->write ? MPI_File_write_ordered_end(f, p, s) : MPI_File_read_ordered_end(f, p, s);
  }
}

void pause_only(void) {
  barrier();
}

struct outcome transfer(MPI_File file, const struct transfer* t, void* buffer) {
  struct outcome outcome = {MPI_SUCCESS, -1};
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (t->mode) {
    case kBlocking:
      outcome.code = transfer_blocking(file, t, buffer, &status);
      break;
    case kCollective:
      outcome.code = transfer_collective(file, t, buffer, &status);
      break;
    case kSplit:
      outcome.code = begin_split(file, t, buffer);
      if (t->pause) barrier();
      if (outcome.code == MPI_SUCCESS) outcome.code = end_split(file, t, buffer, &status);
      break;
    default:
      outcome.code = start_nonblocking(file, t, buffer, &request);
      if (t->pause) barrier();
      if (outcome.code == MPI_SUCCESS) outcome.code = MPI_Wait(&request, &status);
      break;
  }
  if (outcome.code == MPI_SUCCESS) MPI(MPI_Get_count(&status, MPI_BYTE, &outcome.bytes));
  return outcome;
}
