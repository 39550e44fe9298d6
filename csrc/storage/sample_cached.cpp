// Samples a batch of which all blocks are cached, reading them in place. See
// torch_gsample/storage/sample_cached.py.
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "../cpu/sample_hops.h"
#include "cached_source.h"

#define GSAMPLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace gsample {

// A batch. The layout is that of `_Batch` in sample_cached.py.
struct CachedBatch {
  const CachedRelation* relations;
  const NodeType* types;
  const int64_t* key;
  int64_t num_relations;
  int64_t num_types;
  int64_t num_hops;
  int64_t narrow;  // whether nodes and stored neighbours are int32
  int64_t replace;
  int64_t disjoint;
  int64_t last;
  int64_t has_window;
  int64_t window;
  int64_t threads;
};

// A sample whose outputs are not yet written.
class CachedSample {
 public:
  virtual ~CachedSample() = default;
  virtual Status run() = 0;
  virtual void count(int64_t* counts) const = 0;
  virtual void write(int64_t* const* out) = 0;
};

namespace {

template <typename index_t>
class CachedSampleOf final : public CachedSample {
 public:
  explicit CachedSampleOf(const CachedBatch& batch) : batch_(batch) {
    for (int64_t r = 0; r < batch.num_relations; ++r) {
      const CachedRelation& from = batch.relations[r];
      sources_.push_back(std::make_unique<CachedSource<index_t>>(from));
      pointers_.push_back(sources_.back().get());
      Relation<int64_t, index_t> relation{};
      relation.fanouts = from.fanouts;
      relation.src = static_cast<int>(from.src);
      relation.dst = static_cast<int>(from.dst);
      relations_.push_back(relation);
    }
    args_ = {relations_.data(),
             batch.types,
             static_cast<int>(batch.num_relations),
             static_cast<int>(batch.num_types),
             SampleOptions{},
             pointers_.data()};
    SampleOptions& options = args_.options;
    options.key = {batch.key[0], batch.key[1], batch.key[2]};
    options.num_hops = static_cast<int>(batch.num_hops);
    options.replace = batch.replace;
    options.disjoint = batch.disjoint;
    options.last = batch.last;
    options.has_window = batch.has_window;
    options.window = batch.window;
    options.num_threads = static_cast<int>(batch.threads);
    sampler_ = make_hop_sampler<int64_t, index_t>(args_);
  }

  Status run() override {
    std::vector<std::shared_lock<std::shared_mutex>> locks;
    for (int64_t r = 0; r < batch_.num_relations; ++r)
      locks.emplace_back(*batch_.relations[r].blocks->guard);
    return sampler_->run();
  }

  void count(int64_t* counts) const override {
    for (int64_t t = 0; t < batch_.num_types; ++t)
      for (const int64_t n : sampler_->hop_nodes(t))
        *counts++ = n;
    for (int64_t r = 0; r < batch_.num_relations; ++r)
      for (const int64_t n : sampler_->hop_edges(r))
        *counts++ = n;
    for (const auto& source : sources_)
      *counts++ = source->num_found();
  }

  void write(int64_t* const* out) override {
    int64_t *row = out[0], *col = out[1], *edge = out[2];
    int64_t *node = out[3], *tree = batch_.disjoint ? out[4] : nullptr;
    std::vector<NodeOutput> nodes;
    std::vector<EdgeOutput> edges;
    for (int64_t t = 0; t < batch_.num_types; ++t) {
      nodes.push_back({node, tree});
      for (const int64_t n : sampler_->hop_nodes(t)) {
        node += n;
        tree += tree == nullptr ? 0 : n;
      }
    }
    for (int64_t r = 0; r < batch_.num_relations; ++r) {
      edges.push_back({row, col, edge});
      for (const int64_t n : sampler_->hop_edges(r)) {
        row += n;
        col += n;
        edge += n;
      }
    }
    sampler_->write(nodes.data(), edges.data());
  }

 private:
  const CachedBatch& batch_;
  std::vector<std::unique_ptr<CachedSource<index_t>>> sources_;
  std::vector<const EdgeSource<int64_t, index_t>*> pointers_;
  std::vector<Relation<int64_t, index_t>> relations_;
  NeighborSampleArgs<int64_t, index_t> args_;
  std::unique_ptr<HopSampler<int64_t, index_t>> sampler_;
};

enum SampleResult : int64_t { kSampled, kIncomplete, kStopped, kNoMemory };

// The sample of a thread between the calls that draw and write it. Ctrl-C may
// come between them: the next sample then frees it.
thread_local CachedSample* drawn = nullptr;

void free_drawn() {
  delete std::exchange(drawn, nullptr);
}

}  // namespace

}  // namespace gsample

// Samples a batch; writes the nodes of each type and hop, the edges of each
// relation and hop, and the items that were read of each relation. kIncomplete:
// a block is not cached, or an argument or item is malformed.
GSAMPLE_EXPORT int64_t gsample_sample_cached(const gsample::CachedBatch* batch,
                                             int64_t* counts) {
  using namespace gsample;
  free_drawn();
  try {
    std::unique_ptr<CachedSample> made;
    if (batch->narrow)
      made = std::make_unique<CachedSampleOf<int32_t>>(*batch);
    else
      made = std::make_unique<CachedSampleOf<int64_t>>(*batch);
    const Status status = made->run();
    if (status != Status::kDone)
      return status == Status::kFault ? kIncomplete : kStopped;
    made->count(counts);
    drawn = made.release();
    return kSampled;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

// Writes the sample of the thread, and frees it: rows, columns and ids of the
// edges of all relations, nodes of all types and their trees, if there are any.
// Its batch still exists.
GSAMPLE_EXPORT int64_t gsample_write_cached(int64_t* const* out) {  // [5]
  using namespace gsample;
  SampleResult result = kSampled;
  try {
    drawn->write(out);
  } catch (const std::bad_alloc&) {
    result = kNoMemory;
  }
  free_drawn();
  return result;
}
