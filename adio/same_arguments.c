/* Collective calls whose arguments must be equal on all ranks: a difference is an error on all of
 * them. ROMIO goes on with some ranks only, and these wait for the others for ever, or looks at
 * nothing.
 *
 * ROMIO's functions have these names as weak ones; PMPI_ leads to ROMIO as it is.
 */
#include "adio/ad_dedup.h"
#include "mpioimpl.h"

/* Names and values, one a line, as text. */
struct arguments {
  char text[1024];
};

static void add(struct arguments* arguments, const char* name, const char* value) {
  const size_t used = strlen(arguments->text);
  snprintf(arguments->text + used, sizeof arguments->text - used, "%s=%s\n", name, value);
}

static void add_number(struct arguments* arguments, const char* name, MPI_Offset value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  add(arguments, name, text);
}

static int is_ours(MPI_File file) {
  return file != MPI_FILE_NULL && file->cookie == ADIOI_FILE_COOKIE &&
         file->fns == &ADIO_DEDUP_operations;
}

/* Collective over the file's ranks. *any: in: of this rank; out: of some rank. */
static int check(MPI_File file, const char* call, const struct arguments* arguments, int* any) {
  dedup_error error;
  if (dedup_same_arguments(file->comm, file->filename, call, arguments->text, any, &error) ==
      MPI_SUCCESS) {
    return MPI_SUCCESS;
  }
  return MPIO_Err_return_file(file, ad_dedup_error_code(call, __LINE__, &error));
}

static int check_number(MPI_File file, const char* call, const char* name, MPI_Offset value) {
  struct arguments arguments = {""};
  int any = 0;
  add_number(&arguments, name, value);
  return check(file, call, &arguments, &any);
}

static void add_mode(struct arguments* arguments, int mode) {
  static const struct {
    int flag;
    const char* name;
  } kFlags[] = {{MPI_MODE_RDONLY, " RDONLY"},
                {MPI_MODE_RDWR, " RDWR"},
                {MPI_MODE_WRONLY, " WRONLY"},
                {MPI_MODE_CREATE, " CREATE"},
                {MPI_MODE_EXCL, " EXCL"},
                {MPI_MODE_DELETE_ON_CLOSE, " DELETE_ON_CLOSE"},
                {MPI_MODE_UNIQUE_OPEN, " UNIQUE_OPEN"},
                {MPI_MODE_SEQUENTIAL, " SEQUENTIAL"},
                {MPI_MODE_APPEND, " APPEND"}};
  char text[128] = "";
  for (size_t i = 0; i < sizeof kFlags / sizeof kFlags[0]; ++i) {
    const size_t used = strlen(text);
    if (mode & kFlags[i].flag) snprintf(text + used, sizeof text - used, "%s", kFlags[i].name);
  }
  add(arguments, "access mode", text[0] == '\0' ? "none" : text + 1);
}

/* Every open, since some ranks may mean another driver. The names are compared by dedup_open. */
int MPI_File_open(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file) {
  int between_groups = 1;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &between_groups) != MPI_SUCCESS ||
      between_groups) {
    return PMPI_File_open(comm, name, mode, info, file);
  }
  struct arguments arguments = {""};
  dedup_error error;
  int ours = ad_dedup_is_name(name);
  add(&arguments, "driver", ours ? "dedup:" : "another");
  add_mode(&arguments, mode);
  if (dedup_same_arguments(comm, name == NULL ? "" : name, "MPI_File_open", arguments.text, &ours,
                           &error) != MPI_SUCCESS) {
    return MPIO_Err_return_file(MPI_FILE_NULL,
                                ad_dedup_error_code("MPI_File_open", __LINE__, &error));
  }
  return PMPI_File_open(comm, name, mode, info, file);
}

int MPI_File_set_size(MPI_File file, MPI_Offset size) {
  if (is_ours(file)) {
    const int error_code = check_number(file, "MPI_File_set_size", "size", size);
    if (error_code != MPI_SUCCESS) return error_code;
  }
  return PMPI_File_set_size(file, size);
}

