/* The eikonal loops, LANES nodes side by side, for the instruction set of eikonal_isa.h.

   A sweep is sequential: a node waits for those before it along every axis. So lanes are neighbours along x of which
   each is one node behind the one before it along z. A tile is worked on in a room of its own, turned so that the sweep
   goes up along every axis, and shifted along z by one node for each along x: there such lanes lie side by side, and
   their neighbours too. Planes of the tile are brought there when they are first needed. */
#include "eikonal_isa.h"
#include "eikonal_plan.h"
#include "eikonal_formula.h"

/* The room: planes along y, rows along z + x, x side by side. */
enum {
  WIDE3 = X3 + 2 * HALO, ROWS3 = Z3 + X3 + 5 * HALO, PLANES3 = Y3 + 2 * HALO,
  WIDE2 = X2 + 2 * HALO, ROWS2 = Z2 + X2 + 5 * HALO,
  ROOM3 = PLANES3 * ROWS3 * WIDE3, ROOM2 = ROWS2 * WIDE2, ROOM = ROOM3 > ROOM2 ? ROOM3 : ROOM2,
};

typedef struct room {
  const eik_position *p;
  int64_t lo[3], n[3];                  /* the tile's first node, and nodes                  */
  bool back[3];                         /* the axis is turned                                */
  int64_t step[3], down[3], over[3];    /* to the next node of the grid, and of rows and bits */
  uint32_t here;                        /* planes that are in the room, from -HALO on, by bits */
  bool changed, left;                   /* whether any node did; whether one that was not brought is to be computed */
  double tau[ROOM];
  uint16_t stencil[ROOM];
  /* of a row: nodes to be computed, around the tile those that are told; by bits, x = -HALO first */
  uint64_t todo[PLANES3 * ROWS3];
} room;

MOHO_FORMULA int64_t place(int nd, int64_t y, int64_t x, int64_t z)
{
  return nd == 3 ? ((y + HALO) * ROWS3 + z + x + 2 * HALO) * WIDE3 + x + HALO : (z + x + 2 * HALO) * WIDE2 + x + HALO;
}

/* The row that it is in, and its bit there. */
MOHO_FORMULA int64_t row_of(int nd, int64_t y, int64_t x, int64_t z)
{
  return (nd == 3 ? (y + HALO) * ROWS3 : 0) + z + x + 2 * HALO;
}

/* Of a row: which of so many lines have one of the tile's nz nodes in it, where the first line's node has number z; by
   bits. */
MOHO_FORMULA uint64_t lines_in(int64_t lines, int64_t nz, int64_t z)
{
  const int64_t first = z - nz + 1 > 0 ? z - nz + 1 : 0, end = z + 1 < lines ? z + 1 : lines;
  return first < end ? (UINT64_C(1) << end) - (UINT64_C(1) << first) : 0;
}

/* Node i of the room along an axis: its number in the grid. */
static inline int64_t in_grid(const room *r, int axis, int64_t i)
{
  return r->back[axis] ? r->lo[axis] + r->n[axis] - 1 - i : r->lo[axis] + i;
}

static void enter(room *r, const eik_position *p, int nd, int64_t sweep, const int64_t tile[3])
{
  const int64_t step[3] = { nd == 3 ? ROWS3 * WIDE3 : 0, nd == 3 ? WIDE3 + 1 : WIDE2 + 1, nd == 3 ? WIDE3 : WIDE2 };
  const int64_t down[3] = { nd == 3 ? ROWS3 : 0, 1, 1 };
  r->p = p, r->here = 0, r->changed = r->left = false;
  for (int i = 0; i < 3; i++) {
    const int64_t first = tile[i] * p->tiles.size[i], end = first + p->tiles.size[i];
    r->lo[i] = first > p->from[i] ? first : p->from[i], r->n[i] = (end < p->to[i] ? end : p->to[i]) - r->lo[i];
    r->back[i] = eik_backward(sweep, i);
    r->step[i] = r->back[i] ? -step[i] : step[i];
    r->down[i] = r->back[i] ? -down[i] : down[i], r->over[i] = i == 1 ? (r->back[i] ? -1 : 1) : 0;
  }
}

/* LANES lines of the tile from line x on, with the nodes before and after them. Where the room's row has no node of a
   line it gets what lies beside the line in memory: there are always two lines more. */
