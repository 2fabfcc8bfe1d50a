/* Error handlers of files.
 *
 * usage: errhandlers FILE-NAME [CASE]
 *   without CASE: all that return; exit 0 if every handler was called as it should be
 *   fatal-open, fatal-inherited, fatal-file: a fatal handler and an error; never returns if all is
 *     well (exit 3 if the error came back)
 *   failing-close: the close is expected to fail; exit 0 if it did and reported it properly
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int failures;
static int calls, last_class;
static MPI_File last_file;

static void record(MPI_File* file, int* code, ...) {
  calls++;
  last_file = *file;
  MPI_Error_class(*code, &last_class);
}

static void ignore(MPI_File* file, int* code, ...) {
  (void)file;
  (void)code;
}

static int class_of(int code) {
  int error_class;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static void expect(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "errhandlers: %s (calls %d, class %d)\n", what, calls, last_class);
  failures++;
}

/* An error that each rank gets by itself: a read from a file opened for writing only. */
static int provoke(MPI_File fh) {
  char byte;
  MPI_Status status;
  calls = 0;
  last_class = -1;
  return MPI_File_read_at(fh, 0, &byte, 1, MPI_BYTE, &status);
}

static MPI_File open_for_writing(const char* name) {
  MPI_File fh = MPI_FILE_NULL;
  const int code =
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh);
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "errhandlers: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return fh;
}

static void default_returns(const char* name, const char* missing) {
  MPI_File fh;
  expect(class_of(MPI_File_open(MPI_COMM_WORLD, missing, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh)) ==
             MPI_ERR_NO_SUCH_FILE,
         "opening a missing file does not return MPI_ERR_NO_SUCH_FILE");
  expect(class_of(MPI_File_delete(missing, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE,
         "deleting a missing file does not return MPI_ERR_NO_SUCH_FILE");
  fh = open_for_writing(name);
  expect(class_of(provoke(fh)) == MPI_ERR_ACCESS || last_class == MPI_ERR_ACCESS,
         "reading a write-only file does not return MPI_ERR_ACCESS");
  expect(MPI_File_close(&fh) == MPI_SUCCESS && fh == MPI_FILE_NULL, "close after an error fails");
}

static void user_defined_on_null(const char* name, const char* missing) {
  MPI_Errhandler handler, got;
  MPI_File fh, kept;
  MPI_File_create_errhandler(record, &handler);
  MPI_File_set_errhandler(MPI_FILE_NULL, handler);

  calls = 0;
  last_file = (MPI_File)&calls;
  MPI_File_open(MPI_COMM_WORLD, missing, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
  expect(calls == 1 && last_file == MPI_FILE_NULL && last_class == MPI_ERR_NO_SUCH_FILE,
         "a failing open does not call MPI_FILE_NULL's handler once");

  fh = kept = open_for_writing(name);
  MPI_File_get_errhandler(fh, &got);
  expect(got == handler, "a file does not inherit MPI_FILE_NULL's handler");
  MPI_Errhandler_free(&got);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  provoke(fh);
  expect(calls == 1 && last_file == kept, "the inherited handler is not called once");
  expect(MPI_File_close(&fh) == MPI_SUCCESS, "close fails");
}

static void set_on_file(const char* name) {
  MPI_Errhandler first, second;
  MPI_File_create_errhandler(record, &first);
  MPI_File_create_errhandler(ignore, &second);
  MPI_File fh = open_for_writing(name);
  MPI_File_set_errhandler(fh, second);
  provoke(fh);
  expect(calls == 0, "the wrong handler was called");
  MPI_File_set_errhandler(fh, first);
  MPI_Errhandler_free(&first);
  MPI_Errhandler_free(&second);
  provoke(fh);
  expect(calls == 1 && last_file == fh, "the file's handler is not called once");
  MPI_File_set_errhandler(fh, MPI_ERRORS_RETURN);
  expect(provoke(fh) != MPI_SUCCESS && calls == 0, "MPI_ERRORS_RETURN does not return");
  expect(MPI_File_close(&fh) == MPI_SUCCESS, "close fails");

  /* A later file must not have the closed one's. */
  fh = open_for_writing(name);
  expect(provoke(fh) != MPI_SUCCESS && calls == 0, "a closed file's handler lives on");
  expect(MPI_File_close(&fh) == MPI_SUCCESS, "close fails");
}

static void fatal(const char* which, const char* name, const char* missing) {
  MPI_File fh;
  if (strcmp(which, "fatal-open") == 0) {
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File_open(MPI_COMM_WORLD, missing, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
  } else if (strcmp(which, "fatal-inherited") == 0) {
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    fh = open_for_writing(name);
    provoke(fh);
  } else {
    fh = open_for_writing(name);
    MPI_File_set_errhandler(fh, MPI_ERRORS_ARE_FATAL);
    provoke(fh);
  }
}

/* ROMIO sets MPI_ERRORS_RETURN before it closes, so the user's handler is not called. */
static void failing_close(const char* name) {
  static char data[1 << 20];
  MPI_Errhandler handler;
  MPI_Status status;
  MPI_File fh = open_for_writing(name);
  MPI_File_create_errhandler(record, &handler);
  MPI_File_set_errhandler(fh, handler);
  MPI_Errhandler_free(&handler);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof data; ++i) data[i] = (char)(i * 2654435761u >> 13 ^ (size_t)rank);
  const int written = MPI_File_write_at(fh, (MPI_Offset)rank * (MPI_Offset)sizeof data, data,
                                        sizeof data, MPI_BYTE, &status);
  calls = 0;
  const int closed = MPI_File_close(&fh);
  expect(written != MPI_SUCCESS || closed != MPI_SUCCESS, "neither write nor close failed");
  expect(fh == MPI_FILE_NULL, "a failing close leaves the handle");
  expect(calls == 0, "a failing close called the handler");
  if (closed != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(closed, text, &length);
    if (rank == 0) printf("close: class %d: %s\n", class_of(closed), text);
  }
}

int main(int argc, char** argv) {
  char missing[4096];
  int rank, all_failures;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) {
    fprintf(stderr, "usage: errhandlers FILE-NAME [CASE]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  snprintf(missing, sizeof missing, "%s.missing", argv[1]);

  if (argc > 2 && strncmp(argv[2], "fatal", 5) == 0) {
    fatal(argv[2], argv[1], missing);
    MPI_Finalize();
    return 3;
  }
  if (argc > 2) {
    failing_close(argv[1]);
  } else {
    default_returns(argv[1], missing);
    user_defined_on_null(argv[1], missing);
    set_on_file(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      expect(MPI_File_delete(argv[1], MPI_INFO_NULL) == MPI_SUCCESS, "cannot delete the file");
    }
  }
  MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(all_failures ? "errhandlers: %d failures\n" : "errhandlers: ok\n", all_failures);
  }
  MPI_Finalize();
  return all_failures != 0;
}