int MPI_File_preallocate(MPI_File file, MPI_Offset size) {
  if (is_ours(file)) {
    const int error_code = check_number(file, "MPI_File_preallocate", "size", size);
    if (error_code != MPI_SUCCESS) return error_code;
  }
  return PMPI_File_preallocate(file, size);
}

int MPI_File_set_atomicity(MPI_File file, int flag) {
  if (is_ours(file)) {
    const int error_code = check_number(file, "MPI_File_set_atomicity", "flag", flag != 0);
    if (error_code != MPI_SUCCESS) return error_code;
  }
  return PMPI_File_set_atomicity(file, flag);
}

static const char* whence_name(int whence) {
  switch (whence) {
    case MPI_SEEK_SET:
      return "MPI_SEEK_SET";
    case MPI_SEEK_CUR:
      return "MPI_SEEK_CUR";
    case MPI_SEEK_END:
      return "MPI_SEEK_END";
    default:
      return "unknown";
  }
}

int MPI_File_seek_shared(MPI_File file, MPI_Offset offset, int whence) {
  if (is_ours(file)) {
    struct arguments arguments = {""};
    int any = 0;
    add_number(&arguments, "offset", offset);
    add(&arguments, "whence", whence_name(whence));
    const int error_code = check(file, "MPI_File_seek_shared", &arguments, &any);
    if (error_code != MPI_SUCCESS) return error_code;
  }
  return PMPI_File_seek_shared(file, offset, whence);
}

/* The displacement and the filetype are each rank's own, but one that ROMIO refuses on one rank
 * would have the others wait. */
static void add_view(struct arguments* arguments, MPI_Offset displacement, MPI_Datatype etype,
                     MPI_Datatype filetype, const char* representation) {
  MPI_Count lower_bound = 0, extent = 0, etype_size = 0, size = 0;
  add(arguments, "displacement",
      displacement == MPI_DISPLACEMENT_CURRENT ? "MPI_DISPLACEMENT_CURRENT"
      : displacement < 0                       ? "negative"
                                               : "a position");
  if (etype == MPI_DATATYPE_NULL) {
    add(arguments, "etype", "MPI_DATATYPE_NULL");
  } else {
    PMPI_Type_get_extent_x(etype, &lower_bound, &extent);
    PMPI_Type_size_x(etype, &etype_size);
    add_number(arguments, "extent of the etype", extent);
  }
  if (filetype == MPI_DATATYPE_NULL) {
    add(arguments, "filetype", "MPI_DATATYPE_NULL");
  } else {
    PMPI_Type_size_x(filetype, &size);
    add(arguments, "filetype",
        etype_size != 0 && size % etype_size != 0 ? "no whole number of etypes" : "etypes");
  }
  char name[MPI_MAX_DATAREP_STRING + 1];
  snprintf(name, sizeof name, "%s", representation == NULL ? "NULL" : representation);
  add(arguments, "datarep", name);
}

/* ROMIO drops the verdict on hints that come with a view, so they are judged here. Most views come
 * without on all ranks. */
int MPI_File_set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                      MPI_Datatype filetype, const char* representation, MPI_Info info) {
  if (!is_ours(file)) {
    return PMPI_File_set_view(file, displacement, etype, filetype, representation, info);
  }
  struct arguments arguments = {""};
  int hints_given = info != MPI_INFO_NULL;
  add_view(&arguments, displacement, etype, filetype, representation);
  int error_code = check(file, "MPI_File_set_view", &arguments, &hints_given);
  if (error_code != MPI_SUCCESS) return error_code;
  if (hints_given) {
    error_code = ad_dedup_take_hints(file, info);
    if (error_code != MPI_SUCCESS) return MPIO_Err_return_file(file, error_code);
  }
  ad_dedup(file)->hints_taken = 1;
  error_code = PMPI_File_set_view(file, displacement, etype, filetype, representation, info);
  ad_dedup(file)->hints_taken = 0;
  return error_code;
}