MOHO_FORMULA void bring_lines(room *r, int nd, int second, int64_t y, int64_t x)
{
  const eik_position *p = r->p;
  const int64_t down = nd == 3 ? WIDE3 : WIDE2, rows = r->n[2] + 2 * HALO + LANES - 1,
                lines = r->n[1] - x < LANES ? r->n[1] - x : LANES;
  /* stencils beside the tile matter to the second stage only */
  const bool inner = y >= 0 && y < r->n[0], known = inner || second;
  for (int64_t first = 0; first < rows; first += LANES) {
    eik_num tau[LANES];
    eik_flags stencil[LANES] = { { 0 } };
#pragma GCC unroll 8
    for (int l = 0; l < LANES; l++) {
      /* of the nodes from z on, turned if the axis is */
      const int64_t z = first - HALO - l, line = x + l < r->n[1] ? x + l : x;
      const int64_t from = in_grid(r, 0, y) * p->step[0] + in_grid(r, 1, line) * p->step[1] +
                           in_grid(r, 2, r->back[2] ? z + LANES - 1 : z);
      tau[l] = eik_get(p->tau + from);
      if (known) stencil[l] = eik_get_flags(p->stencil + from);
    }
    EIK_TRANSPOSE(tau, eik_num, eik_bits)
    if (known) {
      EIK_TRANSPOSE(stencil, eik_flags, eik_flags)
    }
    const int64_t to = place(nd, y, x, first - HALO);
#pragma GCC unroll 8
    for (int l = 0; l < LANES; l++) {
      const int64_t k = r->back[2] ? LANES - 1 - l : l, z = first - HALO + k;
      eik_put(r->tau + to + k * down, tau[l]);
      if (known) eik_put_flags(r->stencil + to + k * down, stencil[l]);
      if (!inner) continue;
      r->todo[row_of(nd, y, x, z)] |=
        (eik_mask(eik_match(r->stencil + to + k * down, TODO, TODO)) & lines_in(lines, r->n[2], z)) << (x + HALO);
    }
  }
}

/* A line beside the tile. */
MOHO_FORMULA void bring_line(room *r, int nd, int second, int64_t y, int64_t x)
{
  const eik_position *p = r->p;
  const int64_t from = in_grid(r, 0, y) * p->step[0] + in_grid(r, 1, x) * p->step[1] + in_grid(r, 2, 0),
                to = r->back[2] ? -1 : 1;
  const int64_t first = place(nd, y, x, 0), down = nd == 3 ? WIDE3 : WIDE2;
  for (int64_t z = 0; z < r->n[2]; z++) r->tau[first + z * down] = p->tau[from + z * to];
  for (int64_t z = 0; second && z < r->n[2]; z++) r->stencil[first + z * down] = p->stencil[from + z * to];
}

/* Plane y of the room, if it is not there yet. */
MOHO_FORMULA void bring(room *r, int nd, int second, int64_t y)
{
  if (r->here >> (y + HALO) & 1) return;
  r->here |= UINT32_C(1) << (y + HALO);
  memset(r->todo + row_of(nd, y, -HALO, -HALO), 0, (nd == 3 ? ROWS3 : ROWS2) * sizeof *r->todo);
  /* the next plane's lines on their way meanwhile: 2 to 4 times 64 bytes each */
  for (int64_t x = 0; x < r->n[1]; x++) {
    const int64_t next = in_grid(r, 0, y + 1) * r->p->step[0] + in_grid(r, 1, x) * r->p->step[1] + r->lo[2];
    for (int64_t z = 0; z < 32; z += 8) __builtin_prefetch(r->p->tau + next + z);
    __builtin_prefetch(r->p->stencil + next);
  }
  for (int64_t x = 0; x < r->n[1]; x += LANES) bring_lines(r, nd, second, y, x);
  if (y < 0 || y >= r->n[0]) return;
  for (int64_t k = 1; k <= HALO; k++) bring_line(r, nd, second, y, -k), bring_line(r, nd, second, y, r->n[1] - 1 + k);
}

/* What became of the tile's planes. */
MOHO_FORMULA void leave_lines(const room *r, int nd, int64_t y)
{
  const eik_position *p = r->p;
  const int64_t to = r->back[2] ? -1 : 1, down = nd == 3 ? WIDE3 : WIDE2;
  for (int64_t x = 0; x < r->n[1]; x++) {
    const int64_t at = in_grid(r, 0, y) * p->step[0] + in_grid(r, 1, x) * p->step[1] + in_grid(r, 2, 0),
                  first = place(nd, y, x, 0);
    const uint64_t *todo = r->todo + row_of(nd, y, x, 0);
    double *tau = p->tau + at;
    uint16_t *stencil = p->stencil + at;
    for (int64_t z = 0; z < r->n[2]; z++)
      stencil[z * to] = (uint16_t)((r->stencil[first + z * down] & ~TODO) | (todo[z] >> (x + HALO) & 1) * TODO);
    for (int64_t z = 0; r->changed && z < r->n[2]; z++) tau[z * to] = r->tau[first + z * down];
  }
}

