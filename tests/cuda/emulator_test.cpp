// Small kernels, some of them wrong: prints for each what the emulator says.
//   emulator_test CASE SEED
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <string>
#include <vector>

#include "cuda/launch.cuh"

using namespace gsample;

namespace {

constexpr uint32_t kFull = ~0u;

struct Values {
  uint32_t value[256];
};

struct Other {
  char bytes[1028];
};

struct Large {
  char bytes[50000];
};

__device__ uint32_t lane() {
  return threadIdx.x % 32;
}

__global__ void right(uint32_t* out, uint32_t* count) {
  GSAMPLE_SHARED(Values, shared);
  const uint32_t t = threadIdx.x, n = blockDim.x;
  shared.value[t] = t;
  __syncthreads();
  uint32_t sum = shared.value[n - 1 - t];
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(kFull, sum, step);
  const uint32_t half = lane() < 16 ? 0xFFFFu : 0xFFFF0000u;
  const uint32_t votes = __popc(__ballot_sync(half, t % 3 == 0));
  const uint32_t equal = __popc(__match_any_sync(kFull, lane() / 3));
  const uint32_t before = __shfl_up_sync(kFull, t, 1, 8);
  const uint32_t after = __shfl_down_sync(kFull, t, 1, 8);
  const uint32_t first = __shfl_sync(kFull, t, 0, 8);
  const bool all = __all_sync(half, t < n), any = __any_sync(half, t >= n);
  const uint32_t even = __syncthreads_count(t % 2 == 0);
  Atomic<uint32_t>(*count).fetch_add(even, kRelaxed);
  grid_barrier();
  uint32_t* row = out + 9 * (blockIdx.x * n + t);
  row[0] = sum;
  row[1] = votes;
  row[2] = equal;
  row[3] = before;
  row[4] = after;
  row[5] = first;
  row[6] = all && !any;
  row[7] = even;
  row[8] = Atomic<uint32_t>(*count).load(kRelaxed);
}

__global__ void early_exit(uint32_t*, uint32_t*) {
  if (threadIdx.x >= 40)
    return;
  __syncthreads();
}

__global__ void divergent_barrier(uint32_t*, uint32_t*) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void divergent_grid_barrier(uint32_t*, uint32_t*) {
  if (blockIdx.x == 0)
    grid_barrier();
  else
    grid_barrier();
}

__global__ void barrier_without_some(uint32_t*, uint32_t* flag) {
  if (threadIdx.x < 32)
    __syncthreads();
  else if (threadIdx.x < 40)
    grid_barrier();
  (void)flag;
}

__global__ void divergent_collective(uint32_t* out, uint32_t*) {
  if (lane() < 16)
    out[0] = __ballot_sync(kFull, 1);
  else
    out[0] = __ballot_sync(kFull, 0);
}

__global__ void other_collective(uint32_t* out, uint32_t*) {
  // clang-format off
  out[0] = lane() < 16 ? __ballot_sync(kFull, 1) : __any_sync(kFull, 1);
  // clang-format on
}

__global__ void mask_without_caller(uint32_t* out, uint32_t*) {
  out[0] = __ballot_sync(0xFFFFu, 1);
}

__global__ void mask_names_who_left(uint32_t* out, uint32_t*) {
  if (lane() >= 20)
    return;
  out[0] = __ballot_sync(kFull, 1);
}

__global__ void mask_names_nobody(uint32_t*, uint32_t*) {
  if (threadIdx.x >= 32)  // the second warp has 16 lanes
    __syncwarp();
}

__global__ void overlapping_masks(uint32_t* out, uint32_t*) {
  out[0] = __ballot_sync(lane() < 16 ? 0xFFFFu : 0xFFFFFF00u, 1);
}

__global__ void shuffle_from_outside(uint32_t* out, uint32_t*) {
  if (lane() < 16)
    out[0] = __shfl_sync(0xFFFFu, 1u, 20);
}

__global__ void livelock(uint32_t*, uint32_t* flag) {
  while (Atomic<uint32_t>(*flag).load(kAcquire) == 0)
    back_off();
}

__global__ void waits_for_unstarted(uint32_t*, uint32_t* flag) {
  if (blockIdx.x == 5)
    Atomic<uint32_t>(*flag).store(1, kRelease);
  while (Atomic<uint32_t>(*flag).load(kAcquire) == 0)
    back_off();
}

__global__ void barrier_of_plain_launch(uint32_t*, uint32_t*) {
  grid_barrier();
}

__global__ void large_shared(uint32_t*, uint32_t*) {
  GSAMPLE_SHARED(Large, shared);
  shared.bytes[0] = 0;
}

__global__ void two_shared(uint32_t*, uint32_t*) {
  GSAMPLE_SHARED(Values, one);
  GSAMPLE_SHARED(Other, two);
  one.value[0] = two.bytes[0];
}

__global__ void poison(uint32_t* out, uint32_t*) {
  GSAMPLE_SHARED(Values, shared);
  out[blockIdx.x] = shared.value[threadIdx.x];
}

// For the sanitizers.
__global__ void race(uint32_t* out, uint32_t*) {
  if (threadIdx.x == 0)
    out[0] = 1;
  if (threadIdx.x == 40)
    out[0] += 1;
}

__global__ void relaxed_publish(uint32_t* out, uint32_t* flag) {
  if (threadIdx.x == 0) {
    out[0] = 7;
    Atomic<uint32_t>(*flag).store(1, kRelaxed);
  } else {
    while (Atomic<uint32_t>(*flag).load(kAcquire) == 0)
      back_off();
    out[threadIdx.x] = out[0];
  }
}

__global__ void shuffle_orders_nothing(uint32_t* out, uint32_t*) {
  if (threadIdx.x >= 32)
    return;
  if (lane() == 0)
    out[0] = 7;
  const uint32_t from = __shfl_sync(kFull, 1u, 0);
  out[threadIdx.x + 1] = lane() == 1 ? out[0] + from : 0;
}

__global__ void beyond_shared(uint32_t* out, uint32_t*) {
  GSAMPLE_SHARED(Values, shared);
  out[threadIdx.x] = shared.value[threadIdx.x + 250];
}

struct Case {
  void (*kernel)(uint32_t*, uint32_t*);
  int blocks, threads;
  bool cooperative;
};

const std::map<std::string, Case> kCases{
    {"right", {right, 3, 64, true}},
    {"early_exit", {early_exit, 2, 64, false}},
    {"divergent_barrier", {divergent_barrier, 2, 64, false}},
    {"divergent_grid_barrier", {divergent_grid_barrier, 2, 64, true}},
    {"barrier_without_some", {barrier_without_some, 2, 64, true}},
    {"divergent_collective", {divergent_collective, 1, 32, false}},
    {"other_collective", {other_collective, 1, 32, false}},
    {"mask_without_caller", {mask_without_caller, 1, 32, false}},
    {"mask_names_who_left", {mask_names_who_left, 1, 32, false}},
    {"mask_names_nobody", {mask_names_nobody, 1, 48, false}},
    {"overlapping_masks", {overlapping_masks, 1, 32, false}},
    {"shuffle_from_outside", {shuffle_from_outside, 1, 32, false}},
    {"livelock", {livelock, 2, 32, false}},
    {"waits_for_unstarted", {waits_for_unstarted, 6, 32, false}},
    {"barrier_of_plain_launch", {barrier_of_plain_launch, 1, 32, false}},
    {"too_many_blocks", {right, 4, 64, true}},
    {"large_shared", {large_shared, 1, 32, false}},
    {"two_shared", {two_shared, 1, 32, false}},
    {"poison", {poison, 4, 32, false}},
    {"race", {race, 1, 64, false}},
    {"relaxed_publish", {relaxed_publish, 1, 64, false}},
    {"shuffle_orders_nothing", {shuffle_orders_nothing, 1, 64, false}},
    {"beyond_shared", {beyond_shared, 1, 32, false}},
};

}  // namespace

int main(int, char** argv) {
  const std::string name = argv[1];
  emu::config().seed = strtoull(argv[2], nullptr, 10);
  emu::config().max_switches = 100000;
  const Case& c = kCases.at(name);
  std::vector<uint32_t> out(9 * c.blocks * c.threads);
  uint32_t flag = 0;
  try {
    (c.cooperative ? launch_cooperative<uint32_t*, uint32_t*>
                   : launch<uint32_t*, uint32_t*>)(name.c_str(), c.kernel,
                                                   {c.blocks, c.threads},
                                                   nullptr, out.data(), &flag);
  } catch (const emu::Error& error) {
    printf("%s\n", error.what());
    return 0;
  }
  for (const uint32_t value : out)
    printf("%u ", value);
  printf("\n");
}
