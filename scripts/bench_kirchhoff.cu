/* Checks and times the CUDA Kirchhoff kernels by themselves, without the rest of Moho: for a machine that has a card
   and a driver only.

     make -C BUILD bench_kirchhoff     builds it (from the module's objects, for one architecture: configure with
                                       NVCC_GENCODE)
     bench_kirchhoff check [NAME]      every shape against a reference in double; two runs; dot test
     bench_kirchhoff time [SECONDS [verify] [NAME]]
                                       10-run medians and sustained rates (default 0.5 s), Gupd/s; with errors against
                                       the reference and the dot test, or only of problems called so
     bench_kirchhoff touch I N [NAME]  every Nth shape from the Ith on, or those of them called so, made small, once through all
                                       kernels and without the reference: for a sanitizer

   An update is one (trace, image point) pair. Whole applications: output written, data prepared, tables resident. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <random>
#include <string>
#include <vector>
#include "kirchhoff_cuda_few.cuh"

extern "C" const struct moho_kirchhoff_kernels moho_cuda_kirchhoff;
static const struct moho_kirchhoff_kernels *K = &moho_cuda_kirchhoff;

/* ---- the little of the core that kernels call ------------------------------------------- */

static moho_status host_fail(moho_status st, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  return st;
}
static size_t host_size(moho_dtype t) { return t == MOHO_F32 || t == MOHO_I32 ? 4 : t == MOHO_C128 ? 16 : 8; }
static void *host_take(moho_lane *, size_t) { return NULL; }
static bool host_stopped(void) { return false; }
static moho_status host_block_new(moho_ctx *c, size_t bytes, moho_block **b)
{
  *b = (moho_block *)calloc(1, sizeof **b);
  (*b)->bytes = bytes;
  return c->be->alloc(c->dev, bytes, &(*b)->p);
}
static void host_block_unref(moho_block *b)
{
  if (b) cudaFree(b->p);
  free(b);
}
static const moho_host host = {.abi = MOHO_BACKEND_ABI,
                               .fail = host_fail,
                               .dtype_size = host_size,
                               .lane_take = host_take,
                               .stopped = host_stopped,
                               .block_new = host_block_new,
                               .block_unref = host_block_unref,
                               .copy_bytes = nullptr,
                               .block_locked = nullptr, /* nothing is kept on the host here */
                               .lane_put = nullptr};

static moho_ctx ctx;
static moho_lane lane, *lanes[1] = { &lane };
static cudaStream_t stream;

#define CK(x)                                                                                                          \
  do {                                                                                                                 \
    if ((x) != 0) {                                                                                                    \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(cudaGetLastError()));                      \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static moho_status alloc(void *, size_t bytes, void **p)
{
  return cudaMalloc(p, bytes) == cudaSuccess ? MOHO_OK : host_fail(MOHO_ENOMEM, "out of memory for %zu bytes", bytes);
}
static moho_status put(void *, void *, void *dst, const void *src, size_t bytes, bool *under_way)
{
  *under_way = false;
  return cudaMemcpy(dst, src, bytes, cudaMemcpyHostToDevice) == cudaSuccess ? MOHO_OK
                                                                            : host_fail(MOHO_EDEVICE, "a copy failed");
}

static moho_status sync(void *, void *stream)
{
  return cudaStreamSynchronize((cudaStream_t)stream) == cudaSuccess ? MOHO_OK : host_fail(MOHO_EDEVICE, "a kernel failed");
}

static void open_device(void)
{
  static moho_backend be;
  be.alloc = alloc, be.put = put, be.sync = sync;
  cuda_host = &host;
  ctx.be = &be, ctx.nlanes = 1, ctx.lane = lanes, lane.ctx = &ctx;
  CK(cudaSetDevice(0));
  CK(cudaStreamCreate(&stream));
  lane.stream = stream;
}

template<typename T> struct dev {
  T *p = NULL;
  size_t n;
  explicit dev(size_t n_) : n(n_) { CK(cudaMalloc(&p, (n ? n : 1) * sizeof(T))); }
  dev(const dev &) = delete;
  ~dev() { cudaFree(p); }
  void put(const std::vector<T> &v) { CK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice)); }
  std::vector<T> get() const
  {
    std::vector<T> v(n);
    CK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }
  void poison() { CK(cudaMemset(p, 0xff, (n ? n : 1) * sizeof(T))); }
};

