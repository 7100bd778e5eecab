/* Problems for bench_kirchhoff.cu, and the reference in double. Included once, behind its stand-ins for the core. */
/* ---- problems ----------------------------------------------------------------------------- */

struct problem {
  const char *name;
  int n[3];
  double d[3];
  int ns, nr, nt;
  double dt, t0 = 0;
  moho_kirchhoff_mode mode = MOHO_KIRCHHOFF_ANALYTIC;
  int vel = 0;                          /* time mode: 0 one, 1 v(t), 2 v(x, t)                 */
  int list = 0;                         /* 1 streamer, 2 zero offset, 3 at random, 4 rolling, 5 twelve at random, 6 one */
  int byot = 0;                         /* 1 f32, 2 f64 transposed, 3 with gaps, 4 whole samples, 5 marks in gaps */
  double amin = 0, amax = 0;
  bool spiky = false, shared = false;
  int shift = 0;
  bool grid3 = false;                   /* receivers on a grid                                 */
  bool plain = false;                   /* float ones may take the plain kernels               */
  bool dynamic = false, hard = false;   /* hard: the offset's limit                            */
  double angle = 0, offset = 0;         /* limits, from 0.8 of them: degrees, cells over a row  */
  double slope = 0;                     /* of the sources' depths, m each                       */
  bool share = false;                   /* when timed: tell what part of the pairs has weight   */
  moho_kirchhoff_tables tables = MOHO_KIRCHHOFF_FULL;
  int step = 4;                         /* of coarse ones: any times, and any legs, at nodes    */
  double rough = .01;                   /* how far their slowness is from that of straight rays */
};

struct made {
  problem p;
  int64_t ni;
  std::vector<double> src, rec, vel, trav[2], pt[3], legs[2];   /* legs: of coarse tables, (points, n, 3) */
  std::vector<float> nodes;
  std::vector<double> nodes64;
  std::vector<int64_t> is, ir;
  moho_kirchhoff_desc d;
  moho_array arr[2];
  moho_block blk[2];
  int64_t traces;
  moho_kirchhoff *plan = NULL;
};

static std::mt19937_64 rng(7);
static constexpr double EPS = 17;      /* of amplitudes, m                                      */

static double velocity(const made &m, int64_t i)
{
  return m.vel.size() == 1                  ? m.vel[0]
         : m.vel.size() == (size_t)m.p.n[2] ? m.vel[(size_t)(i % m.p.n[2])]
                                            : m.vel[(size_t)i];
}

static void positions(made &m)
{
  const problem &p = m.p;
  bool d3 = p.n[0] > 1;
  double X = (p.n[1] - 1) * p.d[1], Y = (p.n[0] - 1) * p.d[0];
  auto place = [&](std::vector<double> &v, int n, double inset, double z) {
    v.resize((size_t)n * 3);
    int side = p.grid3 || d3 ? (int)ceil(sqrt((double)n)) : 0;
    for (int i = 0; i < n; i++) {
      double fx = n > 1 ? (double)i / (n - 1) : 0.4, fy = 0;
      if (d3)
        fx = side > 1 ? (double)(i % side) / (side - 1) : 0.3, fy = side > 1 ? (double)(i / side) / (side - 1) : 0.6;
      v[(size_t)i] = d3 ? fy * Y + inset : 0;
      v[(size_t)(n + i)] = inset + fx * (X - 2 * inset);
      v[(size_t)(2 * n + i)] = p.mode == MOHO_KIRCHHOFF_TIME ? 0 : z;
    }
  };
  place(m.src, p.ns, 0, 10);
  place(m.rec, p.nr, X > 10 ? 5 : 0, 20);
  for (int i = 0; i < p.ns; i++) m.src[(size_t)(2 * p.ns + i)] += i * p.slope;
  if (p.shared) m.rec = m.src;
}

static void traces(made &m)
{
  const problem &p = m.p;
  m.is.clear(), m.ir.clear();
  if (p.list == 1)
    for (int s = 0; s < p.ns; s++)
      for (int r = s; r < std::min(s + p.nr / 2, p.nr); r++) m.is.push_back(s), m.ir.push_back(r);
  if (p.list == 2)
    for (int s = 0; s < std::min(p.ns, p.nr); s++) m.is.push_back(s), m.ir.push_back(s);
  for (int s = 0; s < p.ns && p.list == 4; s++) {   /* 240 receivers around each source */
    int first = (int)((int64_t)s * p.nr / p.ns) - 120;
    first = std::max(0, std::min(first, p.nr - 240));
    for (int r = first; r < first + 240; r++) m.is.push_back(s), m.ir.push_back(r);
  }
  if (p.list == 3)
    for (int i = 0; i < p.ns * p.nr / 3 + 1; i++)
      m.is.push_back((int64_t)(rng() % p.ns)), m.ir.push_back((int64_t)(rng() % p.nr));
  for (int i = 0; i < 12 && p.list == 5; i++) m.is.push_back((int64_t)(rng() % p.ns)), m.ir.push_back((int64_t)(rng() % p.nr));
  if (p.list == 6) m.is.push_back(p.ns / 2), m.ir.push_back(p.nr / 3);
  m.traces = p.list ? (int64_t)m.is.size() : (int64_t)p.ns * p.nr;
  if (!p.list)
    for (int64_t i = 0; i < m.traces; i++) m.is.push_back(i / p.nr), m.ir.push_back(i % p.nr);
}

/* Times of all points to all positions of a side, seconds. */
static void times(made &m, int side)
{
  const problem &p = m.p;
  const std::vector<double> &at = side ? m.rec : m.src;
  int n = side ? p.nr : p.ns;
  std::vector<double> &t = m.trav[side];
  t.resize((size_t)m.ni * n);
#pragma omp parallel for
  for (int64_t i = 0; i < m.ni; i++) {
    double z = (double)(i % p.n[2]) * p.d[2], x = (double)(i / p.n[2] % p.n[1]) * p.d[1],
           y = (double)(i / p.n[2] / p.n[1]) * p.d[0];
    double v = velocity(m, i);
    for (int k = 0; k < n; k++) {
      double dy = y - at[(size_t)k], dx = x - at[(size_t)(n + k)], dz = z - at[(size_t)(2 * n + k)], r;
      if (p.mode == MOHO_KIRCHHOFF_TIME) r = sqrt(z * z / 4 + (dy * dy + dx * dx) / (v * v));
      else r = sqrt(dx * dx + dy * dy + dz * dz) / v;
      if (p.byot == 4) r = floor(r / p.dt) * p.dt;
      bool gap = i / p.n[2] % 7 == 3 || (k + i) % 53 == 0;
      if (p.byot == 3 && gap) r = (i + k) % 2 ? NAN : INFINITY;
      if (p.byot == 5 && gap) r = 1e4;
      t[(size_t)(i * n + k)] = p.byot ? (double)(p.byot == 2 ? r : (float)r) : r;
    }
  }
}

