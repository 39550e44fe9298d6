// What a selection of columns reports: besides faults and its size, how long
// the longest column is that many weighted draws are made in.
#pragma once

#include "device_cuda.h"

namespace gsample {

class ColumnsReport {
 public:
  struct Found {
    Report report;
    int64_t longest;
  };

  explicit ColumnsReport(const Tensor& like)
      : memory_(device_zeros("report", like, sizeof(Found) / sizeof(int64_t))) {
  }

  Report* get() { return &found()->report; }
  int64_t* longest() { return &found()->longest; }
  // Waits for the kernel.
  Found read(const DeviceScope& scope) {
    Found out;
    copy_to_host(&out, found(), sizeof out, scope.stream());
    return out;
  }

 private:
  Found* found() {
    return reinterpret_cast<Found*>(memory_.mutable_data_ptr<int64_t>());
  }

  Tensor memory_;
};

}  // namespace gsample