/* Tells the nodes around the tile that are to be computed: bits as of a sweep, in the room's directions, and whether
   the tile itself has such. */
MOHO_FORMULA int tell(const room *r, int nd, int64_t y)
{
  const eik_position *p = r->p;
  const int side = y < 0 ? 1 : y >= r->n[0] ? 2 : 0;
  int all = 0;
  for (int64_t row = -HALO; row < r->n[2] + r->n[1] + HALO; row++) {
    uint64_t left = r->todo[row_of(nd, y, 0, row)];
    if (!left) continue;
    if (!side) {
      const uint64_t inner = lines_in(r->n[1], r->n[2], row) << HALO;
      all |= left & inner ? 64 : 0, left &= ~inner;
    }
    for (; left; left &= left - 1) {
      const int64_t x = __builtin_ctzll(left) - HALO, z = row - x;
      all |= side ? side : x < 0 ? 4 : x >= r->n[1] ? 8 : z < 0 ? 16 : 32;
      eik_mark(p->stencil + in_grid(r, 0, y) * p->step[0] + in_grid(r, 1, x) * p->step[1] + in_grid(r, 2, z));
    }
  }
  return all;
}

/* Bits as of a sweep. */
MOHO_FORMULA int leave(const room *r, int nd)
{
  const int64_t reach = nd == 3 ? HALO : 0;
  int all = r->left ? 64 : 0, out;
  for (int64_t y = -reach; y < r->n[0] + reach; y++) {
    if (!(r->here >> (y + HALO) & 1)) continue;
    if (y >= 0 && y < r->n[0]) leave_lines(r, nd, y);
    all |= tell(r, nd, y);
  }
  out = all & 64;
  for (int i = 0; i < 3; i++)
    for (int up = 0; up < 2; up++)
      if (all >> (2 * i + up) & 1) out |= 1 << (2 * i + (r->back[i] ? !up : up));
  return out;
}

/* Whether a plane that is not there yet has nodes to be computed in this sweep; notes those for another one. */
static bool waits(room *r, int nd, int second, int64_t sweep, int64_t y)
{
  typedef uint16_t many __attribute__((vector_size(32), aligned(2)));
  enum { MANY = sizeof(many) / sizeof(uint16_t) };
  const eik_position *p = r->p;
  const uint16_t turned = (uint16_t)eik_directions(sweep), used = second ? (uint16_t)EIK_TURNS(nd, sweep) : 0;
  const uint16_t *line = p->stencil + in_grid(r, 0, y) * p->step[0] + r->lo[1] * p->step[1] + r->lo[2];
  many now = { 0 }, ever = { 0 };
  uint64_t part[8];
  for (int64_t x = 0; x < r->n[1]; x++, line += p->step[1]) {
    int64_t z = 0;
    for (; z + MANY <= r->n[2]; z += MANY) {
      many v = *(const many *)(line + z);
      now |= v & TODO & (many)(((v >> 1 ^ turned) & v & used) == 0), ever |= v & TODO;
    }
    for (; z < r->n[2]; z++)
      now[0] |= (line[z] >> 1 ^ turned) & line[z] & used ? 0 : line[z] & TODO, ever[0] |= line[z] & TODO;
  }
  memcpy(part, &now, sizeof now), memcpy(part + 4, &ever, sizeof ever);
  if (part[0] | part[1] | part[2] | part[3]) return true;
  r->left = r->left || (part[4] | part[5] | part[6] | part[7]);
  return false;
}

/* Nodes have new times, first stage. Only neighbours for which E towards them is above 0 can come earlier by that: for
   others a time with E >= 0 is not below what they have. todo: the row's, to: along each axis its step to the
   neighbour's row and to its bit. */
MOHO_FORMULA void mark_later(const room *r, int nd, eik_is changed, const eik_node *at, const double *t, uint64_t *todo,
                             int64_t bit)
{
  const eik_num own = eik_get(t);
  const double *h = r->p->r->g.d;
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++)
    EIK_AXES
    for (int k = -1; k <= 1; k += 2) {
      eik_num x = k * at->x[i], r2 = at->r2 + h[i] * (h[i] + 2 * x);
      eik_is later = changed & eik_below(r2 * own, (r2 + h[i] * (x + h[i])) * eik_get(t + k * r->step[i]));
      todo[k * r->down[i]] |= (uint64_t)eik_mask(later) << (bit + k * r->over[i]);
    }
}

