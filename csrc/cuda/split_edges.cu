#include "split_edges.cuh"

#include "launch.cuh"

namespace gsample {

void split_edges(const SplitEdgesCuda& args, StreamHandle stream) {
  constexpr int kThreads = 256;
  launch("split_edges", split_edges_kernel,
         shape_for(kThreads, args.num_places), stream, args);
}

}  // namespace gsample
