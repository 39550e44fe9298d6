// What kernels of vertex programs compute with, on the CPU and on a GPU, where
// it gives the same bits. GSAMPLE_INLINE says where functions run.

// 2^n for n in [-126, 127].
GSAMPLE_INLINE float power_of_two(int32_t n) {
  const int32_t bits = (n + 127) << 23;
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

// e^x within two units of the last place, without a branch, so that loops of
// it are vectorised: e^x = 2^n e^r for n = round(x / ln 2), |r| <= ln(2) / 2.
GSAMPLE_INLINE float exp_of(float x) {
  const float low = x < -104.0f ? -104.0f : x;
  const float bounded = low > 89.0f ? 89.0f : low;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: no digits behind
  const float n = (bounded * 1.44269504f + kRound) - kRound;
  const float r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // Two factors, as 2^n alone may be no number that a float has.
  const int32_t whole = static_cast<int32_t>(n), half = whole >> 1;
  return p * power_of_two(half) * power_of_two(whole - half);
}

GSAMPLE_INLINE double exp_of(double x) {
  return std::exp(x);
}

// How many partial sums n numbers have: number i is added to that of i modulo
// this. More than n would be zeros only.
GSAMPLE_INLINE constexpr int lanes_of(int n) {
  return n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n;
}

// Adds the upper half of partial sums to the lower half, until one is left.
template <int lanes, typename T>
GSAMPLE_INLINE T folded(const T* sums) {
  T part[lanes];
  for (int i = 0; i < lanes; ++i)
    part[i] = sums[i];
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      part[i] += part[i + half];
  return part[0];
}
