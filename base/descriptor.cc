#include "base/descriptor.h"

#include <unistd.h>

namespace dedup {

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace dedup
