// A program with a bug of the kind that a tool of compute-sanitizer is to find:
// memcheck an access beyond memory, racecheck a read of shared memory that no
// barrier orders after the write, synccheck a barrier of a warp whose mask does
// not name the caller. With `none` it has none.
#include <stdio.h>
#include <string.h>

__global__ void shift(int* data, int size, bool race, bool unnamed) {
  __shared__ int held[128];
  held[threadIdx.x] = data[threadIdx.x];
  if (!race)
    __syncthreads();
  data[threadIdx.x] = held[(threadIdx.x + 64) % 128];
  if (threadIdx.x == 0)
    data[size - 1] = 1;
  if (unnamed && threadIdx.x == 1)
    __syncwarp(1);
}

int main(int argc, char** argv) {
  const bool beyond = argc > 1 && strcmp(argv[1], "memcheck") == 0;
  const bool race = argc > 1 && strcmp(argv[1], "racecheck") == 0;
  const bool unnamed = argc > 1 && strcmp(argv[1], "synccheck") == 0;
  int* data = nullptr;
  if (cudaMalloc(&data, 128 * sizeof(int)) != cudaSuccess)
    return 2;
  cudaMemset(data, 0, 128 * sizeof(int));
  shift<<<1, 128>>>(data, beyond ? 1 << 28 : 128, race, unnamed);
  const cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