/* The same, second stage: nodes whose stencil has them. */
MOHO_FORMULA void mark_children(const room *r, int nd, eik_is changed, const uint16_t *p, uint64_t *todo, int64_t bit)
{
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++)
    EIK_AXES
    for (int k = 1; k <= HALO; k++) {
      const int up = (k > 1 ? EIK_SECOND : EIK_USED) << (EIK_BITS * i), side = EIK_HIGHER << (EIK_BITS * i);
      const eik_is below = changed & eik_match(p - k * r->step[i], up | side, up | side);
      const eik_is above = changed & eik_match(p + k * r->step[i], up | side, up);
      todo[-k * r->down[i]] |= (uint64_t)eik_mask(below) << (bit - k * r->over[i]);
      todo[k * r->down[i]] |= (uint64_t)eik_mask(above) << (bit + k * r->over[i]);
    }
}

/* LANES lines of a plane, being swept. */
typedef struct strip {
  eik_node at;
  /* square of the distance but for z; the lanes' numbers; the largest relative change */
  eik_num across, slot, most;
  const double *slow2;                  /* of the first lane's node 0                        */
  int64_t y, x;                         /* of the first lane                                 */
  int64_t lines, apart;                 /* lanes of the tile; to the next line's slow2       */
  eik_is changed;                       /* lanes that did                                    */
} strip;

MOHO_FORMULA strip strip_at(const room *r, int nd, int64_t y, int64_t x)
{
  const eik_position *p = r->p;
  const double *h = p->r->g.d;
  strip s = { .slot = eik_ramp(), .most = eik_all(0), .y = y, .x = x };
  s.changed = eik_none();
  s.lines = r->n[1] - x < LANES ? r->n[1] - x : LANES;
  s.at.x[0] = eik_all(nd == 3 ? (double)in_grid(r, 0, y) * h[0] + p->shift[0] : 0);
  eik_num gx = r->back[1] ? (double)in_grid(r, 1, x) - s.slot : (double)in_grid(r, 1, x) + s.slot;
  s.at.x[1] = gx * h[1] + p->shift[1];
  s.slow2 = p->r->slow2 + in_grid(r, 0, y) * p->estep[0] + in_grid(r, 1, x) * p->estep[1] + in_grid(r, 2, 0);
  s.apart = r->back[1] ? -p->estep[1] : p->estep[1];
  s.across = s.at.x[0] * s.at.x[0] + s.at.x[1] * s.at.x[1];
  return s;
}

/* Slowness of the nodes; of the nearest in the tile where there is none. */
MOHO_FORMULA eik_num slow2_at(const room *r, const strip *s, int64_t z)
{
  const int64_t to = r->back[2] ? -1 : 1;
  if (s->lines == LANES && z >= LANES - 1 && z < r->n[2]) return eik_spread(s->slow2 + z * to, s->apart - to);
  eik_num v = eik_all(0);
#pragma GCC unroll 8
  for (int64_t l = 0; l < LANES; l++) {
    int64_t k = z - l, line = l < s->lines ? l : 0;
    k = k < 0 ? 0 : k < r->n[2] ? k : r->n[2] - 1;
    v[l] = s->slow2[line * s->apart + k * to];
  }
  return v;
}

/* The nodes of a strip of which the first lane's is the one with number z. */
MOHO_FORMULA void compute(room *r, int nd, int second, int64_t sweep, strip *s, int64_t i, int64_t z, double tol)
{
  const eik_position *p = r->p;
  const double *h = p->r->g.d;
  uint64_t *todo = r->todo + row_of(nd, s->y, s->x, z);
  const int64_t bit = s->x + HALO;
  unsigned left = (unsigned)(*todo >> bit & lines_in(s->lines, r->n[2], z));
  if (!left) return;
  eik_bits bits = eik_widen(r->stencil + i);
  eik_is on = eik_lanes(left);
  if (second) on = on & eik_not(eik_has(EIK_AGAINST(nd, bits, sweep), ~0));
  *todo &= ~((uint64_t)eik_mask(on) << bit);
  on = on & eik_not(eik_has(bits, GIVEN));
  if (!eik_any(on)) return;
  const eik_num zs = (double)z - s->slot;
  eik_num gz = r->back[2] ? (double)(r->lo[2] + r->n[2] - 1) - zs : (double)r->lo[2] + zs;
  s->at.x[2] = gz * h[2] + p->shift[2];
  s->at.r2 = s->across + s->at.x[2] * s->at.x[2];
  s->at.f = slow2_at(r, s, z) * p->scale * s->at.r2;
  const eik_bits before = bits;
  eik_num old = eik_get(r->tau + i), new;
  if (second) new = eik_more(eik_second(nd, on, &s->at, h, p->ih, r->tau + i, r->step, &bits), eik_all(p->least));
  else new = eik_less(eik_first(nd, on, &s->at, h, p->ih, r->tau + i, r->step, NULL), old);
  if (second && eik_any(eik_has(bits ^ before, ~0)))
    for (int l = 0; l < LANES; l++) r->stencil[i + l] = (uint16_t)bits[l];
  eik_num change = eik_abs(new - old);
  eik_is changed = on & eik_below(tol * new, change);
  if (!eik_any(changed)) return;
  eik_put(r->tau + i, eik_choose(changed, new, old));
  if (second) mark_children(r, nd, changed, r->stencil + i, todo, bit);
  else mark_later(r, nd, changed, &s->at, r->tau + i, todo, bit);
  s->most = eik_more(s->most, eik_choose(changed, change / new, eik_all(0)));
  s->changed = s->changed | changed;
}