/* Coarse tables: slowness and numbers at nodes as they come, of the operator's type, and what is linear between them. */
struct mesh { int n[3]; int64_t size; };

static mesh mesh_of(const problem &p)
{
  mesh g = { {}, 1 };
  for (int i = 0; i < 3; i++) g.size *= g.n[i] = p.n[i] > 1 ? (p.n[i] - 2) / p.step + 2 : 1;
  return g;
}

static double at_node(const problem &p, int number, int64_t node, int side, moho_dtype type)
{
  double a = sin(.37 * (double)node + side), v = number ? .6 + .4 * a : (1 + p.rough * a) / 2000;
  if (number && (node / 3 + side) % 5 == 0) v = 0;   /* no weight around it */
  if (number == 2) v *= cos(.21 * (double)node);
  return type == MOHO_F32 ? (double)(float)v : v;
}

static double between(const problem &p, const mesh &g, const int at[3], int number, int side, moho_dtype type)
{
  double sum = 0;
  for (int c = 0; c < 8; c++) {
    int64_t node = 0;
    double w = 1;
    for (int a = 0; a < 3; a++) {
      int j = g.n[a] > 1 ? std::min(at[a] / p.step, g.n[a] - 2) : 0, lo = j * p.step, hi = std::min(lo + p.step, p.n[a] - 1);
      double f = hi > lo && g.n[a] > 1 ? (double)(at[a] - lo) / (hi - lo) : 0;
      int up = c >> a & 1;
      w *= up ? f : 1 - f;
      node = node * g.n[a] + j + (g.n[a] > 1 ? up : 0);
    }
    if (w > 0) sum += w * at_node(p, number, node, side, type);
  }
  return sum;
}

/* Near positions legs are from differences of the interpolated times. */
static void near_legs(made &m, int side)
{
  const problem &p = m.p;
  const std::vector<double> &at = side ? m.rec : m.src, &t = m.trav[side];
  const bool three = p.n[0] > 1;
  const int n = side ? p.nr : p.ns;
  const int64_t stride[3] = { (int64_t)p.n[1] * p.n[2], p.n[2], 1 };
  const double degree = acos(-1.) / 180;
  const moho_kirchhoff_limit angle = { p.angle > 0, false, .8 * p.angle * degree, p.angle * degree };
  double steps[KIR_STEPS];
  kir_steps(steps);
#pragma omp parallel for
  for (int64_t i = 0; i < m.ni; i++)
    for (int k = 0; k < n; k++) {
      double away[3], g[3] = {}, square = 0;
      for (int a = 0; a < 3; a++) {
        away[a] = (double)(i / stride[a] % p.n[a]) * p.d[a] - at[(size_t)(a * n + k)];
        square += away[a] * away[a];
      }
      if (!kir_near(three, p.d, p.step, away)) continue;
      for (int a = three ? 0 : 1; a < 3; a++) {
        int64_t q = i / stride[a] % p.n[a], lo = q > 0 ? i - stride[a] : i, hi = q < p.n[a] - 1 ? i + stride[a] : i;
        g[a] = (t[(size_t)(hi * n + k)] - t[(size_t)(lo * n + k)]) / ((double)((hi - lo) / stride[a]) * p.d[a]);
      }
      kir_leg(p.dynamic, three, angle, steps, g, p.dynamic ? kir_amplitude(three, sqrt(square), EPS, velocity(m, i)) : 1,
              &m.legs[side][(size_t)((i * n + k) * 3)]);
    }
}

static void coarse(made &m, moho_dtype type, bool wanted)
{
  const problem &p = m.p;
  const mesh g = mesh_of(p);
  const int parts = kir_parts(p.dynamic, p.n[0] > 1, p.angle > 0), sides = p.ns + p.nr;
  m.nodes64.resize((size_t)(1 + parts) * (size_t)g.size * (size_t)sides);
  for (int k = 0; k <= parts; k++)
    for (int64_t i = 0; i < g.size; i++)
      for (int s = 0; s < sides; s++) m.nodes64[(size_t)((k * g.size + i) * sides + s)] = at_node(p, k, i, s, type);
  m.nodes.assign(m.nodes64.begin(), m.nodes64.end());
  for (int side = 0; side < 2 && wanted; side++) {
    const std::vector<double> &at = side ? m.rec : m.src;
    int n = side ? p.nr : p.ns;
    m.trav[side].resize((size_t)m.ni * n);
    m.legs[side].assign((size_t)m.ni * n * 3, 0);
#pragma omp parallel for
    for (int64_t i = 0; i < m.ni; i++) {
      int q[3] = { (int)(i / p.n[2] / p.n[1]), (int)(i / p.n[2] % p.n[1]), (int)(i % p.n[2]) };
      for (int k = 0; k < n; k++) {
        double square = 0, amp = 1;
        for (int a = 0; a < 3; a++) square += pow(q[a] * p.d[a] - at[(size_t)(a * n + k)], 2);
        double d = sqrt(square);
        m.trav[side][(size_t)(i * n + k)] = d * between(p, g, q, 0, side * p.ns + k, type);
        if (p.dynamic) amp = sqrt(2 / velocity(m, i)) / (p.n[0] > 1 ? d + EPS : sqrt(d + EPS));
        for (int j = 0; j < parts; j++)
          m.legs[side][(size_t)((i * n + k) * 3 + j)] = amp * between(p, g, q, j + 1, side * p.ns + k, type);
      }
    }
    if (parts) near_legs(m, side);
  }
}

