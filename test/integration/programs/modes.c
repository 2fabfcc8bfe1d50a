/* The access modes of MPI_File_open, MPI_File_close and MPI_File_delete. */
#include "check.h"

enum { kBlock = 1000 };

static void remove_file(const char* name) {
  barrier();
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
  barrier();
}

static void write_blocks(const char* name, int mode) {
  MPI_File file = open_all(name, mode);
  write_all_as(file, (MPI_Offset)rank * kBlock, 1, kBlock);
  close_file(&file);
}

static void missing_file(const char* name) {
  MPI_File file;
  const int modes[] = {MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR,
                       MPI_MODE_RDWR | MPI_MODE_APPEND};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
    MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, modes[i], MPI_INFO_NULL, &file),
              MPI_ERR_NO_SUCH_FILE);
    MPI_FAILS(MPI_File_open(MPI_COMM_SELF, name, modes[i], MPI_INFO_NULL, &file),
              MPI_ERR_NO_SUCH_FILE);
  }
}

static void create_without_writing(const char* name) {
  MPI_File file = open_all(name, kCreate);
  CHECK_INT(size_of(file), 0);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), 0);
  close_file(&file);
}

static void create_keeps_content(const char* name) {
  write_blocks(name, kCreate);
  MPI_File file = open_all(name, kCreate);
  CHECK_INT(size_of(file), (MPI_Offset)ranks * kBlock);
  CHECK_WRITER(file, 0, 1, ranks * kBlock);
  close_file(&file);
}

static void excl(const char* name) {
  MPI_File file;
  write_blocks(name, kCreate | MPI_MODE_EXCL);
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, kCreate | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
            MPI_ERR_FILE_EXISTS);
  MPI_FAILS(MPI_File_open(MPI_COMM_SELF, name, kCreate | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
            MPI_ERR_FILE_EXISTS);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, ranks * kBlock);
  close_file(&file);
  remove_file(name);
  write_blocks(name, kCreate | MPI_MODE_EXCL);
}

static void excl_while_open(const char* name) {
  MPI_File file = open_all(name, kCreate | MPI_MODE_EXCL), second;
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, kCreate | MPI_MODE_EXCL, MPI_INFO_NULL, &second),
            MPI_ERR_FILE_EXISTS);
  write_all_as(file, (MPI_Offset)rank * kBlock, 1, kBlock);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, ranks * kBlock);
  close_file(&file);
}

static void bad_modes(const char* name) {
  MPI_File file;
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE, MPI_INFO_NULL, &file),
            MPI_ERR_AMODE);
  MPI_FAILS(
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
      MPI_ERR_AMODE);
  MPI_FAILS(
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
      MPI_ERR_AMODE);
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
            MPI_ERR_NO_SUCH_FILE);
}

static void read_only(const char* name) {
  char byte = 'x';
  MPI_Status status;
  write_blocks(name, kCreate);
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  MPI_FAILS(MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_READ_ONLY);
  MPI_FAILS(MPI_File_write_at_all(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_READ_ONLY);
  MPI_FAILS(MPI_File_set_size(file, 1), MPI_ERR_READ_ONLY);
  CHECK_WRITER(file, 0, 1, ranks * kBlock);
  int mode;
  MPI(MPI_File_get_amode(file, &mode));
  CHECK_INT(mode, MPI_MODE_RDONLY);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), (MPI_Offset)ranks * kBlock);
  close_file(&file);
}

static void write_only(const char* name) {
  unsigned char byte;
  MPI_Status status;
  write_blocks(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_File file = open_all(name, MPI_MODE_WRONLY);
  MPI_FAILS(MPI_File_read_at(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_ACCESS);
  /* A part of a chunk: the rest must survive. */
  if (rank == 0) write_as(file, 17, 2, 5);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, 17);
  CHECK_WRITER(file, 17, 2, 5);
  CHECK_WRITER(file, 22, 1, ranks * kBlock - 22);
  close_file(&file);
}

static void append(const char* name) {
  unsigned char data[kBlock];
  MPI_Offset position;
  MPI_Status status;
  write_blocks(name, kCreate);
  const MPI_Offset end = (MPI_Offset)ranks * kBlock;
  MPI_File file = open_all(name, MPI_MODE_RDWR | MPI_MODE_APPEND);
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, end);
  MPI(MPI_File_get_position_shared(file, &position));
  CHECK_INT(position, end);
  barrier();
  if (rank == ranks - 1) {
    fill(data, 3, end, kBlock);
    MPI(MPI_File_write(file, data, kBlock, MPI_BYTE, &status));
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, end + kBlock);
  }
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), end + kBlock);
  CHECK_WRITER(file, 0, 1, end);
  CHECK_WRITER(file, end, 3, kBlock);
  close_file(&file);
}