#include "bench_kirchhoff.cuh"

/* ---- applying -------------------------------------------------------------------------------- */

template<typename R> struct runner {
  const made &m;
  int64_t ld;
  dev<R> x, y, rows;
  dev<char> work;
  explicit runner(const made &q)
      : m(q), ld(K->ld(q.plan)), x((size_t)q.ni), y((size_t)(q.traces * q.p.nt)),
        rows((size_t)(q.traces * K->ld(q.plan))), work(std::max(K->work(q.plan, MOHO_FWD), K->work(q.plan, MOHO_ADJ)))
  {
  }
  void forward(double alpha, bool add, int64_t shift)
  {
    CK(K->forward(m.plan, &lane, x.p, alpha, add, shift, y.p, m.p.nt, work.p));
  }
  void adjoint(double alpha, bool add, int64_t shift)
  {
    CK(K->adjoint(m.plan, &lane, y.p, shift, rows.p, alpha, add, x.p, work.p));
  }
  void adjoint_rows(double alpha) { CK(K->adjoint(m.plan, &lane, NULL, 0, rows.p, alpha, false, x.p, work.p)); }
};

template<typename R> static std::vector<R> normal(size_t n, bool spiky)
{
  std::normal_distribution<double> g;
  std::vector<R> v(n);
  const size_t drawn = std::min(n, (size_t)1 << 24);   /* longer ones repeat: drawing takes longer than what is timed */
  for (size_t i = 0; i < drawn; i++) v[i] = (R)(g(rng) * (spiky && rng() % 1000 == 0 ? 300 : 1));
  for (size_t i = drawn; i < n; i++) v[i] = v[i - drawn];
  return v;
}
template<typename A, typename B> static double distance(const std::vector<A> &a, const std::vector<B> &b)
{
  double s = 0, n = 0;
  for (size_t i = 0; i < a.size(); i++) s += pow((double)a[i] - (double)b[i], 2), n += (double)b[i] * (double)b[i];
  return n > 0 ? sqrt(s / n) : sqrt(s);
}
template<typename A, typename B> static double dot(const std::vector<A> &a, const std::vector<B> &b)
{
  double s = 0;
  for (size_t i = 0; i < a.size(); i++) s += (double)a[i] * (double)b[i];
  return s;
}
template<typename R> static std::vector<R> mixed(const std::vector<R> &a)   /* a / |a| + r / |r| */
{
  std::vector<R> r = normal<R>(a.size(), false);
  double na = sqrt(dot(a, a)), nr = sqrt(dot(r, r));
  for (size_t i = 0; i < a.size(); i++) r[i] = (R)((na > 0 ? (double)a[i] / na : 0) + (double)r[i] / nr);
  return r;
}
template <typename R> static bool same(const std::vector<R> &a, const std::vector<R> &b)
{
  return memcmp(a.data(), b.data(), a.size() * sizeof(R)) == 0;
}

static int failures, checks;
static void expect(const made &m, const char *what, double got, double limit)
{
  checks++;
  if (got <= limit) return;
  failures++;
  printf("FAIL %s %s: %s %.3g above %.3g\n", m.p.name, m.d.type == MOHO_F32 ? "f32" : "f64", what, got, limit);
}

template <typename R>
static std::vector<double> shifted(const made &m, const std::vector<R> &y, int64_t by) /* y[t + by] */
{
  std::vector<double> v(y.size(), 0.);
  for (int64_t i = 0; i < m.traces; i++)
    for (int64_t t = 0; t < m.p.nt; t++)
      if (t + by >= 0 && t + by < m.p.nt) v[(size_t)(i * m.p.nt + t)] = (double)y[(size_t)(i * m.p.nt + t + by)];
  return v;
}

static const char *forward_name(const made &m)
{
  if (kc_few(m.plan)) return kc_few_traces(m.plan) ? "few traces" : "few points";
  return m.plan->fast_forward ? m.plan->long_sum ? "fast64" : "fast" : "plain";
}