/* wanted: times for the reference. */
static void make_problem(made &m, const problem &p, moho_dtype type, bool wanted = true)
{
  m.p = p;
  m.ni = (int64_t)p.n[0] * p.n[1] * p.n[2];
  m.vel.assign(1, 2000);
  if (p.vel == 1) for (int i = 0; i < p.n[2]; i++) { if (!i) m.vel.clear(); m.vel.push_back(1500 + 7 * i); }
  if (p.vel == 2)
    for (int64_t i = 0; i < m.ni; i++) {
      if (!i) m.vel.clear();
      m.vel.push_back(1500 + 7 * (double)(i % p.n[2]) + (double)(i / p.n[2]));
    }
  positions(m);
  traces(m);
  const bool fields = p.tables == MOHO_KIRCHHOFF_COARSE;
  if (fields) coarse(m, type, wanted);
  else if (wanted || p.byot) times(m, 0), times(m, 1);
  moho_kirchhoff_desc d = {};
  d.type = type, d.mode = p.byot || fields ? MOHO_KIRCHHOFF_BYOT : p.mode, d.tables = p.tables;
  if (fields) {
    mesh g = mesh_of(p);
    d.nodes.step = p.step, d.nodes.size = g.size;
    for (int i = 0; i < 3; i++) d.nodes.n[i] = g.n[i];
    d.nodes.tables = type == MOHO_F32 ? (const void *)m.nodes.data() : (const void *)m.nodes64.data();
  }
  for (int i = 0; i < 3; i++) d.n[i] = p.n[i], d.d[i] = p.d[i];
  d.ns = p.ns, d.nr = p.nr, d.src = m.src.data(), d.rec = m.rec.data(), d.shared = p.shared;
  d.ntraces = m.traces;
  if (p.list) d.isrc = m.is.data(), d.irec = m.ir.data();
  d.nt = p.nt, d.t0 = p.t0, d.dt = p.dt, d.vel = m.vel.data(), d.nvel = (int64_t)m.vel.size();
  d.aperture = p.amax > 0, d.amin = p.amin, d.amax = p.amax;
  const double degree = acos(-1.) / 180;
  d.three = p.n[0] > 1, d.dynamic = p.dynamic, d.eps = EPS;
  d.angle = { p.angle > 0, false, .8 * p.angle * degree, p.angle * degree };
  d.offset = { p.offset > 0, p.hard, .8 * p.offset, p.offset };
  for (int i = 0; p.byot && i < 2; i++) {
    int n = i ? p.nr : p.ns;
    moho_array *a = &m.arr[i];
    memset(a, 0, sizeof *a), memset(&m.blk[i], 0, sizeof m.blk[i]);
    a->block = &m.blk[i], a->ctx = &ctx, a->shape.n = 2, a->shape.d[0] = m.ni, a->shape.d[1] = n;
    a->type = p.byot == 2 ? MOHO_F64 : MOHO_F32;
    a->stride[0] = n, a->stride[1] = 1;
    size_t bytes = m.trav[i].size() * host_size(a->type);
    CK(cudaMalloc(&m.blk[i].p, bytes));
    if (p.byot == 2) {
      std::vector<double> t(m.trav[i].size());
      for (int64_t q = 0; q < m.ni; q++)
        for (int k = 0; k < n; k++) t[(size_t)(k * m.ni + q)] = m.trav[i][(size_t)(q * n + k)];
      a->stride[0] = 1, a->stride[1] = m.ni;
      CK(cudaMemcpy(m.blk[i].p, t.data(), bytes, cudaMemcpyHostToDevice));
    } else {
      std::vector<float> t(m.trav[i].begin(), m.trav[i].end());
      CK(cudaMemcpy(m.blk[i].p, t.data(), bytes, cudaMemcpyHostToDevice));
    }
    d.trav[i] = a;
  }
  m.d = d;
  CK(K->make(&ctx, &m.d, &m.plan));
}

static void drop(made &m)
{
  K->free(m.plan);
  for (int i = 0; m.p.byot && i < 2; i++) cudaFree(m.blk[i].p);
}

/* ---- reference ------------------------------------------------------------------------------ */

/* What the reference sees of a problem: copies on the device. */
struct view {
  int n[3], ns, nr, nt, frac, nvel;
  double d[3], dt, t0, amin, amax;
  bool time;
  moho_kirchhoff_limit angle, offset;
  bool dynamic;
  int64_t ni, traces;
  const double *ts, *tr, *src, *rec, *vel, *ls, *lr;   /* ls, lr: numbers of legs, or NULL        */
  const int64_t *is, *ir;
};

/* Inside the record is decided on the table's grid of times, the fraction is the exact one. */
__device__ static bool where(const view &m, int64_t i, int64_t s, int64_t r, int *k, double *f)
{
  double us = (m.ts[i * m.ns + s] - m.t0 / 2) / m.dt, ur = (m.tr[i * m.nr + r] - m.t0 / 2) / m.dt;
  if (!isfinite(us) || !isfinite(ur)) return false;
  int64_t t = llrint(ldexp(us, m.frac)) + llrint(ldexp(ur, m.frac));
  if (t < 0 || t > (int64_t)(m.nt - 1) << m.frac) return false;
  *k = (int)(t >> m.frac);
  *f = fmin(fmax(us + ur - *k, 0.), 1.);
  return true;
}

__device__ static double taper(double lo, double hi, double v)
{
  if (!(v < hi)) return 0;
  if (v < lo) return 1;
  int j = min((int)(__dmul_rn(20, __dsub_rn(v, lo)) / __dsub_rn(hi, lo)), 19);
  return j ? (1 + cospi((j - 1) / 19.)) / 2 : 1;
}

/* A ray's direction, from the slopes of its times. */
__device__ static void ray(const view &m, const double *t, int n, int64_t i, int64_t k, double g[3])
{
  int64_t step = m.ni;
  double square = 0;
  for (int a = 0; a < 3; a++) {
    step /= m.n[a];
    int64_t at = i / step % m.n[a], lo = at > 0 ? i - step : i, hi = at < m.n[a] - 1 ? i + step : i;
    g[a] = hi > lo ? (t[hi * n + k] - t[lo * n + k]) / ((double)((hi - lo) / step) * m.d[a]) : 0;
    square += g[a] * g[a];
  }
  for (int a = 0; a < 3; a++) g[a] = square == 0 ? a == 2 : g[a] / sqrt(square); /* NaN beside gaps stays NaN */
}

__device__ static double amplitude(const view &m, const double *at, int n, int64_t i, int64_t k)
{
  double z = (double)(i % m.n[2]) * m.d[2] - at[2 * n + k], x = (double)(i / m.n[2] % m.n[1]) * m.d[1] - at[n + k],
         y = (double)(i / m.n[2] / m.n[1]) * m.d[0] - at[k], d = sqrt(x * x + y * y + z * z) + EPS;
  return m.n[0] > 1 ? 1 / d : 1 / sqrt(d);
}

