#include "device_memory_cuda.h"

#include <algorithm>
#include <new>
#include <sstream>

#include "../cuda/device.h"
#include "../cuda/device_state.h"
#include "check.h"

// Text of torch's last error in this thread: exists since torch 2.13, null in
// older versions.
extern "C" __attribute__((weak)) const char*
torch_exception_get_what_without_backtrace();

namespace gsample {

namespace {

thread_local MemoryScope* scope_of_thread = nullptr;

// Half the time of torch::stable::new_empty, which boxes its arguments.
Tensor empty_on_device(const Tensor& like,
                       const std::vector<int64_t>& sizes,
                       ScalarType dtype) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  int32_t device_type;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device_type));
  return empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(),
                       strides.data(), dtype, device_type,
                       like.get_device_index());
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Torch's error text, or an empty string.
std::string torch_error() {
  if (torch_exception_get_what_without_backtrace == nullptr)
    return "";
  const char* text = torch_exception_get_what_without_backtrace();
  return text == nullptr ? "" : first_line(text);
}

// Matches the texts of torch's allocators; other CUDA errors mention memory,
// too.
bool is_lack(const std::string& cause) {
  return cause.find("out of memory") != std::string::npos ||
         cause.find("allocate") != std::string::npos;
}

std::string with_cause(const std::string& cause) {
  return cause.empty() ? "" : "; torch says: " + cause;
}

// The fault, if it was not a lack of memory. Torch keeps its error text since
// 2.13; in older versions the CUDA runtime decides.
std::string other_fault(const std::string& torch_said, int64_t bytes) {
  const DeviceState state = device_state();
  if (!state.fault.empty())
    return "; CUDA says: " + state.fault;
  if (!torch_said.empty())
    return is_lack(torch_said) ? "" : with_cause(torch_said);
  // Torch rounds sizes up, and its sort needs memory, too.
  constexpr int64_t kRoom = 8, kBlock = int64_t{64} << 20;
  if (bytes > (state.free_bytes - kBlock) / kRoom)
    return "";
  return "; CUDA reports no fault, and " + std::to_string(state.free_bytes) +
         " bytes are free: torch's log has the cause";
}

}  // namespace

NoMemory::NoMemory(std::string op, std::string asked, std::string cause)
    : std::runtime_error(op + ": out of memory on the device for " + asked +
                         with_cause(cause)),
      op_(std::move(op)),
      asked_(std::move(asked)),
      cause_(std::move(cause)) {}

NoMemory::NoMemory(const std::string& text, const NoMemory& of)
    : std::runtime_error(text),
      op_(of.op_),
      asked_(of.asked_),
      cause_(of.cause_) {}

NoMemory NoMemory::in_all(int64_t m,
                          const char* of_m,
                          int64_t n,
                          const char* of_n,
                          int64_t words) const {
  std::ostringstream text;
  text << op_ << ": out of memory on the device for up to " << m << " " << of_m
       << " and " << n << " " << of_n << ", about "
       << (words * int64_t{sizeof(int64_t)} >> 20) << " MiB, at " << asked_
       << "; use fewer seeds or smaller fan-outs" << with_cause(cause_);
  return NoMemory(text.str(), *this);
}

MemoryScope::MemoryScope(const char* op) : op_(op), outer_(scope_of_thread) {
  scope_of_thread = this;
}

MemoryScope::~MemoryScope() {
  scope_of_thread = outer_;
}

MemoryScope* MemoryScope::current() {
  return scope_of_thread;
}

void raise_lack(const char* what,
                int64_t elements,
                int64_t bytes,
                const std::exception& error) {
  const bool simulated = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const std::string cause = simulated ? "" : torch_error();
  const std::string fault = simulated ? "" : other_fault(cause, bytes);
  const MemoryScope* scope = MemoryScope::current();
  const std::string op = scope == nullptr ? "torch_gsample" : scope->op();
  if (!fault.empty())
    throw std::runtime_error(op + ": no memory was allocated for '" + what +
                             "' (" + std::to_string(bytes) + " bytes)" + fault);
  throw NoMemory(op,
                 std::string("'") + what + "' (" + std::to_string(elements) +
                     " elements, " + std::to_string(bytes) + " bytes, after " +
                     std::to_string(scope == nullptr ? 0 : scope->bytes()) +
                     " bytes that this call asked for)",
                 cause);
}

Tensor device_tensor(const char* what,
                     const Tensor& like,
                     const std::vector<int64_t>& sizes,
                     ScalarType dtype,
                     int64_t element_bytes) {
  int64_t elements = 1;
  for (const int64_t size : sizes)
    elements = multiply_sizes(elements, size);
  Tensor out = allocate(what, elements, element_bytes,
                        [&] { return empty_on_device(like, sizes, dtype); });
  poison(out.mutable_data_ptr(), elements * element_bytes);
  return out;
}

Tensor device_vector(const char* what,
                     const Tensor& like,
                     int64_t size,
                     ScalarType dtype) {
  const bool narrow = dtype == ScalarType::Int || dtype == ScalarType::Float;
  return device_tensor(what, like, {size}, dtype, narrow ? 4 : 8);
}

Tensor device_zeros(const char* what, const Tensor& like, int64_t size) {
  return allocate(what, size, sizeof(int64_t), [&] {
    return torch::stable::new_zeros(like, {size}, ScalarType::Long);
  });
}

Tensor device_clone(const char* what, const Tensor& tensor, int64_t size) {
  Tensor all = tensor;
  const Tensor part = torch::stable::narrow(all, 0, 0, size);
  return allocate(what, size, part.element_size(),
                  [&] { return torch::stable::clone(part); });
}

}  // namespace gsample