static const char *adjoint_name(const made &m)
{
  if (kc_few(m.plan)) return kc_few_traces(m.plan) ? "few traces" : "few points";
  return m.plan->fast_adjoint ? "fast" : "plain";
}

template<typename R> static void check_light(const made &m, runner<R> &r)
{
  std::vector<double> e = normal<double>(2 * (size_t)(m.p.nt + 1), false);
  for (auto &v : e) v = fabs(v);
  dev<double> energies(e.size());
  energies.put(e), r.x.poison();
  CK(K->illumination(m.plan, &lane, energies.p, r.x.p, r.work.p));
  expect(m, "illumination differs from the reference by", distance(r.x.get(), reference(m, LIGHT, e)),
         sizeof(R) == 4 ? 2e-6 : 1e-10);
}

template<typename R> static void check(const problem &p, bool print)
{
  made m;
  moho_dtype type = sizeof(R) == 4 ? MOHO_F32 : MOHO_F64;
  make_problem(m, p, type);
  if (strstr(p.name, "few ")) expect(m, "kernels are not those of few", kc_few(m.plan) ? 0 : 1, 0);
  else if (sizeof(R) == 4 && !p.plain && !kc_few(m.plan))
    expect(m, "kernels are not the fast ones", m.plan->fast_forward && m.plan->fast_adjoint ? 0 : 1, 0);
  double tol = sizeof(R) == 4 ? 2e-6 : 1e-10, tight = sizeof(R) == 4 ? 1e-6 : 1e-12;
  runner<R> r(m);
  std::vector<R> x = normal<R>((size_t)m.ni, p.spiky), d = normal<R>((size_t)(m.traces * p.nt), false), y, y2, z, z2;
  std::vector<double> rx(x.begin(), x.end()), ry = reference(m, MOHO_FWD, rx);
  r.x.put(x), r.y.poison(), r.work.poison();
  r.forward(1, false, 0), y = r.y.get();
  r.y.poison(), r.forward(1, false, 0), y2 = r.y.get();
  double ef = distance(y, ry);
  expect(m, "forward differs from the reference by", ef, tol);
  expect(m, "forward runs differ", same(y, y2) ? 0 : 1, 0);
  r.y.put(d), r.forward(-0.5, true, p.shift), y2 = r.y.get();
  std::vector<double> want = shifted(m, ry, -p.shift);
  for (size_t i = 0; i < want.size(); i++) want[i] = (double)d[i] - 0.5 * want[i];
  expect(m, "forward, added with a shift, differs by", distance(y2, want), tol);
  std::vector<R> v = mixed(y);
  std::vector<double> rz = reference(m, MOHO_ADJ, std::vector<double>(v.begin(), v.end()));
  r.y.put(v), r.x.poison(), r.rows.poison(), r.work.poison();
  r.adjoint(1, false, 0), z = r.x.get();
  r.x.poison(), r.rows.poison(), r.adjoint(1, false, 0), z2 = r.x.get();
  double ea = distance(z, rz);
  expect(m, "adjoint differs from the reference by", ea, tol);
  expect(m, "adjoint runs differ", same(z, z2) ? 0 : 1, 0);
  double lhs = dot(y, v), rhs = dot(x, z), scale = sqrt(dot(y, y) * dot(v, v)),
         ed = scale > 0 ? fabs(lhs - rhs) / scale : fabs(lhs - rhs);
  expect(m, "dot test is off by", ed, tight);
  std::vector<R> x2 = normal<R>((size_t)m.ni, false);
  r.x.put(x2), r.rows.poison(), r.adjoint(2, true, p.shift), z2 = r.x.get();
  std::vector<double> rs = reference(m, MOHO_ADJ, shifted(m, v, p.shift));
  for (size_t i = 0; i < rs.size(); i++) rs[i] = (double)x2[i] + 2 * rs[i];
  expect(m, "adjoint, added with a shift, differs by", distance(z2, rs), tol);
  /* rows that are there already */
  std::vector<R> rows((size_t)(m.traces * r.ld), (R)NAN);
  for (int64_t i = 0; i < m.traces; i++)
    for (int64_t t = 0; t < p.nt; t++) rows[(size_t)(i * r.ld + t)] = v[(size_t)(i * p.nt + t)];
  r.rows.put(rows), r.x.poison(), r.adjoint_rows(1), z2 = r.x.get();
  expect(m, "adjoint of rows differs", same(z, z2) ? 0 : 1, 0);
  check_light<R>(m, r);
  if (print)
    printf("%-22s %s fwd %s %.2e  adj %s %.2e  dot %.1e  panels %dx%dx%d of %d, window %d, tile %dx%dx%d\n", p.name,
           sizeof(R) == 4 ? "f32" : "f64", forward_name(m), ef, adjoint_name(m), ea, ed, m.plan->panel.count[0], m.plan->panel.count[1],
           m.plan->panel.count[2], m.plan->panel.per, m.plan->window, m.plan->tile.size[0], m.plan->tile.size[1],
           m.plan->tile.size[2]);
  fflush(stdout);
  drop(m);
}

