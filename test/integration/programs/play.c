/* play FILE SCRIPT DATA RESULTS: does with FILE what SCRIPT says, one operation a line. All ranks
 * read the whole script; a line that begins with `@R` is for rank R alone. Operations:
 *
 *   info KEY VALUE         for the opens that follow
 *   prefix P               replaces what FILE's name begins with; by nothing if there is no P
 *   open H MODE COMM       handle H (0 … 3); MODE letters: r, w (read and write), c (create), x
 *                          (exclusive), d (delete on close); COMM: world, self, or part, which only
 *                          its ranks open; so it is with all that is done with the handle
 *   part R S …             what part is from here on: these ranks, which take part in making it
 *                          together with all that part had before, or with all
 *   meet                   a barrier of part
 *   piece R OFFSET LENGTH AT   rank R's next write has DATA[AT, AT + LENGTH) go to OFFSET
 *   write H HOW            HOW: at, view (independent), all-at, all-view, all-memory, split,
 *                          nonblocking (collective); uses up the pieces of all ranks
 *   read H PATH BLOCK      all ranks read the whole file into the plain file PATH: rank r its r-th
 *                          part (BLOCK 0), or blocks r, r + ranks, … through a view
 *   pieces H PATH LENGTH   the same, independently, piece by piece: pieces that cannot be read stay
 *                          holes, and PATH.map gets a byte for each piece, 1 if it was read
 *   size H BYTES · sync H · close H · delete · barrier · die R (SIGKILL)
 *   heal K FLAGS           dedup_admin_heal; what it did is the result's text
 *   touch PATH · wait PATH make a plain file; wait until it is there
 *   pid PATH               adds this process's id to a plain file
 *   kill PATH              kills the processes of such a file, and waits until they are gone
 *   shell COMMAND          runs it
 *   leave                  the ranks end here, without MPI_Finalize
 *   abort                  MPI_Abort
 *
 * Each rank writes the file RESULTS.<rank>, a line for each operation that MPI does: number of the
 * line, operation, name of the error class, text. An error does not end the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "engine/admin.h"

enum { kHandles = 4, kMaxPieces = 4096 };

struct piece {
  MPI_Offset offset;
  int length;
  off_t at;
};

static char* name; /* of FILE, however long: the driver is to see it */
static MPI_File handles[kHandles];
static MPI_Comm comms[kHandles]; /* of open handles */
static MPI_Comm part = MPI_COMM_WORLD;
static MPI_Info info;
static int data, results;
static struct piece pieces[kMaxPieces]; /* of this rank */
static int piece_count;
static int line_number;
static const char* operation;

static const char* class_name(int code) {
  static const struct {
    int class;
    const char* name;
  } names[] = {{MPI_ERR_NO_SUCH_FILE, "NO_SUCH_FILE"},
               {MPI_ERR_FILE_EXISTS, "FILE_EXISTS"},
               {MPI_ERR_ACCESS, "ACCESS"},
               {MPI_ERR_READ_ONLY, "READ_ONLY"},
               {MPI_ERR_BAD_FILE, "BAD_FILE"},
               {MPI_ERR_NO_SPACE, "NO_SPACE"},
               {MPI_ERR_QUOTA, "QUOTA"},
               {MPI_ERR_IO, "IO"},
               {MPI_ERR_FILE_IN_USE, "FILE_IN_USE"},
               {MPI_ERR_FILE, "FILE"},
               {MPI_ERR_NOT_SAME, "NOT_SAME"},
               {MPI_ERR_INFO_VALUE, "INFO_VALUE"},
               {MPI_ERR_ARG, "ARG"},
               {MPI_ERR_COUNT, "COUNT"},
               {MPI_ERR_AMODE, "AMODE"},
               {MPI_ERR_UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION"},
               {MPI_ERR_NO_MEM, "NO_MEM"},
               {MPI_ERR_INTERN, "INTERN"},
               {MPI_ERR_OTHER, "OTHER"}};
  if (code == MPI_SUCCESS) return "SUCCESS";
  const int class = error_class(code);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (names[i].class == class) return names[i].name;
  }
  return "UNKNOWN";
}

static void put_result(const char* class, const char* text) {
  char line[MPI_MAX_ERROR_STRING + 200];
  char flat[MPI_MAX_ERROR_STRING + 1];
  snprintf(flat, sizeof flat, "%s", text);
  for (char* c = flat; *c != '\0'; ++c) {
    if (*c == '\n' || *c == '\t') *c = ' ';
  }
  const int length =
      snprintf(line, sizeof line, "%d\t%s\t%s\t%s\n", line_number, operation, class, flat);
  CHECK(write(results, line, (size_t)length) == length);
}

