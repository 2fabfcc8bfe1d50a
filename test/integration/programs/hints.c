/* Opens files with hints and prints what comes of it, as its arguments say, one after the other:
 *
 *   hints STEP...
 *
 *   set KEY=VALUE      adds a hint to the info, on all ranks
 *   set@R KEY=VALUE    the same on rank R only
 *   clear              makes the info empty
 *   open FILE          opens, creating if need be; prints "open RANK CLASS TEXT" for each rank
 *   info               prints "info RANK KEY VALUE" for each rank and hint of MPI_File_get_info
 *   again              makes the info what MPI_File_get_info returned
 *   set_info           gives the info to MPI_File_set_info; prints "set_info RANK CLASS TEXT"
 *   write BYTES        each rank writes that many bytes collectively, next to each other
 *   sync, close
 */
#include "check.h"

static const char* class_name(int code) {
  switch (error_class(code)) {
    case MPI_SUCCESS:
      return "MPI_SUCCESS";
    case MPI_ERR_INFO_VALUE:
      return "MPI_ERR_INFO_VALUE";
    case MPI_ERR_NOT_SAME:
      return "MPI_ERR_NOT_SAME";
    case MPI_ERR_NO_SUCH_FILE:
      return "MPI_ERR_NO_SUCH_FILE";
    default:
      return "another";
  }
}

/* Rank 0 prints every rank's text, in order. */
static void print_all(const char* text) {
  int length = (int)strlen(text) + 1;
  if (rank != 0) {
    MPI(MPI_Send(text, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD));
    return;
  }
  fputs(text, stdout);
  for (int r = 1; r < ranks; ++r) {
    MPI_Status status;
    MPI(MPI_Probe(r, 1, MPI_COMM_WORLD, &status));
    char* other = allocate((size_t)count_of(&status, MPI_CHAR));
    MPI(MPI_Recv(other, count_of(&status, MPI_CHAR), MPI_CHAR, r, 1, MPI_COMM_WORLD, &status));
    fputs(other, stdout);
    free(other);
  }
  fflush(stdout);
}

static void print_result(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING + 100], message[MPI_MAX_ERROR_STRING + 1];
  snprintf(message, sizeof message, "%s", code == MPI_SUCCESS ? "" : error_text(code));
  for (char* c = message; *c != '\0'; ++c) {
    if (*c == '\n') *c = ' ';
  }
  snprintf(text, sizeof text, "%s %d %s %s\n", what, rank, class_name(code), message);
  print_all(text);
}

static void print_info(MPI_File file) {
  MPI_Info info;
  int keys;
  MPI(MPI_File_get_info(file, &info));
  MPI(MPI_Info_get_nkeys(info, &keys));
  char* text = allocate((size_t)keys * (MPI_MAX_INFO_KEY + MPI_MAX_INFO_VAL + 20));
  char* end = text;
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int found;
    MPI(MPI_Info_get_nthkey(info, i, key));
    MPI(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found));
    CHECK(found);
    end += sprintf(end, "info %d %s %s\n", rank, key, value);
  }
  print_all(text);
  free(text);
  MPI_Info_free(&info);
}

static void set(MPI_Info info, const char* assignment) {
  char key[MPI_MAX_INFO_KEY + 1];
  const char* equals = strchr(assignment, '=');
  CHECK(equals != NULL);
  snprintf(key, sizeof key, "%.*s", (int)(equals - assignment), assignment);
  MPI(MPI_Info_set(info, key, equals + 1));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  running = "hints";
  MPI_File file = MPI_FILE_NULL;
  MPI_Info info;
  MPI_Offset written = 0;
  MPI(MPI_Info_create(&info));
  for (int a = 1; a < argc; ++a) {
    const char* step = argv[a];
    if (strcmp(step, "set") == 0) {
      set(info, argv[++a]);
    } else if (strncmp(step, "set@", 4) == 0) {
      if (atoi(step + 4) == rank) set(info, argv[a + 1]);
      ++a;
    } else if (strcmp(step, "clear") == 0) {
      MPI_Info_free(&info);
      MPI(MPI_Info_create(&info));
    } else if (strcmp(step, "open") == 0) {
      print_result("open", MPI_File_open(MPI_COMM_WORLD, argv[++a], kCreate, info, &file));
    } else if (strcmp(step, "info") == 0) {
      print_info(file);
    } else if (strcmp(step, "again") == 0) {
      MPI_Info_free(&info);
      MPI(MPI_File_get_info(file, &info));
    } else if (strcmp(step, "set_info") == 0) {
      print_result("set_info", MPI_File_set_info(file, info));
    } else if (strcmp(step, "write") == 0) {
      const MPI_Offset bytes = atoll(argv[++a]);
      write_all_as(file, written + rank * bytes, 1, bytes);
      written += ranks * bytes;
    } else if (strcmp(step, "sync") == 0) {
      MPI(MPI_File_sync(file));
    } else if (strcmp(step, "close") == 0) {
      close_file(&file);
    } else {
      FAIL("no such step: %s", step);
    }
  }
  MPI_Info_free(&info);
  MPI_Finalize();
  return 0;
}
