// Reductions of the values of columns, each column in order.
//
// A sum in order waits for an addition at every value, and a loop over a column
// ends at a branch that cannot be foreseen. So the columns of a block are dealt
// out to the lanes of a vector, a run of columns to each. A lane goes through
// its values without looking for ends: it writes down what it has at every
// value, and begins anew where a bit marks the first of a column. The result of
// a column stands at its last value.

namespace {

template <typename T>
constexpr int kLanes = sizeof(T) <= 4 ? 8 : 4;

// What the lanes have.
template <typename T>
struct Totals {
  T total[kLanes<T>] = {};

  // Takes kLanes values of each lane, as read(lane, to) gives them, and writes
  // what it has after each. Bit i of first[lane] says whether value i is the
  // first of a column.
  template <typename Step, typename Read>
  void take(const Read& read, const uint8_t* first, T start, Step step, T* to) {
    T value[kLanes<T>][kLanes<T>];
    for (int lane = 0; lane < kLanes<T>; ++lane)
      read(lane, value[lane]);
    for (int i = 0; i < kLanes<T>; ++i)
      for (int lane = 0; lane < kLanes<T>; ++lane) {
        const T before = first[lane] >> i & 1 ? start : total[lane];
        total[lane] = step(before, value[lane][i]);
        to[i * kLanes<T> + lane] = total[lane];
      }
  }
};

#if defined(__AVX2__)

// Vectors of the compiler itself: to read <immintrin.h> takes four times as
// long as the rest of a kernel.
#if defined(__clang__)
#define GSAMPLE_SHUFFLE(type, a, b, ...) \
  __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define GSAMPLE_SHUFFLE(type, a, b, ...) \
  __builtin_shuffle(a, b, vector_of<type>{__VA_ARGS__})
#endif

template <typename T>
struct Register {
  typedef T type __attribute__((vector_size(32)));
  typedef uint8_t Bytes __attribute__((vector_size(32 / sizeof(T))));
};

template <typename T>
using vector_of = typename Register<T>::type;

// Rows of a square become its columns.
inline void transpose(vector_of<float> (&row)[8]) {
  vector_of<float> pair[8], four[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    const auto a = row[i], b = row[i + 1];
    pair[i] = GSAMPLE_SHUFFLE(int32_t, a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    pair[i + 1] = GSAMPLE_SHUFFLE(int32_t, a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const auto a = pair[i + j], b = pair[i + j + 2];
      const int k = i + 2 * j;
      four[k] = GSAMPLE_SHUFFLE(int32_t, a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      four[k + 1] = GSAMPLE_SHUFFLE(int32_t, a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto a = four[i], b = four[i + 4];
    row[i] = GSAMPLE_SHUFFLE(int32_t, a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    row[i + 4] = GSAMPLE_SHUFFLE(int32_t, a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

inline void transpose(vector_of<double> (&row)[4]) {
  vector_of<double> pair[4];
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2) {
    pair[i] = GSAMPLE_SHUFFLE(int64_t, row[i], row[i + 1], 0, 4, 2, 6);
    pair[i + 1] = GSAMPLE_SHUFFLE(int64_t, row[i], row[i + 1], 1, 5, 3, 7);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    row[i] = GSAMPLE_SHUFFLE(int64_t, pair[i], pair[i + 2], 0, 1, 4, 5);
    row[i + 2] = GSAMPLE_SHUFFLE(int64_t, pair[i], pair[i + 2], 2, 3, 6, 7);
  }
}

#undef GSAMPLE_SHUFFLE

// The same, a lane of a vector each.
template <typename T, typename Int>
struct VectorTotals {
  using Vector = vector_of<T>;
  static constexpr int kWidth = kLanes<T>;

  Vector total = {};

  template <typename Step, typename Read>
  void take(const Read& read, const uint8_t* first, T start, Step step, T* to) {
    Vector row[kWidth];
#pragma GCC unroll 8
    for (int lane = 0; lane < kWidth; ++lane) {
      T value[kWidth];  // stays in a register
      read(lane, value);
      lib::memcpy(&row[lane], value, sizeof value);
    }
    transpose(row);
    typename Register<T>::Bytes bytes;
    lib::memcpy(&bytes, first, kWidth);
    const auto bits = __builtin_convertvector(bytes, vector_of<Int>);
    const Vector starts = start - Vector{};
#pragma GCC unroll 8
    for (int i = 0; i < kWidth; ++i) {
      // The bit becomes the sign.
      const auto is_first = bits << (8 * int(sizeof(T)) - 1 - i) < 0;
      total = step(is_first ? starts : total, row[i]);
      lib::memcpy(to + i * kWidth, &total, sizeof total);
    }
  }
};

template <>
struct Totals<float> : VectorTotals<float, int32_t> {};

template <>
struct Totals<double> : VectorTotals<double, int64_t> {};

#endif

// Columns that are reduced together.
template <typename T>
class Block {
 public:
  static constexpr int64_t kWidth = kLanes<T>;
  // Values of a lane, to which its last column may add as many: the cache holds
  // what all have. So far ahead are those of the next block.
  static constexpr int64_t kShare = 1024;
  static constexpr int64_t kAhead = kWidth * kShare;

  // Takes columns from `ptr` on, at least one, and `cols` at most. Returns how
  // many, or 0 if their pointers descend or leave [0, edges].
  template <typename index_t>
  int64_t take(const index_t* ptr, int64_t cols, int64_t edges) {
    // Pointers may be anything.
    using Place = typename lib::Unsigned<sizeof(index_t)>::type;
    const int64_t base = ptr[0], most = lib::min(cols, kColumns);
    if (base < 0 || base > edges)
      return 0;
    Place end = static_cast<Place>(base);
    int64_t col = 0;
    longest_ = 0;
    for (int64_t lane = 0; lane < kWidth; ++lane) {
      const Place from = end;
      begin_[lane] = static_cast<int64_t>(from) - base;
      Place at = 0;
      for (; col < most && at < kShare; ++col) {
        const Place next = static_cast<Place>(ptr[col + 1]) - from;
        if (static_cast<Place>(next - at) > kShare)
          break;
        mark(lane, at);
        last_[col] = next == at ? 0 : next * kWidth + lane;
        at = next;
      }
      end = from + at;
      longest_ = lib::max<int64_t>(longest_, at);
    }
    if (static_cast<int64_t>(end) > edges)
      return 0;
    fits_ = col > 0;
    if (fits_)
      return col;
    return ptr[1] < ptr[0] || ptr[1] > edges ? 0 : 1;
  }

  // Whether columns are short enough: one that is longer than kShare is taken
  // alone, and not reduced here.
  bool fits() const { return fits_; }

  // How many values from the first one on are read: some behind the last.
  int64_t reach() const { return begin_[kWidth - 1] + longest_ + kWidth; }

  // Room for as many values.
  T* values() { return values_; }

  // A column without values gets `fill`. read(i, to) gives values i, i + 1 and
  // so on, kWidth of them. To be called once after `take`.
  template <typename Step, typename Read>
  void reduce(T start,
              T fill,
              Step step,
              int64_t cols,
              const Read& read,
              T* out) {
    lib::fill_n(totals_, kWidth, fill);
    Totals<T> lanes;
    for (int64_t i = 0; i < longest_; i += kWidth)
      lanes.take([&](int lane, T* to) { read(begin_[lane] + i, to); },
                 first_ + i, start, step, totals_ + (i + 1) * kWidth);
    lib::memset(first_, 0, longest_ / kWidth * kWidth + kWidth);
    for (int64_t col = 0; col < cols; ++col)
      out[col] = totals_[last_[col]];
  }

  // The same, of values().
  template <typename Step>
  void reduce(T start, T fill, Step step, int64_t cols, T* out) {
    const auto read = [&](int64_t i, T* to) {
      lib::memcpy(to, values_ + i, kWidth * sizeof(T));
    };
    reduce(start, fill, step, cols, read, out);
  }

 private:
  static constexpr int64_t kRoom = 2 * kShare;
  static constexpr int64_t kColumns = kRoom * kWidth;

  // A column begins at value `at` of a lane. Where it has none, the next one
  // that has begins there, or the lane ends.
  void mark(int64_t lane, int64_t at) {
    const int64_t bit = at & (kWidth - 1);
    first_[at - bit + lane] |= static_cast<uint8_t>(1 << bit);
  }

  // Values of lane l begin at begin_[l]. A lane reads on behind its end.
  T values_[(kWidth + 1) * kRoom];
  int64_t begin_[kWidth], longest_ = 0;
  bool fits_ = false;
  // Row i has the lanes' bits for their values i * kWidth, i * kWidth + 1, ...
  uint8_t first_[kRoom + kWidth] = {};
  // Row i + 1 is what the lanes have after value i of each, row 0 is `fill`.
  T totals_[(kRoom + kWidth) * kWidth];
  int32_t last_[kColumns];  // where in totals_ the result of a column stands
};

}  // namespace
