/* The image cut into patches and tiles. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_plan.h"

/* ---- the shape of a patch ------------------------------------------------------------ */

static double mean(const double *v, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += v[i];
  return n > 0 ? sum / (double)n : 1;
}

static int64_t pieces(int64_t n, int64_t p) { return (n + p - 1) / p; }

/* Compact patches span few samples, which is what the inner loops like; padding at the image's edges is work for
 * nothing. */
static void choose_shape(moho_kirchhoff *k)
{
  double h[3] = { k->d[0], k->d[1], k->d[2] }, best = INFINITY, least = INFINITY;
  if (k->mode == MOHO_KIRCHHOFF_TIME) h[2] *= mean(k->vel, k->nvel) / 2;
  for (int pass = 0; pass < 2; pass++)
    for (int py = 1; py <= k->lanes; py *= 2)
      for (int px = 1; py * px <= k->lanes; px *= 2) {
        int p[3] = { py, px, k->lanes / py / px };
        double across = 0, padded = 1;
        for (int i = 0; i < 3; i++) {
          int64_t reach = p[i] < k->n[i] ? p[i] : k->n[i];
          across += (double)((reach - 1) * (reach - 1)) * h[i] * h[i];
          padded *= (double)(pieces(k->n[i], p[i]) * p[i]) / (double)k->n[i];
        }
        across = sqrt(across);
        if (pass == 0) {
          if (across > 0 && across < least) least = across;
          continue;
        }
        double cost = padded * (1 + (across > 0 ? across / least : 0) / 2);
        if (cost < best) {
          best = cost;
          memcpy(k->p, p, sizeof p);
        }
      }
}

int64_t moho_kir_count(moho_kirchhoff *k)
{
  choose_shape(k);
  return pieces(k->n[0], k->p[0]) * pieces(k->n[1], k->p[1]) * pieces(k->n[2], k->p[2]);
}

/* Patches of a tile are neighbours: two along x, two along z. */
moho_status moho_kir_patches(moho_kirchhoff *k, bool small_tiles)
{
  if (!k->corner) choose_shape(k);
  int64_t m[3], t[3] = { 1, small_tiles ? 1 : 2, small_tiles ? 1 : 2 }, np = 0, nt = 0;
  for (int i = 0; i < 3; i++) m[i] = pieces(k->n[i], k->p[i]);
  k->npatch = m[0] * m[1] * m[2];
  free(k->corner), free(k->tile);
  k->corner = malloc((size_t)k->npatch * sizeof *k->corner);
  k->tile = malloc((size_t)(k->npatch + 1) * sizeof *k->tile);
  if (!k->corner || !k->tile)
    return moho_fail(MOHO_ENOMEM, "out of memory for %lld patches of the image", (long long)k->npatch);
  for (int64_t y = 0; y < m[0]; y += t[0])
    for (int64_t x = 0; x < m[1]; x += t[1])
      for (int64_t z = 0; z < m[2]; z += t[2]) {
        k->tile[nt++] = np;
        for (int64_t b = x; b < x + t[1] && b < m[1]; b++)
          for (int64_t c = z; c < z + t[2] && c < m[2]; c++, np++) {
            k->corner[np][0] = y * k->p[0];
            k->corner[np][1] = b * k->p[1];
            k->corner[np][2] = c * k->p[2];
          }
      }
  k->tile[nt] = np;
  k->ntile = nt;
  return MOHO_OK;
}

/* ---- a patch's points -------------------------------------------------------------------- */

static double velocity(const moho_kirchhoff *k, int64_t iz, int64_t at)
{
  if (k->nvel == 1) return k->vel[0];
  return k->nvel == k->ni ? k->vel[at] : k->vel[iz];
}

/* Points of a patch along an axis, those outside of the image at its edge. */
typedef struct along {
  int64_t i[KIR_LANES];
  double at[KIR_LANES];
  float q[KIR_LANES], from[KIR_LANES]; /* from the corner: points, length */
} along;