/* Of the legs and the offset, from the formulas as they are written: angles, and vectors in 3-D. */
__device__ static double leg_weight(const view &m, int64_t i, int64_t s, int64_t r)
{
  double a[3], b[3], w = 1;
  bool three = m.n[0] > 1;
  if (m.offset.on) {
    double cells[2];
    for (int c = 0; c < 2; c++)
      cells[c] = m.n[c] > 1 ? floor(m.src[c * m.ns + s] / m.d[c]) - floor(m.rec[c * m.nr + r] / m.d[c]) : 0;
    double v = sqrt(cells[0] * cells[0] + cells[1] * cells[1]) / (double)(i % m.n[2] + 1);
    w = taper(m.offset.hard ? m.offset.max : m.offset.min, m.offset.max, v);
  }
  if (!m.dynamic && !m.angle.on) return w;
  if (m.ls) return w * kir_pair(kir_parts(m.dynamic, three, m.angle.on), m.ls + (i * m.ns + s) * 3, m.lr + (i * m.nr + r) * 3);
  ray(m, m.ts, m.ns, i, s, a), ray(m, m.tr, m.nr, i, r, b);
  if (!isfinite(a[0] + a[1] + a[2] + b[0] + b[1] + b[2])) return 0;
  double at = atan2(three ? hypot(a[0], a[1]) : a[1], a[2]), bt = atan2(three ? hypot(b[0], b[1]) : b[1], b[2]);
  if (m.angle.on)
    w *= taper(m.angle.min, m.angle.max, fabs(at)) * taper(m.angle.min, m.angle.max, fabs(bt));
  if (!m.dynamic) return w;
  double half = three ? norm3d(a[0] + b[0], a[1] + b[1], a[2] + b[2]) / 2 : cos((at - bt) / 2);
  double v = m.vel[m.nvel == 1 ? 0 : m.nvel == m.n[2] ? i % m.n[2] : i];
  return w * 2 * half / v * amplitude(m, m.src, m.ns, i, s) * amplitude(m, m.rec, m.nr, i, r);
}

__device__ static double weight(const view &m, int64_t i, int64_t s, int64_t r)
{
  double legs = leg_weight(m, i, s, r);
  if (!(m.amax > 0) || legs == 0) return legs;
  double z = __dmul_rn((double)(i % m.n[2]), m.d[2]), x = __dmul_rn((double)(i / m.n[2] % m.n[1]), m.d[1]),
         y = __dmul_rn((double)(i / m.n[2] / m.n[1]), m.d[0]);
  double my = (m.src[s] + m.rec[r]) / 2, mx = (m.src[m.ns + s] + m.rec[m.nr + r]) / 2,
         mz = (m.src[2 * m.ns + s] + m.rec[2 * m.nr + r]) / 2, v = m.vel[m.nvel == 1 ? 0 : m.nvel == m.n[2] ? i % m.n[2] : i];
  double deep = m.time ? fmax(__dmul_rn(__dmul_rn(v, z), .5), __dmul_rn(__dmul_rn(v, m.d[2]), .5))
                       : fmax(__dsub_rn(z, mz), m.d[2]),
         q = hypot(__dsub_rn(x, mx), __dsub_rn(y, my)) / deep;
  return legs * taper(m.amin, m.amax, q);
}

/* Where point i falls in trace t, and with what weight; false: nowhere. */
__device__ static bool meets(const view &m, int64_t i, int64_t t, int *k, double *f, double *w)
{
  return where(m, i, m.is[t], m.ir[t], k, f) && (*w = weight(m, i, m.is[t], m.ir[t])) != 0;
}

/* A thread a trace, that goes through all points; a thread a point, that goes through all traces. */
__global__ void reference_forward(view m, const double *x, double *y)
{
  int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= m.traces) return;
  for (int64_t i = 0; i < m.ni; i++) {
    int k;
    double f, w;
    if (!meets(m, i, t, &k, &f, &w)) continue;
    y[t * m.nt + k] += w * (1 - f) * x[i];
    if (k + 1 < m.nt) y[t * m.nt + k + 1] += w * f * x[i];
  }
}

__global__ void reference_adjoint(view m, const double *x, double *y)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m.ni) return;
  double sum = 0;
  for (int64_t t = 0; t < m.traces; t++) {
    int k;
    double f, w;
    if (!meets(m, i, t, &k, &f, &w)) continue;
    sum += w * ((1 - f) * x[t * m.nt + k] + (k + 1 < m.nt ? f * x[t * m.nt + k + 1] : 0));
  }
  y[i] = sum;
}

/* Illumination under e (2, nt+1). */
__global__ void reference_light(view m, const double *e, double *y)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m.ni) return;
  double sum = 0;
  for (int64_t t = 0; t < m.traces; t++) {
    int k;
    double f, w;
    if (!meets(m, i, t, &k, &f, &w)) continue;
    sum += w * w * ((1 - f) * (1 - f) * e[k] + 2 * f * (1 - f) * e[m.nt + 1 + k] + f * f * e[k + 1]);
  }
  y[i] = sum;
}

/* Traces that meet a point. */
__global__ void reference_count(view m, const double *, double *y)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m.ni) return;
  double n = 0, f, w;
  int k;
  for (int64_t t = 0; t < m.traces; t++) n += meets(m, i, t, &k, &f, &w);
  y[i] = n;
}

enum { LIGHT = 2, COUNT };              /* beside the directions                                  */

static std::vector<double> reference(const made &m, int dir, const std::vector<double> &x)
{
  const problem &p = m.p;
  size_t n = dir == MOHO_FWD ? (size_t)(m.traces * p.nt) : (size_t)m.ni;
  dev<double> ts(m.trav[0].size()), tr(m.trav[1].size()), src(m.src.size()), rec(m.rec.size()), vel(m.vel.size()),
      in(x.size()), out(n), ls(m.legs[0].size()), lr(m.legs[1].size());
  dev<int64_t> is(m.is.size()), ir(m.ir.size());
  ls.put(m.legs[0]), lr.put(m.legs[1]);
  ts.put(m.trav[0]), tr.put(m.trav[1]), src.put(m.src), rec.put(m.rec), vel.put(m.vel), in.put(x), is.put(m.is),
      ir.put(m.ir);
  view v = { { p.n[0], p.n[1], p.n[2] }, p.ns, p.nr, p.nt, m.d.type == MOHO_F32 ? 23 : 40, (int)m.vel.size(),
             { p.d[0], p.d[1], p.d[2] }, p.dt, p.t0, p.amin, p.amax, p.mode == MOHO_KIRCHHOFF_TIME, m.d.angle,
             m.d.offset, p.dynamic, m.ni, m.traces,
             ts.p, tr.p, src.p, rec.p, vel.p, m.legs[0].empty() ? NULL : ls.p, lr.p, is.p, ir.p };
  CK(cudaMemset(out.p, 0, n * sizeof(double)));
  if (dir == MOHO_FWD) reference_forward<<<(unsigned)((m.traces + 63) / 64), 64>>>(v, in.p, out.p);
  else (dir == LIGHT ? reference_light : dir == COUNT ? reference_count : reference_adjoint)<<<(unsigned)((m.ni + 63) / 64), 64>>>(v, in.p, out.p);
  CK(cudaDeviceSynchronize());
  return out.get();
}