MOHO_FORMULA void sweep_plane(room *r, int nd, int second, int64_t sweep, int64_t y, double tol, double *most)
{
  for (int64_t x = 0; x < r->n[1]; x += LANES) {
    strip s = strip_at(r, nd, y, x);
    for (int64_t z = 0; z < r->n[2] + s.lines - 1; z++) compute(r, nd, second, sweep, &s, place(nd, y, x, z), z, tol);
    if (!eik_any(s.changed)) continue;
    for (int l = 0; l < LANES; l++) *most = s.most[l] > *most ? s.most[l] : *most;
    r->changed = true;
  }
}

MOHO_FORMULA int sweep_tile(const eik_position *p, int nd, int second, int64_t sweep, const int64_t tile[3],
                            double *change)
{
  const double tol = second ? p->r->tol : eik_rough(p->r->tol);
  const int64_t reach = nd == 3 ? HALO : 0;
  room r;
  enter(&r, p, nd, sweep, tile);
  for (int64_t y = 0; y < r.n[0]; y++) {
    if (!(r.here >> (y + HALO) & 1) && !waits(&r, nd, second, sweep, y)) continue;
    for (int64_t k = y - reach; k <= y + reach; k++) bring(&r, nd, second, k);
    sweep_plane(&r, nd, second, sweep, y, tol, change);
  }
  return leave(&r, nd);
}

static int sweep(const eik_position *p, int second, int64_t number, const int64_t tile[3], double *change)
{
  if (p->r->g.nd == 2)
    return second ? sweep_tile(p, 2, 1, number, tile, change) : sweep_tile(p, 2, 0, number, tile, change);
  return second ? sweep_tile(p, 3, 1, number, tile, change) : sweep_tile(p, 3, 0, number, tile, change);
}

/* ---- stencils --------------------------------------------------------------------------------- */

MOHO_FORMULA void choose_row(const eik_position *p, int nd, int64_t y, int64_t x)
{
  const double *h = p->r->g.d, *t = p->tau + y * p->step[0] + x * p->step[1],
               *slow2 = p->r->slow2 + y * p->estep[0] + x * p->estep[1];
  uint16_t *stencil = p->stencil + y * p->step[0] + x * p->step[1];
  eik_node at;
  at.x[0] = eik_all(nd == 3 ? (double)y * h[0] + p->shift[0] : 0), at.x[1] = eik_all((double)x * h[1] + p->shift[1]);
  const eik_num across = at.x[0] * at.x[0] + at.x[1] * at.x[1];
  for (int64_t z = 0; z < p->r->g.n[2]; z += LANES) {
    const int lines = p->r->g.n[2] - z < LANES ? (int)(p->r->g.n[2] - z) : LANES;
    eik_num s2 = eik_all(1);
    eik_bits bits = eik_if(eik_none(), 0), given = bits;
    for (int l = 0; l < lines; l++) s2[l] = slow2[z + l], given[l] = stencil[z + l] & GIVEN;
    eik_is on = eik_below(eik_ramp(), eik_all(lines)) & eik_not(eik_has(given, GIVEN));
    at.x[2] = ((double)z + eik_ramp()) * h[2] + p->shift[2];
    at.r2 = across + at.x[2] * at.x[2];
    at.f = s2 * p->scale * at.r2;
    eik_first(nd, on, &at, h, p->ih, t + z, p->step, &bits);
    for (int l = 0; l < lines; l++) stencil[z + l] = (uint16_t)(bits[l] | given[l] | TODO);
  }
}

static void choose(const eik_position *p, int64_t y, int64_t x)
{
  if (p->r->g.nd == 2) choose_row(p, 2, y, x);
  else choose_row(p, 3, y, x);
}

const eik_isa EIK_TABLE = { .sweep = sweep, .choose = choose };