static int result(int code) {
  put_result(class_name(code), code == MPI_SUCCESS ? "" : error_text(code));
  return code;
}

static MPI_Offset number(void) {
  const char* word = strtok(NULL, " ");
  CHECK(word != NULL);
  char* end;
  const long long value = strtoll(word, &end, 10);
  CHECK(*end == '\0');
  return value;
}

static const char* word(void) {
  const char* text = strtok(NULL, " ");
  CHECK(text != NULL);
  return text;
}

static MPI_File* handle(void) {
  const MPI_Offset h = number();
  CHECK(h >= 0 && h < kHandles);
  return &handles[h];
}

static void do_info(void) {
  const char* key = word();
  const char* value = strtok(NULL, "");
  CHECK(value != NULL);
  if (info == MPI_INFO_NULL) MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, key, value));
}

/* FILE's name without its prefix. */
static const char* path_of(const char* file) {
  const char* colon = strchr(file, ':');
  return colon != NULL ? colon + 1 : file;
}

static void do_prefix(void) {
  const char* prefix = strtok(NULL, " ");
  char* changed;
  CHECK(asprintf(&changed, "%s%s", prefix != NULL ? prefix : "", path_of(name)) > 0);
  free(name);
  name = changed;
}

static void do_open(void) {
  MPI_File* file = handle();
  int mode = 0;
  for (const char* c = word(); *c != '\0'; ++c) {
    mode |= *c == 'r'   ? MPI_MODE_RDONLY
            : *c == 'w' ? MPI_MODE_RDWR
            : *c == 'c' ? MPI_MODE_CREATE
            : *c == 'x' ? MPI_MODE_EXCL
                        : MPI_MODE_DELETE_ON_CLOSE;
  }
  const char* who = word();
  const MPI_Comm comm = strcmp(who, "self") == 0   ? MPI_COMM_SELF
                        : strcmp(who, "part") == 0 ? part
                                                   : MPI_COMM_WORLD;
  comms[file - handles] = comm;
  if (comm == MPI_COMM_NULL) return;
  if (result(MPI_File_open(comm, name, mode, info, file)) != MPI_SUCCESS) *file = MPI_FILE_NULL;
}

static void do_part(void) {
  if (part == MPI_COMM_NULL) return;
  int is_in = 0;
  for (const char* member = strtok(NULL, " "); member != NULL; member = strtok(NULL, " ")) {
    if (atoi(member) == rank) is_in = 1;
  }
  MPI_Comm smaller;
  MPI(MPI_Comm_split(part, is_in ? 0 : MPI_UNDEFINED, rank, &smaller));
  part = smaller;
}

/* Whether this rank has part in what follows with the handle that the next word names. */
static int is_mine(const char* rest) {
  const int h = atoi(rest);
  return h < 0 || h >= kHandles || comms[h] != MPI_COMM_NULL;
}

static void do_pid(void) {
  const int plain = open(word(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  CHECK(plain >= 0);
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  CHECK(write(plain, text, (size_t)length) == length && close(plain) == 0);
}

/* Whether a process has let go of its sockets and locks. */
static int is_gone(long process) {
  char path[64], line[256];
  int gone = 1;
  snprintf(path, sizeof path, "/proc/%ld/status", process);
  FILE* status = fopen(path, "r");
  if (status == NULL) return 1;
  while (fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "State:", 6) == 0) gone = strchr(line, 'Z') != NULL;
  }
  fclose(status);
  return gone;
}

static void do_kill(void) {
  const struct timespec pause = {0, 1000000};
  FILE* processes = fopen(word(), "r");
  CHECK(processes != NULL);
  long process;
  while (fscanf(processes, "%ld", &process) == 1) {
    CHECK(kill((pid_t)process, SIGKILL) == 0 || errno == ESRCH);
    while (!is_gone(process)) nanosleep(&pause, NULL);
  }
  fclose(processes);
}

static void add_piece(void) {
  const MPI_Offset owner = number();
  const struct piece piece = {number(), (int)number(), (off_t)number()};
  if (owner != rank) return;
  CHECK(piece_count < kMaxPieces);
  pieces[piece_count++] = piece;
}

/* All of this rank's pieces, one after the other. */
static unsigned char* load_pieces(int* bytes) {
  *bytes = 0;
  for (int i = 0; i < piece_count; ++i) *bytes += pieces[i].length;
  unsigned char* buffer = allocate((size_t)*bytes);
  size_t done = 0;
  for (int i = 0; i < piece_count; ++i) {
    const size_t length = (size_t)pieces[i].length;
    CHECK(pread(data, buffer + done, length, pieces[i].at) == (ssize_t)length);
    done += length;
  }
  return buffer;
}

