// Part of the C interface: what a file is called by all ranks, whatever their working directories.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "engine/dedup.h"

namespace {

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using CString = std::unique_ptr<char, Free>;

// Without . and .. and double slashes, by its text alone.
std::string normalised(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else if (!part.empty() && part != ".") {
      out.append("/").append(part);
    }
  }
  return out.empty() ? "/" : out;
}

std::optional<std::string> with_links_followed(const std::string& path) {
  const CString real(::realpath(path.c_str(), nullptr));
  if (!real) return std::nullopt;
  return real.get();
}

std::string absolute(const std::string& path) {
  // Where something is, all links count, also one in the last part.
  if (const auto whole = with_links_followed(path)) return *whole;
  // .. behind a link is not the directory that the text names, so the directory part is resolved
  // first, if the last part is a plain name.
  const std::size_t slash = path.rfind('/');
  const std::string last = path.substr(slash + 1);
  if (!last.empty() && last != "." && last != "..") {
    if (const auto directory = with_links_followed(slash == 0 ? "/" : path.substr(0, slash))) {
      return (*directory == "/" ? "" : *directory) + "/" + last;
    }
  }
  return normalised(path);
}

}  // namespace

char* dedup_absolute_path(const char* name) {
  try {
    std::string path = name;
    if (!path.empty() && path[0] != '/') {
      const CString here(::getcwd(nullptr, 0));
      if (!here) return nullptr;
      path = std::string(here.get()) + "/" + path;
    }
    return ::strdup(path.empty() ? "" : absolute(path).c_str());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
