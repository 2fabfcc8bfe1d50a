/* Collective calls with arguments that differ between ranks where MPI wants them equal: an error on
 * all ranks, never a hang, and what was in force stays in force. */
#include "check.h"

#define DIFFERS(call, ...)                                                    \
  do {                                                                        \
    const int error_ = (call);                                                \
    static const char* const words_[] = {__VA_ARGS__};                        \
    CHECK_INT(error_class(error_), MPI_ERR_NOT_SAME);                         \
    for (size_t i_ = 0; i_ < sizeof words_ / sizeof words_[0]; ++i_) {        \
      if (strstr(error_text(error_), words_[i_]) == NULL) {                   \
        FAIL("%s: not named: %s: %s", #call, words_[i_], error_text(error_)); \
      }                                                                       \
    }                                                                         \
  } while (0)

static int last(void) {
  return rank == ranks - 1;
}

static void check_hint(MPI_File file, const char* hint, const char* expected) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1];
  int found;
  MPI(MPI_File_get_info(file, &info));
  MPI(MPI_Info_get(info, hint, MPI_MAX_INFO_VAL, value, &found));
  CHECK(found && strcmp(value, expected) == 0);
  MPI(MPI_Info_free(&info));
}

/* The file still works, on all ranks. */
static void write_and_close(MPI_File file) {
  write_all_as(file, (MPI_Offset)rank * 300000, 1, 300000);
  MPI(MPI_File_sync(file));
  CHECK_WRITER(file, 0, 1, (MPI_Offset)ranks * 300000);
  close_file(&file);
}

static void hints(const char* name) {
  static const struct {
    const char *hint, *value, *other;
  } kHints[] = {{"dedup_exchange", "put", "send"},  {"dedup_reduction", "tree", "exact"},
                {"dedup_partners", "ring", "load"}, {"dedup_group", "3", "8"},
                {"dedup_threshold", "9", "10"},     {"dedup_fsync", "never", "commit"}};
  MPI_File file = open_all(name, kCreate);
  for (size_t i = 0; i < sizeof kHints / sizeof kHints[0]; ++i) {
    MPI_Info info;
    MPI(MPI_Info_create(&info));
    MPI(MPI_Info_set(info, kHints[i].hint, kHints[i].other));
    MPI(MPI_File_set_info(file, info));
    MPI(MPI_Info_set(info, kHints[i].hint, last() ? kHints[i].value : kHints[i].other));
    const int error = MPI_File_set_info(file, info);
    CHECK_INT(error_class(error), MPI_ERR_NOT_SAME);
    CHECK(strstr(error_text(error), kHints[i].hint) != NULL);
    CHECK(strstr(error_text(error), kHints[i].value) != NULL);
    CHECK(strstr(error_text(error), kHints[i].other) != NULL);
    check_hint(file, kHints[i].hint, kHints[i].other);
    MPI_FAILS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info), MPI_ERR_NOT_SAME);
    check_hint(file, kHints[i].hint, kHints[i].other);
    MPI(MPI_Info_free(&info));
  }
  write_and_close(file);
}

/* One rank alone gives hints with its view, which it may if they are those in force. */
static void hints_on_one_rank(const char* name) {
  MPI_File file = open_all(name, kCreate);
  MPI_Info info = MPI_INFO_NULL;
  if (last()) {
    MPI(MPI_Info_create(&info));
    MPI(MPI_Info_set(info, "dedup_exchange", "send"));
  }
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
  if (last()) MPI(MPI_Info_free(&info));
  write_and_close(file);
}

static void open_modes(const char* name) {
  MPI_File file;
  char other[4096];
  snprintf(other, sizeof other, "%s", strchr(name, ':') + 1);
  DIFFERS(MPI_File_open(MPI_COMM_WORLD, name, last() ? kCreate | MPI_MODE_RDONLY : kCreate,
                        MPI_INFO_NULL, &file),
          "access mode", "RDONLY RDWR CREATE");
  DIFFERS(
      MPI_File_open(MPI_COMM_WORLD, name, last() ? MPI_MODE_RDWR : kCreate, MPI_INFO_NULL, &file),
      "access mode", "RDWR CREATE");
  DIFFERS(MPI_File_open(MPI_COMM_WORLD, last() ? other : name, kCreate, MPI_INFO_NULL, &file),
          "driver", "dedup:", "another");
  snprintf(other, sizeof other, "%s.other", name);
  DIFFERS(MPI_File_open(MPI_COMM_WORLD, last() ? other : name, kCreate, MPI_INFO_NULL, &file),
          ".other");
  write_and_close(open_all(name, kCreate));
}

static void sizes(const char* name) {
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_set_size(file, 500));
  DIFFERS(MPI_File_set_size(file, last() ? 70 : 60), "size", "60", "70");
  DIFFERS(MPI_File_set_size(file, last() ? -1 : 60), "size", "60", "-1");
  DIFFERS(MPI_File_preallocate(file, last() ? 7000 : 6000), "size", "6000", "7000");
  DIFFERS(MPI_File_preallocate(file, last() ? -1 : 6000), "size", "6000", "-1");
  CHECK_INT(size_of(file), 500);
  write_and_close(file);
}

static void atomicity(const char* name) {
  MPI_File file = open_all(name, kCreate);
  int flag = 1;
  DIFFERS(MPI_File_set_atomicity(file, last()), "flag", "0", "1");
  MPI(MPI_File_get_atomicity(file, &flag));
  CHECK_INT(flag, 0);
  MPI(MPI_File_set_atomicity(file, last() ? 7 : 1)); /* both are true */
  MPI(MPI_File_get_atomicity(file, &flag));
  CHECK_INT(flag, 1);
  write_and_close(file);
}

static void shared_pointer(const char* name) {
  MPI_File file = open_all(name, kCreate);
  MPI_Offset at = 0;
  MPI(MPI_File_seek_shared(file, 20, MPI_SEEK_SET));
  DIFFERS(MPI_File_seek_shared(file, last() ? 7 : 8, MPI_SEEK_SET), "offset", "8", "7");
  DIFFERS(MPI_File_seek_shared(file, 8, last() ? MPI_SEEK_CUR : MPI_SEEK_SET), "whence",
          "MPI_SEEK_SET", "MPI_SEEK_CUR");
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_INT(at, 20);
  write_and_close(file);
}

static void views(const char* name) {
  MPI_File file = open_all(name, kCreate);
  MPI_Offset disp;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING + 1];
  MPI(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  const MPI_Datatype type = last() ? MPI_DOUBLE : MPI_INT;
  DIFFERS(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL), "extent of the etype",
          "4", "8");
  DIFFERS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, last() ? "external32" : "native",
                            MPI_INFO_NULL),
          "datarep", "native", "external32");
  DIFFERS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, last() ? "none" : "native", MPI_INFO_NULL),
          "datarep", "native", "none");
  DIFFERS(MPI_File_set_view(file, last() ? -1 : 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
          "displacement", "negative");
  DIFFERS(MPI_File_set_view(file, 0, MPI_INT, last() ? MPI_BYTE : MPI_INT, "native", MPI_INFO_NULL),
          "filetype", "etypes");
  MPI(MPI_File_get_view(file, &disp, &etype, &filetype, representation));
  CHECK_INT(disp, 8);
  CHECK(etype == MPI_INT && filetype == MPI_INT && strcmp(representation, "native") == 0);
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  write_and_close(file);
}

static const struct check_case kCases[] = {
    CASE(hints),     CASE(hints_on_one_rank), CASE(open_modes), CASE(sizes),
    CASE(atomicity), CASE(shared_pointer),    CASE(views),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
