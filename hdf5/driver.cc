#include "hdf5/driver.h"

#include <hdf5.h>
#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/dedup.h"
#include "hdf5/call_context.h"
#include "hdf5/config.h"
#include "hdf5/error_stack.h"
#include "hdf5/mpi_session.h"
#include "hdf5/transfer.h"

namespace dedup::hdf5 {
namespace {

// Of those that HDF5 leaves to drivers that are not registered with its makers.
constexpr H5FD_class_value_t kDriverNumber = 474;
constexpr std::string_view kPrefix = "dedup:";
// What one rank alone writes at once becomes chunks right away from here on, without a log between:
// as in a collective call of the engine.
constexpr std::size_t kDumpedAtOnce = 256 * 1024;

constexpr auto kMaxAddress = static_cast<haddr_t>(std::numeric_limits<MPI_Offset>::max());

// ---- What a file is opened with
// ------------------------------------------------------------------

class Info {
 public:
  Info() = default;
  explicit Info(MPI_Info info) : info_(info) {}
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  ~Info() {
    if (info_ != MPI_INFO_NULL) PMPI_Info_free(&info_);
  }

  void set(const std::string& name, const std::string& value) {
    make();
    if (PMPI_Info_set(info_, name.c_str(), value.c_str()) == MPI_SUCCESS) return;
    throw std::runtime_error("HDF5_DRIVER_CONFIG: MPI does not take " + name + "=" + value);
  }
  void make() {
    if (info_ == MPI_INFO_NULL) PMPI_Info_create(&info_);
  }
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

// The ranks that have a file open.
class Communicator {
 public:
  Communicator(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_rank(comm_, &rank_);
    PMPI_Comm_size(comm_, &size_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { PMPI_Comm_free(&comm_); }

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

// What a file access property list says.
class Access {
 public:
  explicit Access(hid_t fapl) {
    be_in_mpi();
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    if (H5Pget_mpi_params(fapl, &comm, &info) < 0) {
      throw std::runtime_error("the file access property list has no MPI parameters");
    }
    info_ = std::make_unique<Info>(info);
    is_parallel_ = comm != MPI_COMM_NULL;
    if (!is_parallel_) PMPI_Comm_dup(MPI_COMM_SELF, &comm);
    comm_ = std::make_unique<Communicator>(comm);
    take_config(fapl);
    dedup_error error{};
    if (is_job_of_world_) dedup_job_begin();
    check(dedup_job_of(comm, &error), error);
  }

  // Whether the program gave a communicator: then HDF5 has its rules for parallel files.
  bool is_parallel() const { return is_parallel_; }
  const Communicator& comm() const { return *comm_; }
  MPI_Info info() const { return info_->get(); }
  MPI_Info hints() const { return hints_.get(); }
  std::unique_ptr<Communicator> take_comm() { return std::move(comm_); }
  std::unique_ptr<Info> take_info() { return std::move(info_); }

 private:
  // All ranks get to know if it is wrong on one.
  void take_config(hid_t fapl) {
    std::string wrong;
    try {
      if (is_parallel_) check_context();
      const Config config = parse_config(config_text(fapl));
      is_job_of_world_ = config.is_job_of_world;
      for (const auto& [name, value] : config.hints) hints_.set(name, value);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    int is_wrong = wrong.empty() ? 0 : 1;
    PMPI_Allreduce(MPI_IN_PLACE, &is_wrong, 1, MPI_INT, MPI_MAX, comm_->get());
    if (is_wrong == 0) return;
    throw std::runtime_error(wrong.empty() ? "another rank cannot open the file" : wrong);
  }

  static std::string config_text(hid_t fapl) {
    const ssize_t length = H5Pget_driver_config_str(fapl, nullptr, 0);
    if (length < 0) throw std::runtime_error("the driver's configuration cannot be read");
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    if (length > 0) H5Pget_driver_config_str(fapl, text.data(), text.size());
    text.resize(static_cast<std::size_t>(length));
    return text;
  }

  std::unique_ptr<Info> info_;
  std::unique_ptr<Communicator> comm_;
  Info hints_;
  bool is_parallel_ = false;
  bool is_job_of_world_ = false;
};

std::string path_of(const char* name) {
  const std::string_view text = name;
  const bool has_prefix = text.starts_with(kPrefix);
  const std::unique_ptr<char, decltype(&std::free)> path(
      dedup_absolute_path(name + (has_prefix ? kPrefix.size() : 0)), &std::free);
  if (!path) {
    throw std::runtime_error(std::string(name) + ": no memory, or the working directory is gone");
  }
  return path.get();
}

// ---- An open file
// --------------------------------------------------------------------------------

struct File {
  H5FD_t shared{};  // HDF5's; first
  // Where HDF5's own driver has its file: H5Fset_mpi_atomicity takes every parallel driver's files
  // for its own, and gets an error this way.
  MPI_File no_mpi_file = MPI_FILE_NULL;
  std::unique_ptr<Communicator> comm;
  std::unique_ptr<Info> info;
  bool is_parallel = false;
  dedup_file* engine = nullptr;
  haddr_t allocated = 0;  // HDF5's end of addresses
  haddr_t end = 0;        // of the data that this rank knows of
};

File& file_of(H5FD_t* file) {
  return *reinterpret_cast<File*>(file);
}
const File& file_of(const H5FD_t* file) {
  return *reinterpret_cast<const File*>(file);
}

// Collective: the size as rank 0 sees it, when all have done what they did before.
haddr_t common_size(const File& file) {
  struct {
    std::int64_t size = 0;
    std::int64_t failed = 0;
  } at_root;
  dedup_error error{};
  if (file.comm->size() > 1) PMPI_Barrier(file.comm->get());
  if (file.comm->rank() == 0) {
    MPI_Offset size = 0;
    at_root.failed = dedup_get_size(file.engine, &size, &error) == MPI_SUCCESS ? 0 : 1;
    at_root.size = size;
  }
  if (file.comm->size() > 1) {
    PMPI_Bcast(&at_root, 2, MPI_INT64_T, 0, file.comm->get());
  }
  if (at_root.failed == 0) return static_cast<haddr_t>(at_root.size);
  throw std::runtime_error(file.comm->rank() == 0 ? error.text
                                                  : "rank 0 cannot get the file's size");
}

void set_size(File& file, haddr_t size) {
  dedup_error error{};
  check(dedup_set_size(file.engine, static_cast<MPI_Offset>(size), &error), error);
  file.end = size;
}

void close_file(std::unique_ptr<File> file) {
  dedup_error error{};
  const int result = dedup_close(file->engine, &error);
  file_closed();
  check(result, error);
}

H5FD_t* open(const char* name, unsigned flags, hid_t fapl, haddr_t /*max_address*/) {
  return guarded("open", static_cast<H5FD_t*>(nullptr), [&]() -> H5FD_t* {
    Access access(fapl);
    int mode = (flags & H5F_ACC_RDWR) != 0 ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
    if ((flags & H5F_ACC_CREAT) != 0) mode |= MPI_MODE_CREATE;
    if ((flags & H5F_ACC_EXCL) != 0) mode |= MPI_MODE_EXCL;
    const std::string path = path_of(name);
    auto file = std::make_unique<File>();
    dedup_error error{};
    check(dedup_open(access.comm().get(), path.c_str(), mode, access.info(), access.hints(),
                     &file->engine, &error),
          error);
    file_opened();
    file->is_parallel = access.is_parallel();
    file->comm = access.take_comm();
    file->info = access.take_info();
    try {
      file->end = common_size(*file);
      if (file->end > 0 && (flags & H5F_ACC_TRUNC) != 0) set_size(*file, 0);
    } catch (...) {
      try {
        close_file(std::move(file));
      } catch (const std::exception&) {  // the first error is the one to be told
      }
      throw;
    }
    // HDF5 wants one, and shows it to the program.
    file->info->make();
    dedup_get_info(file->engine, file->info->get());
    return &file.release()->shared;
  });
}

herr_t close(H5FD_t* shared) {
  return guarded("close", herr_t{-1}, [&] {
    close_file(std::unique_ptr<File>(&file_of(shared)));
    return 0;
  });
}

herr_t remove(const char* name, hid_t fapl) {
  return guarded("delete", herr_t{-1}, [&] {
    const Access access(fapl);
    const std::string path = path_of(name);
    dedup_error error{};
    int result = MPI_SUCCESS;
    PMPI_Barrier(access.comm().get());
    if (access.comm().rank() == 0) result = dedup_delete(path.c_str(), access.hints(), &error);
    PMPI_Bcast(&result, 1, MPI_INT, 0, access.comm().get());
    if (access.comm().rank() != 0 && result != MPI_SUCCESS) {
      throw std::runtime_error(path + ": rank 0 cannot delete it");
    }
    check(result, error);
    return 0;
  });
}

herr_t query(const H5FD_t* shared, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA |
           H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  // Asked of the driver itself HDF5 looks for a communicator, which may be none.
  if (shared == nullptr || file_of(shared).is_parallel) {
    *flags |= H5FD_FEAT_HAS_MPI;
  } else {
    *flags |= H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  }
  return 0;
}

// ---- Addresses
// -----------------------------------------------------------------------------------

haddr_t get_eoa(const H5FD_t* shared, H5FD_mem_t /*type*/) {
  return file_of(shared).allocated;
}

herr_t set_eoa(H5FD_t* shared, H5FD_mem_t /*type*/, haddr_t address) {
  file_of(shared).allocated = address;
  return 0;
}

haddr_t get_eof(const H5FD_t* shared, H5FD_mem_t /*type*/) {
  return file_of(shared).end;
}

// ---- Reading and writing
// -------------------------------------------------------------------------

// Arrays of sizes stop with a 0: all that follow are as the one before.
template <typename Memory>
std::vector<Piece> pieces_of(std::uint32_t count, const haddr_t* addresses,
                             const std::size_t* sizes, Memory* const* buffers) {
  std::vector<Piece> pieces;
  pieces.reserve(count);
  bool goes_on = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    goes_on = goes_on && sizes[i] != 0;
    const std::size_t bytes = goes_on ? sizes[i] : pieces.back().bytes;
    pieces.push_back(
        {addresses[i], bytes, const_cast<void*>(static_cast<const void*>(buffers[i]))});
  }
  return pieces;
}

// Of a file of one rank alone HDF5 knows nothing of MPI.
CallContext context_of(const File& file, std::size_t bytes) {
  if (file.is_parallel) return call_context();
  CallContext context;
  context.is_collective = bytes >= kDumpedAtOnce;
  return context;
}

dedup_how how(const CallContext& context) {
  return context.is_collective ? DEDUP_COLLECTIVE : DEDUP_INDEPENDENT;
}

void write(File& file, const Transfer& transfer, const CallContext& context) {
  transfer.write(file.engine, how(context));
  file.end = std::max(file.end, transfer.end());
}

herr_t read(H5FD_t* shared, H5FD_mem_t type, hid_t /*dxpl*/, haddr_t address, std::size_t bytes,
            void* buffer) {
  return guarded("read", herr_t{-1}, [&] {
    File& file = file_of(shared);
    // HDF5 reads what it keeps about the data on each rank by itself.
    const CallContext context = type == H5FD_MEM_DRAW ? context_of(file, bytes) : CallContext{};
    if (context.is_bytes()) {
      Transfer({{address, bytes, buffer}}).read(file.engine, how(context));
    } else {
      Transfer(address, context.file, buffer, bytes, context.memory)
          .read(file.engine, how(context));
    }
    return 0;
  });
}

herr_t write(H5FD_t* shared, H5FD_mem_t /*type*/, hid_t /*dxpl*/, haddr_t address,
             std::size_t bytes, const void* data) {
  return guarded("write", herr_t{-1}, [&] {
    File& file = file_of(shared);
    auto* const buffer = const_cast<void*>(data);
    const CallContext context = context_of(file, bytes);
    if (context.is_bytes()) {
      write(file, Transfer({{address, bytes, buffer}}), context);
    } else {
      write(file, Transfer(address, context.file, buffer, bytes, context.memory), context);
    }
    return 0;
  });
}

herr_t read_vector(H5FD_t* shared, hid_t /*dxpl*/, std::uint32_t count, H5FD_mem_t* /*types*/,
                   haddr_t* addresses, std::size_t* sizes, void** buffers) {
  return guarded("read", herr_t{-1}, [&] {
    const File& file = file_of(shared);
    const Transfer transfer(pieces_of(count, addresses, sizes, buffers));
    transfer.read(file.engine, how(context_of(file, transfer.bytes())));
    return 0;
  });
}

herr_t write_vector(H5FD_t* shared, hid_t /*dxpl*/, std::uint32_t count, H5FD_mem_t* /*types*/,
                    haddr_t* addresses, std::size_t* sizes, const void** buffers) {
  return guarded("write", herr_t{-1}, [&] {
    File& file = file_of(shared);
    const Transfer transfer(pieces_of(count, addresses, sizes, buffers));
    write(file, transfer, context_of(file, transfer.bytes()));
    return 0;
  });
}

// ---- Commit and size
// -----------------------------------------------------------------------------

herr_t flush(H5FD_t* shared, hid_t /*dxpl*/, hbool_t is_closing) {
  return guarded("flush", herr_t{-1}, [&] {
    if (is_closing) return 0;  // close commits
    dedup_error error{};
    check(dedup_sync(file_of(shared).engine, &error), error);
    return 0;
  });
}

// Before HDF5 flushes and closes: the file is as long as what is allocated in it.
herr_t truncate(H5FD_t* shared, hid_t /*dxpl*/, hbool_t /*is_closing*/) {
  return guarded("truncate", herr_t{-1}, [&] {
    File& file = file_of(shared);
    if (common_size(file) != file.allocated) set_size(file, file.allocated);
    return 0;
  });
}

// ---- What HDF5 asks of a parallel driver
// ---------------------------------------------------------

herr_t control(H5FD_t* shared, std::uint64_t operation, std::uint64_t flags, const void* /*input*/,
               void** output) {
  const File& file = file_of(shared);
  switch (operation) {
    case H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE:
      *static_cast<MPI_Comm*>(*output) = file.comm->get();
      return 0;
    case H5FD_CTL_GET_MPI_INFO_OPCODE:
      *static_cast<MPI_Info*>(*output) = file.info->get();
      return 0;
    case H5FD_CTL_GET_MPI_RANK_OPCODE:
      *static_cast<int*>(*output) = file.comm->rank();
      return 0;
    case H5FD_CTL_GET_MPI_SIZE_OPCODE:
      *static_cast<int*>(*output) = file.comm->size();
      return 0;
    case H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE:
      // Whoever reads after a write sees it, without a sync.
      *static_cast<hbool_t*>(*output) = false;
      return 0;
    default:
      if ((flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG) == 0) return 0;
      push_error("control", "operation " + std::to_string(operation) + " is unknown");
      return -1;
  }
}

}  // namespace

const H5FD_class_t driver_class = {
    .version = H5FD_CLASS_VERSION,
    .value = kDriverNumber,
    .name = kDriverName,
    .maxaddr = kMaxAddress,
    .fc_degree = H5F_CLOSE_SEMI,
    .terminate = nullptr,
    .sb_size = nullptr,
    .sb_encode = nullptr,
    .sb_decode = nullptr,
    .fapl_size = 0,
    .fapl_get = nullptr,
    .fapl_copy = nullptr,
    .fapl_free = nullptr,
    .dxpl_size = 0,
    .dxpl_copy = nullptr,
    .dxpl_free = nullptr,
    .open = open,
    .close = close,
    .cmp = nullptr,  // as in HDF5's parallel driver: one open file may be opened once more
    .query = query,
    .get_type_map = nullptr,
    .alloc = nullptr,
    .free = nullptr,
    .get_eoa = get_eoa,
    .set_eoa = set_eoa,
    .get_eof = get_eof,
    .get_handle = nullptr,
    .read = read,
    .write = write,
    .read_vector = read_vector,
    .write_vector = write_vector,
    .read_selection = nullptr,  // HDF5 makes pieces of them
    .write_selection = nullptr,
    .flush = flush,
    .truncate = truncate,
    .lock = nullptr,  // the engine has its own
    .unlock = nullptr,
    .del = remove,
    .ctl = control,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

}  // namespace dedup::hdf5