static along points_along(const moho_kirchhoff *k, int axis, int64_t corner, int n)
{
  along a;
  for (int p = 0; p < k->p[axis]; p++) {
    const int q = p < n ? p : n - 1;
    a.i[p] = corner + q, a.at[p] = k->o[axis] + (double)a.i[p] * k->d[axis];
    a.q[p] = (float)q, a.from[p] = (float)q * (float)k->d[axis];
  }
  return a;
}

/* Time mode: depths are velocity times half of the time. */
static void deepen(const moho_kirchhoff *k, kir_geo *g)
{
  for (int l = 0; l < k->lanes; l++) {
    g->deep[l] = fmax(g->v[l] * g->z[l] / 2, g->v[l] * k->d[2] / 2);
    g->fz[l] = (float)g->deep[l];
    g->box.deeplo = fmin(g->box.deeplo, g->deep[l]);
    g->box.deephi = fmax(g->box.deephi, g->deep[l]);
  }
}

/* Lanes run along x first, then y, then z: neighbouring lanes are neighbours along x, whose times are most alike. */
void moho_kir_geo(const moho_kirchhoff *k, int64_t patch, kir_geo *g)
{
  const int64_t *c = k->corner[patch];
  along a[3];
  for (int i = 0; i < 3; i++) {
    int64_t left = k->n[i] - c[i];
    g->n[i] = left < k->p[i] ? (int)left : k->p[i];
    g->box.lo[i] = k->o[i] + (double)c[i] * k->d[i];
    g->box.hi[i] = k->o[i] + (double)(c[i] + g->n[i] - 1) * k->d[i];
    a[i] = points_along(k, i, c[i], g->n[i]);
  }
  g->box.top = c[2], g->box.bottom = c[2] + g->n[2] - 1;
  g->box.deeplo = INFINITY, g->box.deephi = 0;
  for (int z = 0, l = 0; z < k->p[2]; z++)
    for (int y = 0; y < k->p[0]; y++)
      for (int x = 0; x < k->p[1]; x++, l++) {
        g->in[l] = y < g->n[0] && x < g->n[1] && z < g->n[2];
        g->at[l] = (a[0].i[y] * k->n[1] + a[1].i[x]) * k->n[2] + a[2].i[z];
        g->y[l] = a[0].at[y], g->x[l] = a[1].at[x], g->z[l] = a[2].at[z];
        g->q[0][l] = a[0].q[y], g->q[1][l] = a[1].q[x], g->q[2][l] = a[2].q[z];
        g->fy[l] = a[0].from[y], g->fx[l] = a[1].from[x], g->fz[l] = a[2].from[z];
        g->row[l] = a[2].i[z], g->frow[l] = (float)(a[2].i[z] + 1);
      }
  for (int l = 0; l < k->lanes; l++) g->v[l] = k->nvel ? velocity(k, g->row[l], g->at[l]) : 0;
  if (k->mode == MOHO_KIRCHHOFF_TIME) deepen(k, g);
}

static kir_box join(const kir_box *a, const kir_box *b)
{
  kir_box c = *a;
  for (int i = 0; i < 3; i++) c.lo[i] = fmin(a->lo[i], b->lo[i]), c.hi[i] = fmax(a->hi[i], b->hi[i]);
  c.deeplo = fmin(a->deeplo, b->deeplo), c.deephi = fmax(a->deephi, b->deephi);
  if (b->top < c.top) c.top = b->top;
  if (b->bottom > c.bottom) c.bottom = b->bottom;
  return c;
}

moho_status moho_kir_boxes(moho_kirchhoff *k)
{
  if (!k->aperture) return MOHO_OK;
  k->box = malloc((size_t)(k->ntile + k->npatch) * sizeof *k->box);
  if (!k->box) return moho_fail(MOHO_ENOMEM, "out of memory for %lld tiles of the image", (long long)k->ntile);
  for (int64_t t = 0; t < k->ntile; t++)
    for (int64_t p = k->tile[t]; p < k->tile[t + 1]; p++) {
      kir_geo g;
      moho_kir_geo(k, p, &g);
      k->box[k->ntile + p] = g.box;
      k->box[t] = p > k->tile[t] ? join(&k->box[t], &g.box) : g.box;
    }
  return MOHO_OK;
}