template <typename R> static void touch(const problem &p)
{
  made m;
  make_problem(m, p, sizeof(R) == 4 ? MOHO_F32 : MOHO_F64);
  runner<R> r(m);
  dev<double> energies(2 * (size_t)(p.nt + 1));
  energies.put(std::vector<double>(energies.n, 1.));
  r.x.put(normal<R>((size_t)m.ni, p.spiky)), r.forward(1, false, 0);
  r.rows.put(std::vector<R>(r.rows.n)), r.adjoint(1, false, p.shift);
  CK(K->illumination(m.plan, &lane, energies.p, r.x.p, r.work.p));
  CK(cudaDeviceSynchronize());
  printf("%s %s: %s forward, %s adjoint\n", p.name, sizeof(R) == 4 ? "f32" : "f64", forward_name(m), adjoint_name(m));
  fflush(stdout);
  drop(m);
}

/* Every step-th problem, or those of a name. */
static void touch_all(size_t first, size_t step, const char *name)
{
  for (size_t i = first; i < sizeof problems / sizeof problems[0]; i += step) {
    problem p = problems[i];
    if (name && !strstr(p.name, name)) continue;
    const int most[] = { 7, p.n[0] > 1 ? 9 : 39, p.n[0] > 1 ? 11 : 29 };
    for (int j = 0; j < 3; j++) p.n[j] = std::min(p.n[j], most[j]);
    p.ns = std::min(p.ns, 9), p.nr = p.shared ? p.ns : std::min(p.nr, 13);
    if (p.dt > .0005) p.nt = std::min(p.nt, 101);
    touch<float>(p), touch<double>(p);
  }
}

static void check_all(const char *only)
{
  for (const problem &p : problems) {
    if (only && !strstr(p.name, only)) continue;
    check<float>(p, true);
    check<double>(p, true);
  }
  printf("%d checks, %d failed\n", checks, failures);
}

/* ---- timing ------------------------------------------------------------------------------------ */

template<typename F> static double run_for(F f, int n)
{
  cudaEvent_t a, b;
  float ms;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a, stream));
  for (int i = 0; i < n; i++) f();
  CK(cudaEventRecord(b, stream));
  CK(cudaEventSynchronize(b));
  CK(cudaEventElapsedTime(&ms, a, b));
  cudaEventDestroy(a), cudaEventDestroy(b);
  return ms * 1e-3;
}

/* Errors over all samples, and the dot test in double: |<Kx, v> - <x, K'v>| / (|Kx| |v|), v = Kx / |Kx| + noise. */
template<typename R> static void verify_whole(const made &m, runner<R> &r, const std::vector<R> &x)
{
  r.x.put(x), r.y.poison(), r.forward(1, false, 0);
  std::vector<R> y = r.y.get();
  double ef = distance(y, reference(m, MOHO_FWD, std::vector<double>(x.begin(), x.end())));
  std::vector<R> v = mixed(y);
  r.y.put(v), r.x.poison(), r.adjoint(1, false, 0);
  std::vector<R> z = r.x.get();
  double ea = distance(z, reference(m, MOHO_ADJ, std::vector<double>(v.begin(), v.end())));
  printf("  errors: forward %.2e, adjoint %.2e, dot test %.1e\n", ef, ea,
         fabs(dot(y, v) - dot(x, z)) / sqrt(dot(y, y) * dot(v, v)));
}

