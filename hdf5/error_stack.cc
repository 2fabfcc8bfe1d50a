#include "hdf5/error_stack.h"

#include <hdf5.h>

namespace dedup::hdf5 {

void push_error(const char* where, const std::string& text) {
  H5Epush2(H5E_DEFAULT, "libhdf5_dedup.so", where, 0, H5E_ERR_CLS, H5E_VFL, H5E_CANTOPERATE, "%s",
           text.c_str());
}

}  // namespace dedup::hdf5