/* A type of the pieces' lengths, at the pieces' offsets or, for memory, with gaps between them. */
static MPI_Datatype pieces_type(int in_memory) {
  int lengths[kMaxPieces];
  MPI_Aint places[kMaxPieces];
  MPI_Aint at = 0;
  for (int i = 0; i < piece_count; ++i) {
    lengths[i] = pieces[i].length;
    places[i] = in_memory ? at : (MPI_Aint)pieces[i].offset;
    at += pieces[i].length + 7;
  }
  MPI_Datatype type;
  MPI(MPI_Type_create_hindexed(piece_count, lengths, places, MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  return type;
}

static int write_view(MPI_File file, const char* how, const unsigned char* buffer, int bytes) {
  MPI_Datatype type = MPI_BYTE, memory = MPI_BYTE;
  if (piece_count > 0) type = pieces_type(0);
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
  unsigned char* spread = NULL;
  int code;
  if (strcmp(how, "all-memory") == 0 && piece_count > 0) {
    memory = pieces_type(1);
    spread = allocate((size_t)bytes + 7 * (size_t)piece_count);
    int position = 0;
    MPI(MPI_Unpack(buffer, bytes, &position, spread, 1, memory, MPI_COMM_SELF));
    code = MPI_File_write_all(file, spread, 1, memory, MPI_STATUS_IGNORE);
    MPI(MPI_Type_free(&memory));
  } else if (strcmp(how, "view") == 0) {
    code = MPI_File_write(file, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  } else {
    code = MPI_File_write_all(file, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  free(spread);
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  if (piece_count > 0) MPI(MPI_Type_free(&type));
  return code;
}

static int write_contiguous(MPI_File file, const char* how, const unsigned char* buffer,
                            int bytes) {
  CHECK(piece_count <= 1);
  const MPI_Offset offset = piece_count == 1 ? pieces[0].offset : 0;
  if (strcmp(how, "all-at") == 0) {
    return MPI_File_write_at_all(file, offset, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  if (strcmp(how, "split") == 0) {
    const int code = MPI_File_write_at_all_begin(file, offset, buffer, bytes, MPI_BYTE);
    if (code != MPI_SUCCESS) return code;
    return MPI_File_write_at_all_end(file, buffer, MPI_STATUS_IGNORE);
  }
  CHECK(strcmp(how, "nonblocking") == 0);
  MPI_Request request;
  const int code = MPI_File_iwrite_at_all(file, offset, buffer, bytes, MPI_BYTE, &request);
  if (code != MPI_SUCCESS) return code;
  MPI_Status status;
  status.MPI_ERROR = MPI_SUCCESS;
  return MPI_Wait(&request, &status);
}

static void do_write(void) {
  const MPI_File file = *handle();
  const char* how = word();
  int bytes;
  unsigned char* buffer = load_pieces(&bytes);
  int code = MPI_SUCCESS;
  if (strcmp(how, "at") == 0) {
    size_t done = 0;
    for (int i = 0; i < piece_count && code == MPI_SUCCESS; ++i) {
      code = MPI_File_write_at(file, pieces[i].offset, buffer + done, pieces[i].length, MPI_BYTE,
                               MPI_STATUS_IGNORE);
      done += (size_t)pieces[i].length;
    }
  } else if (strstr(how, "view") != NULL || strcmp(how, "all-memory") == 0) {
    code = write_view(file, how, buffer, bytes);
  } else {
    code = write_contiguous(file, how, buffer, bytes);
  }
  result(code);
  free(buffer);
  piece_count = 0;
}

/* Puts what was read where it belongs in a plain file. */
static void put_plain(int plain, const unsigned char* buffer, MPI_Offset offset, MPI_Offset bytes) {
  for (MPI_Offset done = 0; done < bytes;) {
    const ssize_t wrote =
        pwrite(plain, buffer + done, (size_t)(bytes - done), (off_t)(offset + done));
    CHECK(wrote > 0);
    done += wrote;
  }
}

static int open_plain(const char* path, MPI_Offset bytes) {
  const int plain = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(plain >= 0);
  CHECK(ftruncate(plain, (off_t)bytes) == 0);
  return plain;
}

static void do_read(void) {
  const MPI_File* const which = handle();
  const MPI_File file = *which;
  const MPI_Comm comm = comms[which - handles];
  const char* path = word();
  const MPI_Offset block = number();
  MPI_Offset size;
  int code = MPI_File_get_size(file, &size);
  if (code != MPI_SUCCESS) {
    result(code);
    return;
  }
  const int plain = open_plain(path, size);
  int place, readers;
  MPI(MPI_Comm_rank(comm, &place));
  MPI(MPI_Comm_size(comm, &readers));
  MPI_Offset begin = size / readers * place + size % readers * place / readers;
  MPI_Offset bytes = size / readers * (place + 1) + size % readers * (place + 1) / readers - begin;
  if (block != 0) {
    /* Whole rounds of blocks; what is beyond the end comes back short. */
    begin = block * place;
    bytes = (size + block * readers - 1) / (block * readers) * block;
  }
  CHECK(bytes <= INT_MAX);
  unsigned char* buffer = allocate((size_t)bytes);
  MPI_Status status;
  if (block == 0) {
    code = MPI_File_read_at_all(file, begin, buffer, (int)bytes, MPI_BYTE, &status);
  } else {
    MPI_Datatype one, type;
    MPI(MPI_Type_contiguous((int)block, MPI_BYTE, &one));
    MPI(MPI_Type_create_resized(one, 0, (MPI_Aint)(block * readers), &type));
    MPI(MPI_Type_commit(&type));
    MPI(MPI_File_set_view(file, begin, MPI_BYTE, type, "native", MPI_INFO_NULL));
    code = MPI_File_read_all(file, buffer, (int)bytes, MPI_BYTE, &status);
    MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI(MPI_Type_free(&type));
    MPI(MPI_Type_free(&one));
  }
  if (code == MPI_SUCCESS && block == 0) {
    CHECK_INT(count_of(&status, MPI_BYTE), bytes);
    put_plain(plain, buffer, begin, bytes);
  } else if (code == MPI_SUCCESS) {
    MPI_Offset expected = 0;
    for (MPI_Offset at = begin; at < size; at += block * readers) {
      const MPI_Offset piece = size - at < block ? size - at : block;
      put_plain(plain, buffer + expected, at, piece);
      expected += piece;
    }
    CHECK_INT(count_of(&status, MPI_BYTE), expected);
  }
  free(buffer);
  CHECK(close(plain) == 0);
  result(code);
}

static void do_pieces(void) {
  const MPI_File file = *handle();
  const char* path = word();
  const MPI_Offset length = number();
  MPI_Offset size;
  int code = MPI_File_get_size(file, &size);
  if (code != MPI_SUCCESS) {
    result(code);
    return;
  }
  char map_path[PATH_MAX];
  snprintf(map_path, sizeof map_path, "%s.map", path);
  const int plain = open_plain(path, size);
  const int map = open_plain(map_path, (size + length - 1) / length);
  unsigned char* buffer = allocate((size_t)length);
  int failed = 0;
  for (MPI_Offset at = length * rank; at < size; at += length * ranks) {
    const MPI_Offset bytes = size - at < length ? size - at : length;
    MPI_Status status;
    code = MPI_File_read_at(file, at, buffer, (int)bytes, MPI_BYTE, &status);
    if (code == MPI_SUCCESS) {
      CHECK_INT(count_of(&status, MPI_BYTE), bytes);
      put_plain(plain, buffer, at, bytes);
      put_plain(map, (const unsigned char*)"\1", at / length, 1);
    } else if (!failed) {
      /* At once: MPICH remembers the texts of the latest errors only. */
      failed = 1;
      result(code);
    }
  }
  free(buffer);
  CHECK(close(plain) == 0 && close(map) == 0);
  if (!failed) result(MPI_SUCCESS);
}

/* The library is there only when the program runs. */
static void do_heal(void) {
  int (*heal)(MPI_Comm, const char*, unsigned, int, dedup_admin_healed*, dedup_error*);
  *(void**)&heal = dlsym(RTLD_DEFAULT, "dedup_admin_heal");
  CHECK(heal != NULL);
  const unsigned replication = (unsigned)number();
  const int flags = (int)number();
  dedup_admin_healed healed;
  dedup_error error;
  const int code = heal(MPI_COMM_WORLD, path_of(name), replication, flags, &healed, &error);
  CHECK_INT(error.error_class, code);
  char text[300];
  snprintf(text, sizeof text,
           "generation %llu checked %llu bad %llu made %llu lost %llu lowest %llu",
           (unsigned long long)healed.generation, (unsigned long long)healed.checked,
           (unsigned long long)healed.bad, (unsigned long long)healed.copies_made,
           (unsigned long long)healed.lost_chunks, (unsigned long long)healed.lowest_copies);
  put_result(class_name(code), code == MPI_SUCCESS ? text : error.text);
}

static void do_wait(void) {
  const char* path = word();
  const struct timespec pause = {0, 2000000};
  while (access(path, F_OK) != 0) nanosleep(&pause, NULL);
}

static void do_line(char* line) {
  int alone = 0;
  operation = strtok(line, " ");
  if (operation == NULL) return;
  if (operation[0] == '@') {
    if (atoi(operation + 1) != rank) return;
    alone = 1;
    operation = word();
  }
  static const char* const with_handle[] = {"write", "read", "pieces", "size", "sync", "close"};
  for (size_t i = 0; i < sizeof with_handle / sizeof with_handle[0]; ++i) {
    if (strcmp(operation, with_handle[i]) == 0 && !is_mine(operation + strlen(operation) + 1)) {
      piece_count = 0;
      return;
    }
  }
  if (strcmp(operation, "info") == 0) {
    do_info();
  } else if (strcmp(operation, "prefix") == 0) {
    do_prefix();
  } else if (strcmp(operation, "open") == 0) {
    do_open();
  } else if (strcmp(operation, "piece") == 0) {
    add_piece();
  } else if (strcmp(operation, "write") == 0) {
    do_write();
  } else if (strcmp(operation, "read") == 0) {
    do_read();
  } else if (strcmp(operation, "pieces") == 0) {
    do_pieces();
  } else if (strcmp(operation, "size") == 0) {
    const MPI_File file = *handle();
    result(MPI_File_set_size(file, number()));
  } else if (strcmp(operation, "sync") == 0) {
    result(MPI_File_sync(*handle()));
  } else if (strcmp(operation, "close") == 0) {
    result(MPI_File_close(handle()));
  } else if (strcmp(operation, "delete") == 0) {
    if (alone || rank == 0) result(MPI_File_delete(name, info));
  } else if (strcmp(operation, "barrier") == 0) {
    barrier();
  } else if (strcmp(operation, "part") == 0) {
    do_part();
  } else if (strcmp(operation, "meet") == 0) {
    if (part != MPI_COMM_NULL) MPI(MPI_Barrier(part));
  } else if (strcmp(operation, "pid") == 0) {
    do_pid();
  } else if (strcmp(operation, "leave") == 0) {
    result(MPI_SUCCESS);
    _exit(0);
  } else if (strcmp(operation, "kill") == 0) {
    do_kill();
  } else if (strcmp(operation, "die") == 0) {
    if (number() == rank) raise(SIGKILL);
  } else if (strcmp(operation, "touch") == 0) {
    if (!alone) barrier();
    if (alone || rank == 0) CHECK(close(open_plain(word(), 0)) == 0);
  } else if (strcmp(operation, "heal") == 0) {
    do_heal();
  } else if (strcmp(operation, "shell") == 0) {
    CHECK(system(strtok(NULL, "")) == 0);
  } else if (strcmp(operation, "abort") == 0) {
    MPI_Abort(MPI_COMM_WORLD, 5);
  } else if (strcmp(operation, "wait") == 0) {
    if (alone || rank == 0) do_wait();
    if (!alone) barrier();
  } else {
    FAIL("line %d: unknown operation %s", line_number, operation);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  /* With -disable-auto-cleanup MPICH's mpiexec sends it to all when a process has died, which makes
   * MPI's next call fail, on whatever communicator. */
  signal(SIGUSR1, SIG_IGN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CHECK(argc == 5);
  name = strdup(argv[1]);
  CHECK(name != NULL);
  info = MPI_INFO_NULL;
  for (int i = 0; i < kHandles; ++i) {
    handles[i] = MPI_FILE_NULL;
    comms[i] = MPI_COMM_NULL;
  }
  FILE* script = fopen(argv[2], "r");
  CHECK(script != NULL);
  data = open(argv[3], O_RDONLY);
  CHECK(data >= 0);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s.%d", argv[4], rank);
  results = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  CHECK(results >= 0);

  char* line = NULL;
  size_t space = 0;
  ssize_t length;
  while ((length = getline(&line, &space, script)) > 0) {
    ++line_number;
    if (line[length - 1] == '\n') line[length - 1] = '\0';
    do_line(line);
  }
  free(line);
  fclose(script);
  for (int i = 0; i < kHandles; ++i) CHECK(handles[i] == MPI_FILE_NULL);
  if (info != MPI_INFO_NULL) MPI(MPI_Info_free(&info));
  CHECK(close(data) == 0 && close(results) == 0);
  MPI_Finalize();
  return 0;
}