/* ---- shapes to check: every size different, edges and odd cases ---------------------------- */

static const moho_kirchhoff_mode TIME = MOHO_KIRCHHOFF_TIME;
static const moho_kirchhoff_tables COARSE = MOHO_KIRCHHOFF_COARSE, NONE = MOHO_KIRCHHOFF_NONE;
static const problem problems[] = {
    {.name = "plain 2-D", .n = {1, 37, 23}, .d = {10, 10, 10}, .ns = 3, .nr = 5, .nt = 101, .dt = .004, .shift = 3},
    {.name = "2-D", .n = {1, 101, 67}, .d = {10, 10, 10}, .ns = 13, .nr = 45, .nt = 301, .dt = .004, .shift = -7},
    {.name = "2-D spiky",
     .n = {1, 201, 147},
     .d = {10, 10, 10},
     .ns = 11,
     .nr = 35,
     .nt = 601,
     .dt = .004,
     .spiky = true},
    {.name = "one source", .n = {1, 61, 43}, .d = {10, 10, 10}, .ns = 1, .nr = 67, .nt = 201, .dt = .004},
    {.name = "one receiver", .n = {1, 61, 43}, .d = {10, 10, 10}, .ns = 71, .nr = 1, .nt = 201, .dt = .004},
    {.name = "one point", .n = {1, 1, 1}, .d = {10, 10, 10}, .ns = 7, .nr = 9, .nt = 50, .dt = .004, .shift = 2},
    {.name = "one trace", .n = {1, 77, 55}, .d = {10, 10, 10}, .ns = 1, .nr = 1, .nt = 222, .dt = .004},
    {.name = "one row", .n = {1, 501, 1}, .d = {10, 10, 10}, .ns = 5, .nr = 12, .nt = 700, .dt = .004, .plain = true},
    {.name = "one column", .n = {1, 1, 333}, .d = {10, 10, 10}, .ns = 5, .nr = 12, .nt = 700, .dt = .004, .plain = true},
    {.name = "long traces", .n = {1, 41, 37}, .d = {10, 10, 10}, .ns = 3, .nr = 11, .nt = 20000, .dt = .001},
    {.name = "short traces", .n = {1, 101, 67}, .d = {10, 10, 10}, .ns = 3, .nr = 33, .nt = 20, .dt = .004, .shift = 1},
    {.name = "one sample", .n = {1, 31, 17}, .d = {10, 10, 10}, .ns = 3, .nr = 5, .nt = 1, .dt = .004},
    {.name = "two samples", .n = {1, 31, 17}, .d = {10, 10, 10}, .ns = 3, .nr = 5, .nt = 2, .dt = .04},
    {.name = "late start", .n = {1, 91, 67}, .d = {10, 10, 10}, .ns = 5, .nr = 35, .nt = 151, .dt = .004, .t0 = .31},
    {.name = "early start", .n = {1, 91, 67}, .d = {10, 10, 10}, .ns = 5, .nr = 35, .nt = 251, .dt = .004, .t0 = -.2},
    {.name = "fine 2 ms", .n = {1, 101, 87}, .d = {10, 10, 10}, .ns = 9, .nr = 33, .nt = 801, .dt = .002},
    {.name = "fine 1 ms", .n = {1, 101, 87}, .d = {10, 10, 10}, .ns = 9, .nr = 33, .nt = 1601, .dt = .001},
    {.name = "fine 0.1 ms", .n = {1, 41, 37}, .d = {10, 10, 10}, .ns = 5, .nr = 33, .nt = 4001, .dt = .0001, .plain = true},
    {.name = "finest 2 us", .n = {1, 31, 17}, .d = {10, 10, 10}, .ns = 3, .nr = 9, .nt = 200001, .dt = .000002, .plain = true},
    {.name = "3-D", .n = {13, 21, 17}, .d = {12, 10, 8}, .ns = 5, .nr = 29, .nt = 151, .dt = .004},
    {.name = "3-D larger",
     .n = {43, 51, 37},
     .d = {12, 10, 8},
     .ns = 6,
     .nr = 40,
     .nt = 251,
     .dt = .004,
     .spiky = true},
    {.name = "streamer",
     .n = {1, 91, 47},
     .d = {10, 10, 10},
     .ns = 21,
     .nr = 65,
     .nt = 251,
     .dt = .004,
     .list = 1,
     .shift = 4},
    {.name = "zero offset", .n = {1, 91, 47}, .d = {10, 10, 10}, .ns = 75, .nr = 75, .nt = 251, .dt = .004, .list = 2},
    {.name = "zero offset shared",
     .n = {1, 91, 47},
     .d = {10, 10, 10},
     .ns = 75,
     .nr = 75,
     .nt = 251,
     .dt = .004,
     .list = 2,
     .shared = true},
    {.name = "random traces",
     .n = {1, 91, 47},
     .d = {10, 10, 10},
     .ns = 25,
     .nr = 33,
     .nt = 251,
     .dt = .004,
     .list = 3,
     .shift = -2},
    {.name = "3-D random traces",
     .n = {13, 21, 17},
     .d = {12, 10, 8},
     .ns = 15,
     .nr = 29,
     .nt = 151,
     .dt = .004,
     .list = 3},
    {.name = "own times f32", .n = {1, 77, 47}, .d = {10, 10, 10}, .ns = 5, .nr = 33, .nt = 251, .dt = .004, .byot = 1},
    {.name = "own times f64 turned",
     .n = {1, 77, 47},
     .d = {10, 10, 10},
     .ns = 5,
     .nr = 33,
     .nt = 251,
     .dt = .004,
     .byot = 2},
    {.name = "times with gaps",
     .n = {1, 77, 47},
     .d = {10, 10, 10},
     .ns = 11,
     .nr = 33,
     .nt = 151,
     .dt = .004,
     .byot = 3},
    {.name = "gaps, 2 ms", .n = {1, 77, 47}, .d = {10, 10, 10}, .ns = 11, .nr = 33, .nt = 251, .dt = .002, .byot = 3},
    {.name = "gaps, list",
     .n = {1, 77, 47},
     .d = {10, 10, 10},
     .ns = 11,
     .nr = 33,
     .nt = 151,
     .dt = .004,
     .list = 1,
     .byot = 3},
    {.name = "whole samples",
     .n = {1, 77, 47},
     .d = {10, 10, 10},
     .ns = 11,
     .nr = 33,
     .nt = 81,
     .dt = .0078125,
     .byot = 4},
    {.name = "whole samples, start",
     .n = {1, 77, 47},
     .d = {10, 10, 10},
     .ns = 11,
     .nr = 33,
     .nt = 41,
     .dt = .0078125,
     .t0 = .3125,
     .byot = 4},
    {.name = "time", .n = {1, 77, 147}, .d = {10, 10, .004}, .ns = 5, .nr = 33, .nt = 251, .dt = .004, .mode = TIME},
    {.name = "time v(t)",
     .n = {1, 77, 147},
     .d = {10, 10, .004},
     .ns = 5,
     .nr = 33,
     .nt = 251,
     .dt = .004,
     .mode = TIME,
     .vel = 1},
    {.name = "time v(x, t) 3-D",
     .n = {11, 27, 47},
     .d = {11, 10, .004},
     .ns = 5,
     .nr = 33,
     .nt = 151,
     .dt = .004,
     .mode = TIME,
     .vel = 2},
    {.name = "aperture",
     .n = {1, 91, 67},
     .d = {10, 10, 10},
     .ns = 5,
     .nr = 35,
     .nt = 251,
     .dt = .004,
     .amin = .4,
     .amax = .83},
    {.name = "aperture 3-D",
     .n = {13, 21, 17},
     .d = {12, 10, 8},
     .ns = 5,
     .nr = 29,
     .nt = 151,
     .dt = .004,
     .amin = .41,
     .amax = .93},
    {.name = "aperture time",
     .n = {1, 77, 147},
     .d = {10, 10, .004},
     .ns = 5,
     .nr = 33,
     .nt = 251,
     .dt = .004,
     .mode = TIME,
     .vel = 1,
     .amin = .5,
     .amax = .77},
#define A2(N, X, Z, NS, NR, NT, ...)                                                                                   \
  {.name = "aperture, " N, .n = {1, X, Z}, .d = {10, 10, 10}, .ns = NS, .nr = NR, .nt = NT, .dt = .004, __VA_ARGS__}
    A2("regular", 201, 147, 13, 41, 451, .amin = .8, .amax = 1),
    A2("narrow", 201, 147, 21, 45, 451, .amin = .1, .amax = .2),
    A2("narrow, spiky", 201, 147, 21, 45, 451, .amin = .1, .amax = .2, .spiky = true),
    A2("hard", 91, 67, 5, 35, 251, .amin = .6137, .amax = .6137),
    A2("receivers in registers", 91, 67, 71, 8, 251, .amin = .3, .amax = .6),
    A2("streamer", 191, 67, 21, 65, 251, .list = 1, .amin = .3, .amax = .61),
    A2("zero offset", 191, 67, 75, 75, 251, .list = 2, .amin = .3, .amax = .61, .shared = true),
    A2("random traces, spiky", 91, 67, 25, 33, 251, .list = 3, .amin = .3, .amax = .61,
       .spiky = true),
    A2("late start", 91, 67, 5, 35, 151, .t0 = .31, .amin = .4, .amax = .83),
    A2("one trace", 77, 55, 1, 1, 222, .amin = .4, .amax = .83),
    A2("times with gaps", 77, 47, 11, 33, 151, .byot = 3, .amin = .5, .amax = 1.2),
    {.name = "aperture, 2 ms", .n = {1, 101, 87}, .d = {10, 10, 10}, .ns = 9, .nr = 33, .nt = 801, .dt = .002, .amin = .3,
     .amax = .7},
    {.name = "aperture, 1 ms", .n = {1, 101, 87}, .d = {10, 10, 10}, .ns = 9, .nr = 33, .nt = 1601, .dt = .001, .amin = .3,
     .amax = .7},
    {.name = "aperture, 3-D larger", .n = {43, 51, 37}, .d = {12, 10, 8}, .ns = 6, .nr = 40, .nt = 251, .dt = .004,
     .amin = .3, .amax = .7},
    {.name = "aperture, time v(x, t) 3-D", .n = {11, 27, 47}, .d = {11, 10, .004}, .ns = 5, .nr = 33, .nt = 151,
     .dt = .004, .mode = TIME, .vel = 2, .amin = .4, .amax = .9},
    {.name = "marks in gaps", .n = {1, 77, 47}, .d = {10, 10, 10}, .ns = 11, .nr = 33, .nt = 151, .dt = .004, .byot = 5},
    {.name = "marks in gaps, list", .n = {1, 77, 47}, .d = {10, 10, 10}, .ns = 11, .nr = 33, .nt = 151, .dt = .004,
     .list = 1, .byot = 5},
    {.name = "far behind the record", .n = {1, 401, 301}, .d = {100, 100, 100}, .ns = 3, .nr = 9, .nt = 201, .dt = .004,
     .plain = true},
#define D2(N, X, Z, NS, NR, NT, ...)                                                                                   \
  {.name = N, .n = {1, X, Z}, .d = {10, 10, 10}, .ns = NS, .nr = NR, .nt = NT, .dt = .004, __VA_ARGS__}
    {.name = "dynamic", .n = {1, 77, 47}, .d = {10, 12, 9}, .ns = 11, .nr = 33, .nt = 151, .dt = .004, .dynamic = true},
    D2("dynamic, 70 degrees", 137, 93, 9, 21, 301, .shift = 5, .dynamic = true, .angle = 70),
    D2("dynamic, 25 degrees", 201, 147, 21, 45, 451, .shift = -3, .dynamic = true, .angle = 25),
    D2("dynamic, spiky", 201, 147, 11, 35, 601, .spiky = true, .dynamic = true, .angle = 70),
    D2("dynamic, receivers in registers", 91, 67, 71, 8, 251, .dynamic = true, .angle = 60),
    D2("dynamic, one trace", 77, 55, 1, 1, 222, .dynamic = true, .angle = 70),
    D2("dynamic, lateral", 137, 93, 21, 10, 301, .amin = .8, .amax = 1.2, .dynamic = true, .angle = 60),
    D2("dynamic, lateral, list", 91, 67, 25, 33, 251, .list = 3, .amin = .3, .amax = .61, .dynamic = true, .angle = 50),
    D2("dynamic, all limits", 137, 93, 21, 10, 301, .amin = .8, .amax = 1.2, .dynamic = true, .angle = 60, .offset = 1.7),
    D2("dynamic, list", 77, 47, 11, 33, 151, .list = 3, .dynamic = true, .angle = 50),
    D2("dynamic, streamer", 191, 67, 21, 65, 251, .list = 1, .dynamic = true, .angle = 30),
    D2("dynamic, late start", 91, 67, 5, 35, 151, .t0 = .31, .dynamic = true, .angle = 70),
    D2("dynamic, gaps", 77, 47, 11, 33, 151, .byot = 3, .dynamic = true, .angle = 70),
    D2("dynamic, gaps, list", 77, 47, 11, 33, 151, .list = 1, .byot = 3, .dynamic = true, .angle = 70),
    D2("dynamic, shared", 77, 47, 13, 13, 151, .shared = true, .dynamic = true, .hard = true, .offset = 1),
    D2("dynamic, shared, 40 degrees", 77, 47, 13, 13, 151, .shared = true, .dynamic = true, .angle = 40),
    {.name = "dynamic, 2 ms", .n = {1, 101, 87}, .d = {10, 10, 10}, .ns = 9, .nr = 33, .nt = 801, .dt = .002, .dynamic = true,
     .angle = 60},
    {.name = "dynamic, fine", .n = {1, 41, 37}, .d = {10, 10, 10}, .ns = 5, .nr = 33, .nt = 4001, .dt = .0001,
     .plain = true, .dynamic = true, .angle = 70},
    {.name = "dynamic, 3-D", .n = {21, 33, 17}, .d = {11, 10, 9}, .ns = 7, .nr = 12, .nt = 151, .dt = .004, .plain = true,
     .dynamic = true, .angle = 65},
    {.name = "dynamic, 3-D, list", .n = {21, 33, 17}, .d = {11, 10, 9}, .ns = 7, .nr = 12, .nt = 151, .dt = .004, .list = 3,
     .amin = .6, .amax = 1.1, .plain = true, .dynamic = true, .offset = 2},
    D2("angles", 77, 47, 11, 33, 151, .angle = 55),
    D2("angles, narrow", 201, 147, 21, 45, 451, .angle = 20),
    D2("angles, list", 91, 67, 25, 33, 251, .list = 3, .angle = 45),
    {.name = "angles, 3-D", .n = {21, 33, 17}, .d = {11, 10, 9}, .ns = 7, .nr = 12, .nt = 151, .dt = .004, .angle = 50},
    D2("offsets", 77, 47, 11, 33, 151, .offset = 1.3),
    D2("offsets, hard, spiky", 201, 147, 21, 45, 451, .spiky = true, .hard = true, .offset = .7),
    D2("offsets, list", 91, 67, 25, 33, 251, .list = 3, .offset = .9),
    D2("offsets, lateral", 137, 93, 21, 10, 301, .amin = .8, .amax = 1.2, .offset = 1.7),
    {.name = "offsets, 3-D", .n = {21, 33, 17}, .d = {11, 10, 9}, .ns = 7, .nr = 12, .nt = 151, .dt = .004, .offset = 1.6},
    {.name = "offsets, time", .n = {1, 77, 147}, .d = {10, 10, .004}, .ns = 5, .nr = 33, .nt = 251, .dt = .004, .mode = TIME,
     .vel = 1, .amin = .5, .amax = .77, .offset = 1.1},
    D2("aperture, slope", 137, 93, 21, 10, 301, .amin = .5, .amax = .9, .slope = 3),
#undef D2
#undef A2
/* Rows made as they are needed: those of large images a few boxes at a time. */
#define F2(N, X, Z, NS, NR, NT, TABLES, ...)                                                                            \
  {.name = N, .n = {1, X, Z}, .d = {10, 10, 10}, .ns = NS, .nr = NR, .nt = NT, .dt = .004, __VA_ARGS__ __VA_OPT__(,) .tables = TABLES}
#define F3(N, X, NS, NR, NT, TABLES, ...)                                                                               \
  {.name = N, .n = {X, X + 12, X - 5}, .d = {11, 10, 9}, .ns = NS, .nr = NR, .nt = NT, .dt = .004, __VA_ARGS__ __VA_OPT__(,) .tables = TABLES}
    F2("coarse", 401, 203, 23, 67, 451, COARSE, .shift = -3),
    {.name = "coarse, step 3", .n = {1, 102, 67}, .d = {10, 10, 10}, .ns = 13, .nr = 45, .nt = 301, .dt = .004,
     .tables = COARSE, .step = 3},
    {.name = "coarse, step 50", .n = {1, 102, 47}, .d = {10, 10, 10}, .ns = 13, .nr = 45, .nt = 301, .dt = .004,
     .tables = COARSE, .step = 50},
    F2("coarse, list", 191, 67, 25, 133, 251, COARSE, .list = 3),
    F2("coarse, late start", 191, 67, 25, 133, 151, COARSE, .t0 = .31),
    F2("coarse, lateral", 237, 93, 21, 40, 301, COARSE, .amin = .8, .amax = 1.2),
    F2("coarse, dynamic", 401, 203, 23, 67, 451, COARSE, .dynamic = true, .angle = 70),
    F2("coarse, dynamic, list", 191, 87, 25, 133, 251, COARSE, .list = 3, .dynamic = true, .angle = 70),
    F2("coarse, dynamic, all limits", 137, 93, 21, 40, 301, COARSE, .amin = .8, .amax = 1.2, .dynamic = true, .offset = 1.7),
    F2("coarse, angles", 137, 93, 21, 40, 301, COARSE, .angle = 40),
    {.name = "coarse, fine", .n = {1, 41, 37}, .d = {10, 10, 10}, .ns = 5, .nr = 33, .nt = 4001, .dt = .0001, .plain = true,
     .tables = COARSE},
    F3("coarse, 3-D", 33, 7, 23, 151, COARSE),
    F3("coarse, 3-D, list", 33, 7, 23, 151, COARSE, .list = 3),
    F3("coarse, dynamic, 3-D", 27, 7, 12, 151, COARSE, .plain = true, .dynamic = true, .angle = 65),
    F2("none", 401, 203, 23, 67, 451, NONE, .shift = 4),
    F2("none, streamer", 291, 87, 45, 133, 251, NONE, .list = 1),
    F2("none, dynamic", 301, 203, 23, 67, 451, NONE, .dynamic = true, .angle = 60),
    F2("none, dynamic, shared", 177, 47, 43, 43, 151, NONE, .shared = true, .dynamic = true, .hard = true, .offset = 1),
    F3("none, dynamic, 3-D", 27, 7, 12, 151, NONE, .plain = true, .dynamic = true, .angle = 65),
    F3("none, 3-D, spiky", 33, 7, 43, 151, NONE, .spiky = true),
    {.name = "none, time", .n = {1, 177, 347}, .d = {10, 10, .004}, .ns = 25, .nr = 53, .nt = 251, .dt = .004, .mode = TIME,
     .vel = 2, .amin = .5, .amax = .77, .tables = NONE},
/* The kernels of few traces, and of few points. */
#define T2(N, X, Z, NS, NR, NT, ...)                                                                                     \
  {.name = "few traces" N, .n = {1, X, Z}, .d = {10, 10, 10}, .ns = NS, .nr = NR, .nt = NT, .dt = .004 __VA_OPT__(,) __VA_ARGS__}
#define P3(N, Y, X, Z, NS, NR, NT, ...)                                                                                  \
  {.name = "few points" N, .n = {Y, X, Z}, .d = {11, 10, 9}, .ns = NS, .nr = NR, .nt = NT, .dt = .004 __VA_OPT__(,) __VA_ARGS__}
    T2("", 101, 67, 1, 2, 301, .shift = -7),
    T2(", spiky", 201, 147, 3, 4, 601, .spiky = true, .shift = 3),
    T2(", more tiles than blocks", 1001, 803, 2, 3, 1301),
    T2(", list", 91, 67, 25, 33, 251, .list = 5),
    T2(", list of one", 91, 67, 25, 33, 251, .list = 6),
    T2(", shared", 77, 47, 3, 3, 151, .shared = true),
    T2(", gaps", 77, 47, 3, 4, 151, .byot = 3),
    T2(", marks in gaps", 77, 47, 25, 33, 151, .list = 5, .byot = 5),
    T2(", whole samples", 77, 47, 3, 4, 151, .byot = 4),
    T2(", late start", 91, 67, 3, 4, 151, .t0 = .31),
    T2(", early start", 91, 67, 3, 4, 251, .t0 = -.2),
    T2(", one row", 501, 1, 3, 4, 700, .plain = true),
    T2(", one column", 1, 333, 3, 4, 700, .plain = true),
    {.name = "few traces, long", .n = {1, 41, 37}, .d = {10, 10, 10}, .ns = 3, .nr = 4, .nt = 20000, .dt = .001},
    {.name = "few traces, fine", .n = {1, 41, 37}, .d = {10, 10, 10}, .ns = 3, .nr = 4, .nt = 4001, .dt = .0001},
    {.name = "few traces, finest", .n = {1, 31, 17}, .d = {10, 10, 10}, .ns = 3, .nr = 4, .nt = 200001, .dt = .000002, .plain = true},
    {.name = "few traces, 3-D", .n = {13, 21, 17}, .d = {12, 10, 8}, .ns = 3, .nr = 4, .nt = 151, .dt = .004},
    {.name = "few traces, time", .n = {1, 77, 147}, .d = {10, 10, .004}, .ns = 4, .nr = 3, .nt = 251, .dt = .004, .mode = TIME,
     .vel = 2, .amin = .5, .amax = .77},
    T2(", lateral", 137, 93, 3, 4, 301, .amin = .8, .amax = 1.2),
    T2(", hard", 91, 67, 3, 4, 251, .amin = .6137, .amax = .6137),
    T2(", offsets", 77, 47, 3, 4, 151, .hard = true, .offset = 1.3),
    T2(", angles", 77, 47, 3, 4, 151, .angle = 55),
    T2(", dynamic", 137, 93, 3, 4, 301, .shift = 5, .dynamic = true, .angle = 70),
    T2(", dynamic, list, all limits", 137, 93, 21, 10, 301, .list = 5, .amin = .8, .amax = 1.2, .dynamic = true, .angle = 60, .offset = 1.7),
    T2(", dynamic, gaps", 77, 47, 3, 4, 151, .byot = 3, .dynamic = true, .angle = 70),
    {.name = "few traces, dynamic, 3-D", .n = {21, 33, 17}, .d = {11, 10, 9}, .ns = 3, .nr = 4, .nt = 151, .dt = .004, .plain = true,
     .dynamic = true, .angle = 65},
    T2(", coarse", 1201, 903, 3, 4, 1451, .tables = COARSE),
    T2(", coarse, dynamic, list", 191, 87, 25, 133, 251, .list = 5, .dynamic = true, .angle = 70, .tables = COARSE),
    T2(", none", 401, 203, 3, 4, 451, .tables = NONE),
    T2(", none, dynamic", 301, 203, 3, 4, 451, .dynamic = true, .angle = 60, .tables = NONE),
    P3("", 1, 3, 7, 9, 13, 50, .shift = 2),
    P3(", many traces", 1, 1, 1, 71, 93, 50, .shift = -3),
    P3(", list", 1, 5, 3, 9, 13, 50, .list = 3),
    P3(", 3-D", 2, 3, 4, 9, 13, 50),
    P3(", gaps", 1, 3, 8, 9, 13, 50, .byot = 3),
    {.name = "few points, fine", .n = {1, 4, 8}, .d = {10, 10, 10}, .ns = 9, .nr = 13, .nt = 4001, .dt = .00001, .plain = true},
    P3(", all limits", 1, 4, 8, 9, 13, 50, .amin = .8, .amax = 2.2, .dynamic = true, .angle = 60, .offset = 4),
    P3(", dynamic, 3-D, list", 2, 3, 4, 9, 13, 50, .list = 3, .plain = true, .dynamic = true, .angle = 65),
    P3(", coarse", 1, 3, 7, 9, 13, 50, .tables = COARSE),
    P3(", none, many sides", 1, 4, 8, 3000, 9, 50, .list = 3, .tables = NONE),
#undef P3
#undef T2
#undef F2
#undef F3
};