/* Rows of all boxes, made as an application would, without the kernels that read them. */
template<typename R> static void make_rows(const made &m, runner<R> &r, moho_dir dir)
{
  const moho_kirchhoff *k = m.plan;
  const int boxes = dir == MOHO_FWD && k->fast_forward ? k->panel.n : k->tile.n;
  kc_table_rows of = {};
  for (int box = 0; box < boxes; box += of.n) CK(kc_rows_at(k, stream, dir, box, r.work.p, &of));
  CK(kc_rows_done(k, stream, &of));
}

static const char *only;

/* Times of one application, s. */
struct times_of { double forward, adjoint; };

template<typename R> static times_of measure(const problem &p, double seconds, bool verify)
{
  times_of ms = {};
  if (only && !strstr(p.name, only)) return ms;
  made m;
  make_problem(m, p, sizeof(R) == 4 ? MOHO_F32 : MOHO_F64, verify || p.share);
  runner<R> r(m);
  double updates = (double)m.traces * (double)m.ni;
  std::vector<R> x = normal<R>((size_t)m.ni, p.spiky), d = normal<R>((size_t)(m.traces * p.nt), false);
  printf("%-16s %s %.3g updates, panels %dx%dx%d of %d%s, slices %d, window %d, tables %.1f MiB, rows %.1f MiB, work %.0f MiB%s%s%s%s\n",
         p.name, sizeof(R) == 4 ? "f32" : "f64", updates, m.plan->panel.count[0], m.plan->panel.count[1],
         m.plan->panel.count[2], m.plan->panel.per, m.plan->long_sum ? " long" : "", m.plan->adj_slices, m.plan->window,
         (double)K->table_bytes(m.plan) / 1048576, (double)K->room_bytes(m.plan) / 1048576, (double)r.work.n / 1048576,
         strstr(forward_name(m), "fast") ? "" : ", forward ", strstr(forward_name(m), "fast") ? "" : forward_name(m),
         strstr(adjoint_name(m), "fast") ? "" : ", adjoint ", strstr(adjoint_name(m), "fast") ? "" : adjoint_name(m));
  if (p.share) {
    double n = 0;
    for (double v : reference(m, COUNT, std::vector<double>((size_t)m.ni))) n += v;
    printf("  %.1f %% of the pairs have weight\n", 100 * n / updates);
  }
  for (int dir = 0; dir < 2; dir++) {
    r.x.put(x), r.y.put(d);
    auto f = [&] { dir ? r.adjoint(1, false, 0) : r.forward(1, false, 0); };
    std::vector<double> t;
    for (int i = 0; i < 3; i++) f();
    for (int i = 0; i < 10; i++) t.push_back(run_for(f, 1));
    std::sort(t.begin(), t.end());
    double median = (t[4] + t[5]) / 2, whole = run_for(f, (int)(seconds / median) + 1) / ((int)(seconds / median) + 1);
    (dir ? ms.adjoint : ms.forward) = median;
    printf("  %s: %.1f Gupd/s median (%.3f ms, best %.1f), %.1f sustained", dir ? "adjoint" : "forward",
           updates / median * 1e-9, median * 1e3, updates / t[0] * 1e-9, updates / whole * 1e-9);
    if (p.tables != MOHO_KIRCHHOFF_FULL)
      printf(", rows alone %.3f ms", run_for([&] { make_rows(m, r, dir ? MOHO_ADJ : MOHO_FWD); }, 20) / 20 * 1e3);
    printf("\n");
  }
  if (verify) verify_whole(m, r, x);
  fflush(stdout);
  drop(m);
  return ms;
}

