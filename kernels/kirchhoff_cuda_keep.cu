/* Tables of sources on the host. An application has those of one launch's sources in its work area, copied up in the order of its
   stream: groups of sources on several lanes have theirs come beside the kernels of others. Receivers, which all groups share, keep
   theirs on the device.

   On the host and in work areas a source's entries are together, so that any sources in a row are one copy: the adjoint's tables are so
   anyway, the forward's kernel is told how far apart sides and points are. */
#include "kirchhoff_cuda_times.cuh"

static constexpr size_t TOGETHER = 64 << 20;   /* bytes of tables at a time while the store is made */

static const kc_boxes *boxes_of(const moho_kirchhoff *k, moho_dir dir) { return dir == MOHO_FWD ? &k->panel : &k->tile; }

int64_t kc_entries(const moho_kirchhoff *k, moho_dir dir) { return (int64_t)boxes_of(k, dir)->n * boxes_of(k, dir)->per; }

/* Of n sides from `first` on: [side][box][point], or four: [box][point/4][side][4]. */
__global__ void sides_kernel(kc_geo g, kc_boxes b, const kc_span *span, uint32_t none, int first, int n, bool four, uint32_t *rel)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, one = (int64_t)b.n * b.per, point = i % one, side = i / one, q;
  if (four) point = i / 4 / n * 4 + i % 4, side = i / 4 % n;
  if (i >= one * n) return;
  int box = (int)(point / b.per), at[3];
  side += first;
  kc_point(g, b, box, (int)(point % b.per), at);
  bool has = kc_time(g, (int)side, at, KC_FRAC, &q);
  rel[i] = has ? (uint32_t)(q - ((int64_t)span[(int64_t)box * g.nside + side].base << KC_FRAC)) : none;
}

static moho_status compute(const moho_kirchhoff *k, moho_dir dir, int first, int n, bool four, uint32_t *to)
{
  uint32_t none = dir == MOHO_FWD ? (uint32_t)(KC_HALF + 2) << KC_FRAC : kc_no_time(k);
  sides_kernel<<<KC_GRID(n * kc_entries(k, dir), 256), 256, 0, kc_stream(k)>>>(k->geo, *boxes_of(k, dir), dir == MOHO_FWD ? k->panel_span : k->tile_span,
                                                                              none, first, n, four, to);
  CUDA_LAUNCHED("kirchhoff tables of sides");
  return MOHO_OK;
}

moho_status kc_keep_receivers(moho_kirchhoff *k, moho_dir dir)
{
  uint32_t *t;
  MOHO_TRY(kc_block(k, (size_t)(k->geo.nr * kc_entries(k, dir)) * sizeof *t, NULL, (void **)&t));
  k->times[dir] = t - k->geo.roff * (dir == MOHO_FWD ? 4 : kc_entries(k, dir));   /* where side 0 would be */
  return compute(k, dir, k->geo.roff, k->geo.nr, dir == MOHO_FWD, t);
}

static uint32_t *stored(const moho_kirchhoff *k, moho_dir dir, int source)
{
  return k->store + (dir == MOHO_ADJ ? k->geo.ns * kc_entries(k, MOHO_FWD) : 0) + source * kc_entries(k, dir);
}

static moho_status store(const moho_kirchhoff *k, moho_dir dir, int together, uint32_t *tmp)
{
  for (int s = 0; s < k->geo.ns; s += together) {
    int n = k->geo.ns - s < together ? k->geo.ns - s : together;
    MOHO_TRY(compute(k, dir, s, n, false, tmp));
    CUDA_TRY(cudaMemcpyAsync(stored(k, dir, s), tmp, (size_t)(n * kc_entries(k, dir)) * sizeof *tmp, cudaMemcpyDeviceToHost, kc_stream(k)));
  }
  return MOHO_OK;
}

moho_status kc_keep_sources(moho_kirchhoff *k)
{
  const size_t fwd = (size_t)kc_entries(k, MOHO_FWD) * sizeof(uint32_t), adj = (size_t)kc_entries(k, MOHO_ADJ) * sizeof(uint32_t);
  const size_t most = fwd > adj ? fwd : adj;
  int together = most < TOGETHER ? (int)(TOGETHER / most) : 1, some = (k->geo.ns + 15) / 16;
  if (together > some) together = some;
  moho_block *tmp;
  if (k->nblk == (int)(sizeof k->blk / sizeof k->blk[0])) return moho_fail(MOHO_ENOMEM, "too many parts in a Kirchhoff plan");
  MOHO_TRY(moho_block_locked(k->ctx, (size_t)k->geo.ns * (fwd + adj), &k->blk[k->nblk]));
  k->store = (uint32_t *)k->blk[k->nblk++]->p;
  MOHO_TRY(moho_block_new(k->ctx, most * (size_t)together, &tmp));
  moho_status r = store(k, MOHO_FWD, together, (uint32_t *)tmp->p);
  if (r == MOHO_OK) r = store(k, MOHO_ADJ, together, (uint32_t *)tmp->p);
  if (cudaStreamSynchronize(kc_stream(k)) != cudaSuccess && r == MOHO_OK) r = cuda_failed(cudaGetLastError(), "tables of sources");
  moho_block_unref(tmp);
  return r;
}

moho_status kc_sources(const moho_kirchhoff *k, moho_lane *on, cudaStream_t st, moho_dir dir, int first, int n, uint32_t *to)
{
  size_t bytes = (size_t)(n * kc_entries(k, dir)) * sizeof *to;
  if (on) return moho_lane_put(on, to, stored(k, dir, first), bytes);
  CUDA_TRY(cudaMemcpyAsync(to, stored(k, dir, first), bytes, cudaMemcpyHostToDevice, st));
  return MOHO_OK;
}