static void append_shared(const char* name) {
  unsigned char data[kBlock];
  MPI_Status status;
  write_blocks(name, kCreate);
  const MPI_Offset end = (MPI_Offset)ranks * kBlock;
  MPI_File file = open_all(name, MPI_MODE_WRONLY | MPI_MODE_APPEND);
  fill(data, 3, end + rank * kBlock, kBlock);
  MPI(MPI_File_write_ordered(file, data, kBlock, MPI_BYTE, &status));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, end);
  CHECK_WRITER(file, end, 3, end);
  CHECK_INT(size_of(file), 2 * end);
  close_file(&file);
}

static void delete_on_close(const char* name) {
  MPI_File file = open_all(name, kCreate | MPI_MODE_DELETE_ON_CLOSE);
  write_all_as(file, (MPI_Offset)rank * kBlock, 1, kBlock);
  barrier();
  CHECK_WRITER(file, 0, 1, ranks * kBlock);
  close_file(&file);
  missing_file(name);
  if (rank == 0) MPI_FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

static void delete_on_close_of_committed(const char* name) {
  write_blocks(name, kCreate);
  MPI_File file = open_all(name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
  CHECK_WRITER(file, 0, 1, ranks * kBlock);
  close_file(&file);
  missing_file(name);
}

static void delete_file(const char* name) {
  write_blocks(name, kCreate);
  remove_file(name);
  missing_file(name);
  barrier();
  if (rank == 0) MPI_FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  barrier();
  /* The new file has nothing of the old one. */
  MPI_File file = open_all(name, kCreate | MPI_MODE_EXCL);
  CHECK_INT(size_of(file), 0);
  barrier();
  if (rank == 0) write_as(file, 3 * kBlock, 9, 10);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), 3 * kBlock + 10);
  CHECK_ZEROS(file, 0, 3 * kBlock);
  CHECK_WRITER(file, 3 * kBlock, 9, 10);
  close_file(&file);
}

static void delete_by_another_rank(const char* name) {
  write_blocks(name, kCreate);
  if (rank == ranks - 1) MPI(MPI_File_delete(name, MPI_INFO_NULL));
  barrier();
  missing_file(name);
}

static void delete_what_never_was(const char* name) {
  if (rank == 0) MPI_FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

static void group_and_mode(const char* name) {
  MPI_Group group, world;
  int same, mode;
  MPI_File file = open_all(name, kCreate | MPI_MODE_UNIQUE_OPEN);
  MPI(MPI_File_get_group(file, &group));
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  MPI(MPI_Group_compare(group, world, &same));
  CHECK_INT(same, MPI_IDENT);
  MPI(MPI_File_get_amode(file, &mode));
  CHECK_INT(mode, kCreate | MPI_MODE_UNIQUE_OPEN);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  close_file(&file);
}

static void modes_that_differ(const char* name) {
  MPI_File file;
  if (ranks == 1) return;
  const int mode = rank == 0 ? kCreate : MPI_MODE_CREATE | MPI_MODE_WRONLY;
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
}

static void sequential(const char* name) {
  unsigned char data[kBlock];
  MPI_Status status;
  MPI_File file = open_all(name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  for (int i = 0; i < 3; ++i) {
    fill(data, 4, (MPI_Offset)(i * ranks + rank) * kBlock, kBlock);
    MPI(MPI_File_write_ordered(file, data, kBlock, MPI_BYTE, &status));
  }
  MPI_FAILS(MPI_File_write_at(file, 0, data, 1, MPI_BYTE, &status), MPI_ERR_UNSUPPORTED_OPERATION);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
  unsigned char expected[kBlock];
  MPI(MPI_File_read_ordered(file, data, kBlock, MPI_BYTE, &status));
  fill(expected, 4, (MPI_Offset)rank * kBlock, kBlock);
  compare(data, expected, (MPI_Offset)rank * kBlock, kBlock, __LINE__);
  close_file(&file);
}

static void reopened_many_times(const char* name) {
  for (int i = 0; i < 6; ++i) {
    MPI_File file = open_all(name, kCreate);
    CHECK_INT(size_of(file), (MPI_Offset)i * ranks * 100);
    if (i > 0) CHECK_WRITER(file, 0, 1, (MPI_Offset)i * ranks * 100);
    barrier();
    write_all_as(file, (MPI_Offset)(i * ranks + rank) * 100, 1, 100);
    close_file(&file);
  }
}

static const struct check_case kCases[] = {
    CASE(missing_file),
    CASE(create_without_writing),
    CASE(create_keeps_content),
    CASE(excl),
    CASE(excl_while_open),
    CASE(bad_modes),
    CASE(read_only),
    CASE(write_only),
    CASE(append),
    CASE(append_shared),
    CASE(delete_on_close),
    CASE(delete_on_close_of_committed),
    CASE(delete_file),
    CASE(delete_by_another_rank),
    CASE(delete_what_never_was),
    CASE(group_and_mode),
    CASE(modes_that_differ),
    CASE(sequential),
    CASE(reopened_many_times),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
