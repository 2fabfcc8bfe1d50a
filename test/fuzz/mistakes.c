#include "mistakes.h"

#include <stdio.h>

#include "check.h"

static int failed_open(MPI_Comm comm, const char* name, int amode) {
  MPI_File file;
  const int code = MPI_File_open(comm, name, amode, MPI_INFO_NULL, &file);
  if (code == MPI_SUCCESS) MPI(MPI_File_close(&file));
  return code;
}

static int at_negative_offset(MPI_File file, MPI_Comm comm, const char* name) {
  char byte = 0;
  (void)comm, (void)name;
  return MPI_File_read_at(file, -1, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int written_at_negative_offset(MPI_File file, MPI_Comm comm, const char* name) {
  char byte = 0;
  (void)comm, (void)name;
  return MPI_File_write_at_all(file, -5, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int negative_count(MPI_File file, MPI_Comm comm, const char* name) {
  char byte = 0;
  (void)comm, (void)name;
  return MPI_File_read(file, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int no_datatype(MPI_File file, MPI_Comm comm, const char* name) {
  char byte = 0;
  (void)comm, (void)name;
  return MPI_File_write_at(file, 0, &byte, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE);
}

static int part_of_an_etype(MPI_File file, MPI_Comm comm, const char* name) {
  char bytes[8] = {0};
  MPI_Offset disp;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING];
  int size;
  (void)comm, (void)name;
  MPI(MPI_File_get_view(file, &disp, &etype, &filetype, representation));
  MPI(MPI_Type_size(etype, &size));
  if (size == 1) return MPI_SUCCESS;
  return MPI_File_read_at(file, 0, bytes, size - 1, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int sought_before_start(MPI_File file, MPI_Comm comm, const char* name) {
  (void)comm, (void)name;
  return MPI_File_seek(file, -1, MPI_SEEK_SET);
}

static int sought_from_nowhere(MPI_File file, MPI_Comm comm, const char* name) {
  (void)comm, (void)name;
  return MPI_File_seek(file, 0, 12345);
}

static int negative_size(MPI_File file, MPI_Comm comm, const char* name) {
  (void)comm, (void)name;
  return MPI_File_set_size(file, -1);
}

static int different_sizes(MPI_File file, MPI_Comm comm, const char* name) {
  int me, all;
  (void)name;
  MPI(MPI_Comm_rank(comm, &me));
  MPI(MPI_Comm_size(comm, &all));
  const int code = all == 1 ? MPI_SUCCESS : MPI_File_set_size(file, 100 + me);
  /* ROMIO's answer is MPI_ERR_ARG; the standard has a class of its own for it. */
  return error_class(code) == MPI_ERR_NOT_SAME ? MPI_ERR_ARG : code;
}

static int negative_preallocation(MPI_File file, MPI_Comm comm, const char* name) {
  (void)comm, (void)name;
  return MPI_File_preallocate(file, -1);
}

static int unknown_representation(MPI_File file, MPI_Comm comm, const char* name) {
  (void)comm, (void)name;
  return MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "strange", MPI_INFO_NULL);
}

static int negative_displacement(MPI_File file, MPI_Comm comm, const char* name) {
  (void)comm, (void)name;
  return MPI_File_set_view(file, -3, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

static int end_without_begin(MPI_File file, MPI_Comm comm, const char* name) {
  char byte = 0;
  MPI_Status status;
  (void)comm, (void)name;
  return MPI_File_read_all_end(file, &byte, &status);
}

static int opened_without_mode(MPI_File file, MPI_Comm comm, const char* name) {
  (void)file;
  return failed_open(comm, name, MPI_MODE_CREATE);
}

static int opened_with_two_modes(MPI_File file, MPI_Comm comm, const char* name) {
  (void)file;
  return failed_open(comm, name, MPI_MODE_RDONLY | MPI_MODE_WRONLY);
}

static int created_read_only(MPI_File file, MPI_Comm comm, const char* name) {
  (void)file;
  return failed_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDONLY);
}

static int sequential_both_ways(MPI_File file, MPI_Comm comm, const char* name) {
  (void)file;
  return failed_open(comm, name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL);
}

static int opened_without_existing(MPI_File file, MPI_Comm comm, const char* name) {
  char other[5000];
  (void)file;
  snprintf(other, sizeof other, "%s.not-there", name);
  return failed_open(comm, other, MPI_MODE_RDWR);
}

static int opened_in_no_directory(MPI_File file, MPI_Comm comm, const char* name) {
  char other[5000];
  (void)file;
  snprintf(other, sizeof other, "%s.not-there/file", name);
  return failed_open(comm, other, MPI_MODE_RDONLY);
}

static int deleted_without_existing(MPI_File file, MPI_Comm comm, const char* name) {
  char other[5000];
  (void)file, (void)comm;
  snprintf(other, sizeof other, "%s.not-there", name);
  return MPI_File_delete(other, MPI_INFO_NULL);
}

#define MISTAKE(function) \
  { #function, function }

static const struct {
  const char* name;
  int (*make)(MPI_File file, MPI_Comm comm, const char* name);
} kMistakes[] = {
    MISTAKE(at_negative_offset),     MISTAKE(written_at_negative_offset),
    MISTAKE(negative_count),         MISTAKE(no_datatype),
    MISTAKE(part_of_an_etype),       MISTAKE(sought_before_start),
    MISTAKE(sought_from_nowhere),    MISTAKE(negative_size),
    MISTAKE(different_sizes),        MISTAKE(negative_preallocation),
    MISTAKE(unknown_representation), MISTAKE(negative_displacement),
    MISTAKE(end_without_begin),      MISTAKE(opened_without_mode),
    MISTAKE(opened_with_two_modes),  MISTAKE(created_read_only),
    MISTAKE(sequential_both_ways),   MISTAKE(opened_without_existing),
    MISTAKE(opened_in_no_directory), MISTAKE(deleted_without_existing),
};

int mistakes(void) {
  return (int)(sizeof kMistakes / sizeof kMistakes[0]);
}

const char* mistake_name(int mistake) {
  return kMistakes[mistake].name;
}

int make_mistake(int mistake, MPI_File file, MPI_Comm comm, const char* name) {
  return kMistakes[mistake].make(file, comm, name);
}
