/* Legs near their positions, with coarse tables: rays turn fast there, so slopes are central differences of the
   interpolated times, as with full tables those of times. Part of kirchhoff_body.h; the same in double: near_leg. */

/* Points one to either side along each axis, not beyond the image: where they are, and what nodes have in them. */
typedef struct shifted {
  vf q[3];            /* from the patch's corner: at -1, 0, +1          */
  vf w[3][L + 4];
} shifted;

static int shift_axis(const moho_kirchhoff *k, const kir_geo *g, int axis, int64_t corner, int64_t *first, shifted *s)
{
  const int64_t last = corner + g->n[axis] - 1, lo = corner > 0 ? corner - 1 : 0,
                hi = last < k->n[axis] - 1 ? last + 1 : last;
  int n = 0;
  for (int by = 0; by < 3; by++) {
    const vf q = f_load(g->q[axis]) + f_all((float)(by - 1));
    s->q[by] = f_max(f_min(q, f_all((float)(k->n[axis] - 1 - corner))), f_all((float)-corner));
    n = hats(k, axis, corner, s->q[by], lo, hi, first, s->w[by]);
  }
  return n;
}

/* A node's part; one without a time has none where it counts for nothing. */
static inline vf part_of(vf sum, vf w, float v)
{
  if (v - v == 0) return f_fma(w, f_all(v), sum);
  for (int l = 0; l < L; l++)
    if (w[l] != 0) sum[l] = v;
  return sum;
}

/* dT along the axes. */
static void near_slopes(const moho_kirchhoff *k, const kir_geo *g, int64_t patch, int64_t side, vf slope[3])
{
  const int64_t *c = k->corner[patch];
  const float *slow = k->slow;
  shifted s[3];
  int64_t first[3];
  int n[3];
  vf tau[3][2] = {{{0}}};
  for (int a = 0; a < 3; a++) n[a] = shift_axis(k, g, a, c[a], &first[a], &s[a]);
  for (int y = 0; y < n[0]; y++)
    for (int x = 0; x < n[1]; x++)
      for (int z = 0; z < n[2]; z++) {
        const float v =
          slow[(((first[0] + y) * k->nodes[1] + first[1] + x) * k->nodes[2] + first[2] + z) * k->nside + side];
        for (int up = 0; up < 2; up++) {
          if (k->three) tau[0][up] = part_of(tau[0][up], s[0].w[2 * up][y] * s[1].w[1][x] * s[2].w[1][z], v);
          tau[1][up] = part_of(tau[1][up], s[0].w[1][y] * s[1].w[2 * up][x] * s[2].w[1][z], v);
          tau[2][up] = part_of(tau[2][up], s[0].w[1][y] * s[1].w[1][x] * s[2].w[2 * up][z], v);
        }
      }
  for (int a = 0; a < 3; a++) {
    vf t[2];
    slope[a] = (vf){0};
    if (!a && !k->three) continue;
    for (int up = 0; up < 2; up++) {
      vf at[3];
      for (int b = 0; b < 3; b++) at[b] = s[b].q[b == a ? 2 * up : 1] * f_all((float)k->d[b]);
      t[up] = tau[a][up] * distance_at(k, g, side, at[0], at[1], at[2]);
    }
    slope[a] = (t[1] - t[0]) / ((s[a].q[2] - s[a].q[0]) * f_all((float)k->d[a]));
  }
}

/* The taper of rays whose cosine of the angle from the vertical is `up`. */
static vf angle_taper(const moho_kirchhoff *k, vf up)
{
  vf w = f_all(1);
  for (int i = 0; i < KIR_STEPS && k->angle.on; i++)
    w = f_choose(m_less((vi)f_all(0), (vi)(f_all(k->angle_cos[i]) - up)), f_all((float)k->angle_step[i]), w);
  return w;
}

/* In row `at`, which has them interpolated, the numbers of the legs of the points that are near. */
static __attribute__((noinline)) void near_row(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m,
                                               int64_t patch, int64_t side, const kir_rows *r, int64_t at)
{
  vf slope[3], c, s, n[3];
  near_slopes(k, g, patch, side, slope);
  const vf zero = { 0 }, one = f_all(1),
           across = k->three ? f_sqrt(f_fma(slope[0], slope[0], slope[1] * slope[1])) : f_max(slope[1], -slope[1]);
  const vf length = f_sqrt(f_fma(across, across, slope[2] * slope[2]));
  unsigned ray = f_less(length, f_all(1e30f)), turned = f_less(zero, length), sideways = f_less(zero, across), near = 0;
  const vf up = f_choose(m_bits(turned), slope[2] / length, one), out = f_choose(m_bits(turned), across / length, zero);
  const vf big = f_sqrt((one + f_max(up, -up)) * f_all(0.5f)), small = out / (f_all(2) * big),
           taper = angle_taper(k, up);
  const vm down = m_bits(f_less(up, zero));
  c = f_choose(down, small, big), s = f_choose(down, big, small);
  n[0] = k->dynamic ? taper * c : taper;
  if (k->three) {
    n[1] = taper * s * f_choose(m_bits(sideways), slope[1] / across, one);
    n[2] = taper * s * f_choose(m_bits(sideways), slope[0] / across, zero);
  } else {
    n[1] = taper * f_choose(m_bits(f_less(slope[1], zero)), -s, s);
  }
  for (int l = 0; l < L; l++) {
    double away[3];
    for (int a = 0; a < 3; a++) away[a] = g->box.lo[a] + (double)g->q[a][l] * k->d[a] - k->pos[a][side];
    near |= (unsigned)kir_near(k->three, k->d, k->step, away) << l;
  }
  const vf amp = amplitude_at(k, f_load(m->scale),
                              distance_at(k, g, side, f_load(g->fy), f_load(g->fx), f_load(g->fz)));
  for (int i = 0; i < k->parts; i++) {
    float *w = (float *)r->w[i] + at * L;
    f_store(w, f_choose(m_bits(near), f_choose(m_bits(ray), n[i] * amp, zero), f_load(w)));
  }
}
