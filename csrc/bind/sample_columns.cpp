// The operator sample_columns on the CPU.
#include "sample_columns.h"

#include <torch/csrc/stable/library.h>

#include "../cpu/sample_columns.h"
#include "output_pool.h"

namespace gsample {

namespace {

struct OnCpu {
  OnCpu(const Tensor&, const char*) {}

  int threads(int64_t num_threads) const { return threads_of(num_threads); }
  template <typename item_t>
  const item_t* graph(const Tensor& tensor) const {
    return tensor.const_data_ptr<item_t>();
  }
  const int64_t* vector(const char* name, Optional tensor, int64_t size) const {
    return int64_vector(kColumnsOp, name, tensor, size);
  }
  const int64_t* pointers(const Tensor& ptr, int64_t size) const {
    return read_ptr(kColumnsOp, "ptr", ptr, size);
  }

  template <typename indptr_t>
  int64_t num_edges(const indptr_t* indptr,
                    int64_t all_cols,
                    Optional,
                    Optional) const {
    STD_TORCH_CHECK(indptr[0] == 0 && indptr[all_cols] >= 0, kColumnsOp,
                    ": 'indptr' must ascend from 0 (got ", indptr[0], " and ",
                    indptr[all_cols], ")");
    return indptr[all_cols];
  }

  template <typename indptr_t>
  std::tuple<Tensor, Tensor> select(const SampleColumnsArgs<indptr_t>& args,
                                    ScalarType dtype) const {
    ColumnsSampler<indptr_t> sampler(args);
    Tensor out_indptr = pooled_tensor({args.n + 1}, dtype, sizeof(indptr_t));
    indptr_t* begin = out_indptr.mutable_data_ptr<indptr_t>();
    check(sampler.count(begin), args);
    Tensor edge = pooled_vector(begin[args.n]);
    check(sampler.select(begin, edge.mutable_data_ptr<int64_t>()), args);
    return {out_indptr, edge};
  }

 private:
  template <typename indptr_t>
  void check(Status status, const SampleColumnsArgs<indptr_t>& args) const {
    STD_TORCH_CHECK(status != Status::kInterrupted, kColumnsOp,
                    ": interrupted");
    STD_TORCH_CHECK(status == Status::kDone || args.cols == nullptr, kColumnsOp,
                    ": 'cols' must be in [0, ", args.all_cols,
                    "), 'indptr' must ascend from 0 to the number of edges and "
                    "be able to count the edges of the sample");
    STD_TORCH_CHECK(status == Status::kDone, kColumnsOp,
                    ": 'indptr' must ascend from 0 to the ",
                    args.edges.num_edges, " edges");
  }
};

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_columns", TORCH_BOX(&sample_columns<OnCpu>));
}

}  // namespace gsample
