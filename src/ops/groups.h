/* Operators that are applied one after the other, each to a part of the model or the data or to the whole: what stacks
   and sums share. Lifted ones have several groups under way: see groups.c. */
#ifndef MOHO_OPS_GROUPS_H
#define MOHO_OPS_GROUPS_H
#include "core/op_impl.h"

enum { MOHO_MAXGROUPS = 16 };           /* under way at once                              */

/* An operator without the lifts at its ends, and where they lead. */
typedef struct moho_group { moho_op *core; moho_ctx *dom, *ran; } moho_group;

typedef struct moho_groups {
  int n, lanes;
  moho_op *const *op;                   /* the owner's                                    */
  moho_group *group;                    /* NULL: none is lifted                           */
  struct moho_groups_run *run;          /* of an application in progress; none is within itself */
  bool cut_dom, cut_ran;                /* which sides are cut into parts                 */
} moho_groups;

/* lanes: how many lifted groups are under way at once, 0 for the default. The operators stay the caller's. */
moho_status moho_groups_init(moho_groups *g, int n, moho_op *const *op, bool cut_dom, bool cut_ran, int64_t lanes);
void moho_groups_fini(moho_groups *g);
void moho_groups_work(const moho_groups *g, moho_dir dir, moho_work *w);
moho_status moho_groups_apply(const moho_groups *g, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y);

#endif