/* What limits save: each beside the same without. */
static void measure_limits(problem p, const char *none, const char *const names[5])
{
  problem limited[5] = { p, p, p, p, p };
  p.name = none, p.share = true;
  times_of whole = measure<float>(p, .05, false);
  limited[0].angle = 60;
  limited[1].amin = .96, limited[1].amax = 1.2, limited[2].amin = limited[2].amax = 1.1;
  limited[3].offset = 1, limited[4].offset = .8, limited[4].hard = true;
  for (int i = 0; i < 5; i++) {
    limited[i].name = names[i], limited[i].share = true;
    times_of t = measure<float>(limited[i], .05, false);
    if (t.forward > 0 && whole.forward > 0)
      printf("  %.2f times as fast, adjoint %.2f\n", whole.forward / t.forward, whole.adjoint / t.adjoint);
  }
}

static void time_all(double seconds, bool verify)
{
  problem large = {.name = "large", .n = {1, 500, 250}, .d = {10, 10, 10}, .ns = 96, .nr = 320, .nt = 1001, .dt = .004};
  problem small = {.name = "small", .n = {1, 300, 150}, .d = {10, 10, 10}, .ns = 40, .nr = 90, .nt = 1001, .dt = .004};
  problem cube = {.name = "3-D", .n = {100, 100, 100}, .d = {10, 10, 10}, .ns = 64, .nr = 400, .nt = 1001, .dt = .004};
  measure<float>(small, seconds, verify);
  measure<float>(large, seconds, verify);
  problem spiky = small, peaks = large;
  spiky.name = "small, spiky", spiky.spiky = true;
  peaks.name = "large, spiky", peaks.spiky = true;
  measure<float>(spiky, seconds / 5, verify);
  measure<float>(peaks, seconds / 5, verify);
  measure<float>(cube, seconds / 5, verify);
  problem fine = large, stream_ = large, zero = small, time = small, aperture = small, wide = large, flat = cube;
  fine.name = "2 ms", fine.ns = 48, fine.nt = 2001, fine.dt = .002;
  stream_.name = "streamer", stream_.list = 1;
  zero.name = "zero offset", zero.ns = zero.nr = 500, zero.list = 2;
  time.name = "time", time.mode = TIME, time.d[2] = .008;
  aperture.name = "aperture, small", aperture.amin = .8, aperture.amax = 1;
  wide.name = "aperture, large", wide.amin = .8, wide.amax = 1;
  flat.name = "aperture, 3-D", flat.amin = .8, flat.amax = 1;
  for (const problem *p : { &fine, &stream_, &zero, &time, &aperture, &wide, &flat }) measure<float>(*p, .05, verify);
  /* tall and flat */
  problem one_s = large, one_r = small, point = large, trace = large, tall = small, odd = large, row = large, many = large;
  one_s.name = "one source", one_s.ns = 1, one_s.nr = 3200;
  one_r.name = "one receiver", one_r.nr = 1, one_r.ns = 3600;
  point.name = "one point", point.n[1] = point.n[2] = 1, point.ns = point.nr = 1000, point.nt = 101;
  trace.name = "one trace", trace.ns = trace.nr = 1, trace.n[1] = 20000, trace.n[2] = 2000, trace.d[1] = .25, trace.d[2] = 1;
  tall.name = "nt 20000", tall.nt = 20000;
  odd.name = "all odd", odd.n[1] = 499, odd.n[2] = 251, odd.ns = 97, odd.nr = 317, odd.nt = 997;
  row.name = "one row", row.n[2] = 1, row.n[1] = 30001, row.d[1] = .1, row.ns = 97;
  many.name = "20 samples", many.nt = 20, many.d[1] = many.d[2] = .2;
  for (const problem *p : { &one_s, &one_r, &point, &trace, &tall, &odd, &row, &many }) measure<float>(*p, .05, verify);
  problem two = trace, listed = trace, points = point, wild = trace;
  two.name = "few: two traces", two.nr = 2;
  listed.name = "few: a list of one trace", listed.ns = 4, listed.nr = 9, listed.list = 6;
  points.name = "few: 5 x 6 points", points.n[1] = 5, points.n[2] = 6, points.ns = 900;
  wild.name = "few: one trace, dynamic", wild.dynamic = true, wild.angle = 70;
  for (int n : { 4, 12, 13, 16 }) {
    static char names[17][24];
    problem some = trace;
    snprintf(names[n], sizeof names[n], "few: %d traces", n), some.name = names[n], some.nr = n, some.n[1] = 5000, some.d[1] = 1;
    measure<float>(some, .05, verify);
  }
  for (const problem *p : { &two, &listed, &points, &wild }) measure<float>(*p, .05, verify);
  trace.name = "few: one trace, double", point.name = "few: one point, double";
  measure<double>(trace, .05, verify), measure<double>(point, .05, verify);
  problem fans[] = { small, large, cube };
  const char *const names[] = { "dynamic, small", "dynamic, large", "dynamic, 3-D" };
  for (int i = 0; i < 3; i++) {
    fans[i].name = names[i], fans[i].dynamic = true, fans[i].angle = 70;
    measure<float>(fans[i], .1, verify && i < 2);
    if (i < 2) fans[i].spiky = true, measure<float>(fans[i], .1, verify);
    fans[i].spiky = false, measure<double>(fans[i], .1, false);
  }
  const char *const kinematic[] = { "half: angles", "half: lateral", "half: lateral, hard", "half: offsets", "half: offsets, hard" };
  const char *const dynamic[] = { "half, dynamic: angles", "half, dynamic: lateral", "half, dynamic: lateral, hard",
                                  "half, dynamic: offsets", "half, dynamic: offsets, hard" };
  measure_limits(large, "half: none", kinematic);
  large.dynamic = true, measure_limits(large, "half, dynamic: none", dynamic), large.dynamic = false;
  for (const problem *p : { &small, &large, &cube }) measure<double>(*p, .1, verify && p == &small);
  /* rows made as they are needed, beside the same from tables; a rolling spread beside all pairs of as many traces */
  problem fresh[] = { large, large, large, fans[1], fans[1], fans[1], cube, cube, time, time };
  const char *const kinds[] = { "afresh: large, full", "afresh: large, coarse", "afresh: large, none", "afresh: dynamic, full",
                                "afresh: dynamic, coarse", "afresh: dynamic, none", "afresh: 3-D, full", "afresh: 3-D, coarse",
                                "afresh: time, full", "afresh: time, none" };
  for (int i = 0; i < 10; i++) {
    const bool coarse = strstr(kinds[i], "coarse"), none = strstr(kinds[i], "none");
    fresh[i].name = kinds[i], fresh[i].rough = 0, fresh[i].tables = coarse ? COARSE : none ? NONE : MOHO_KIRCHHOFF_FULL;
    measure<float>(fresh[i], .05, false);
    if (i < 3) measure<double>(fresh[i], .05, false);
  }
  problem rolling = large, whole = large;
  rolling.ns = 1000, rolling.nr = 2000, rolling.list = 4, whole.ns = 120, whole.nr = 2000;
  for (bool fan : { false, true }) {
    rolling.name = fan ? "rolling, dynamic: 1000 x 240 of 3000" : "rolling: 1000 x 240 of 3000";
    whole.name = fan ? "rolling, dynamic: all pairs" : "rolling: all pairs";
    rolling.dynamic = whole.dynamic = fan, rolling.angle = whole.angle = fan ? 70 : 0;
    measure<float>(rolling, .05, false), measure<float>(whole, .05, false);
  }
}

int main(int argc, char **argv)
{
  open_device();
  const char *what = argc > 1 ? argv[1] : "check";
  if (!strcmp(what, "check")) check_all(argc > 2 ? argv[2] : NULL);
  else if (!strcmp(what, "touch") && argc > 3) touch_all((size_t)atoi(argv[2]), (size_t)atoi(argv[3]), argc > 4 ? argv[4] : NULL);
  else if (!strcmp(what, "time")) {
    bool verify = argc > 3 && !strcmp(argv[3], "verify");
    if (argc > 3 + verify) only = argv[3 + verify];
    time_all(argc > 2 ? atof(argv[2]) : 0.5, verify);
  } else return fprintf(stderr, "bench_kirchhoff check [NAME] | time [SECONDS [verify] [NAME]] | touch I N [NAME]\n"), 2;
  CK(cudaDeviceSynchronize());
  return failures != 0;
}
