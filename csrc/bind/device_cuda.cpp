// torch's current stream. The extension does not link against libtorch_cuda, so
// that it loads on machines without it; on a machine with a GPU torch has
// loaded libtorch_cuda long before the first CUDA operator.
#include "device_cuda.h"

#include <dlfcn.h>

namespace gsample {

namespace {

using CurrentStream = int32_t (*)(int32_t device, void** stream);

CurrentStream find_current_stream() {
  void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr
             ? nullptr
             : reinterpret_cast<CurrentStream>(
                   dlsym(library, "aoti_torch_get_current_cuda_stream"));
}

}  // namespace

DeviceScope::DeviceScope(const char* op, const Tensor& like) : memory_(op) {
  static const CurrentStream current_stream = find_current_stream();
  STD_TORCH_CHECK(current_stream != nullptr, op,
                  ": torch's CUDA library was not found; is this a build of "
                  "torch for CUDA?");
  const int32_t device = like.get_device_index();
  guard_ = std::make_unique<torch::stable::accelerator::DeviceGuard>(device);
  STD_TORCH_CHECK(current_stream(device, &stream_) == 0, op,
                  ": torch has no current stream on device ", device);
  host_reads_.start(stream_);
}

}  // namespace gsample
