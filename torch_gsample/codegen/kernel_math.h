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

// ln x within two units of the last place: ln x = e ln 2 + ln m for x = 2^e m,
// m in [sqrt(1/2), sqrt(2)).
GSAMPLE_INLINE float log_of(float x) {
  const bool is_tiny = x < 1.17549435e-38f;  // no normal number
  const float scaled = is_tiny ? x * 8388608.0f : x;
  int32_t bits;
  memcpy(&bits, &scaled, sizeof bits);
  bits += 0x3f800000 - 0x3f3504f3;
  const float e = float((bits >> 23) - 127 - (is_tiny ? 23 : 0));
  bits = (bits & 0x7fffff) + 0x3f3504f3;
  float m;
  memcpy(&m, &bits, sizeof m);
  const float f = m - 1.0f, z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float low = p * f * z + e * -2.12194440e-4f - 0.5f * z;
  const float out = f + low + e * 0.693359375f;
  const float positive = x < INFINITY ? out : x;  // NaN stays
  return x > 0.0f ? positive : x == 0.0f ? -INFINITY : NAN;
}

// ln (1 + x) within three units: what rounds 1 + x is undone, as (1 + x) - 1 is
// exact.
GSAMPLE_INLINE float log1p_of(float x) {
  const float u = 1.0f + x, d = u - 1.0f, whole = log_of(u);
  return d == 0.0f ? x : d == x ? whole : whole * (x / d);
}

// e^x - 1 within three units, in the same way.
GSAMPLE_INLINE float expm1_of(float x) {
  const float u = exp_of(x), d = u - 1.0f;
  const float small = u == 1.0f ? x : d * (x / log_of(u));
  return x < -18.0f || x > 88.0f ? d : small;
}

// tanh x within five units.
GSAMPLE_INLINE float tanh_of(float x) {
  const float a = x < 0.0f ? -x : x;
  const float t = expm1_of(-2.0f * a);
  const float out = -t / (t + 2.0f);
  return x < 0.0f ? -out : x == 0.0f ? x : out;
}

GSAMPLE_INLINE double exp_of(double x) {
  return lib::exp(x);
}
GSAMPLE_INLINE double log_of(double x) {
  return lib::log(x);
}
GSAMPLE_INLINE double log1p_of(double x) {
  return lib::log1p(x);
}
GSAMPLE_INLINE double expm1_of(double x) {
  return lib::expm1(x);
}
GSAMPLE_INLINE double tanh_of(double x) {
  return lib::tanh(x);
}

// How many partial sums n numbers have: number i is added to that of i modulo
// this. More than n would be zeros only.
GSAMPLE_INLINE constexpr int lanes_of(int n) {
  return n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n;
}
