// Memory for the edges of each relation on a GPU, and what takes a sample apart
// to go there.
#pragma once

#include <vector>

#include "../cuda/neighbor_sample.h"
#include "device_memory_cuda.h"
#include "sample_memory_cuda.h"

namespace gsample {

class RelationOutputs {
 public:
  Tensors row, col, edge;  // of the relations that were added

  // Adds a relation, with memory that there is for its edges. `e` may be empty.
  void add(Tensor r, Tensor c, Tensor e) {
    const auto data = [](Tensor& tensor) {
      return tensor.numel() == 0 ? nullptr : tensor.mutable_data_ptr<int64_t>();
    };
    places_.push_back({data(r), data(c), data(e), num_places_});
    num_places_ += r.numel();
    row.push_back(r);
    col.push_back(c);
    edge.push_back(e);
  }

  // Likewise, with new memory.
  void add(const Tensor& like, int64_t size, bool return_edge_id) {
    const Tensor r = device_vector("row", like, size);
    const Tensor c = device_vector("col", like, size);
    add(r, c, device_vector("edge", like, return_edge_id ? size : 0));
  }

  // What takes a sample apart. `arguments` holds it.
  template <typename sample_t>
  SplitEdgesCuda split(const sample_t& sample,
                       const Tensor& like,
                       Tensor* arguments,
                       StreamHandle stream) const {
    Words words;
    words.add(places_);
    *arguments = device_vector("arguments", like, words.size());
    int64_t* to = arguments->mutable_data_ptr<int64_t>();
    words.store(to, stream);
    return {sample.row,
            sample.col,
            sample.edge,
            sample.edge_end,
            sample.options.num_hops,
            sample.num_relations,
            reinterpret_cast<const RelationEdges*>(to),
            num_places_};
  }

 private:
  std::vector<RelationEdges> places_;
  int64_t num_places_ = 0;
};

}  // namespace gsample
