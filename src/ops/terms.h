/* Derivatives within sums and stacks of operators, applied together: one kernel reads what they share once, and a
   result is written once. */
#ifndef MOHO_TERMS_H
#define MOHO_TERMS_H
#include "core/kernels.h"

enum { MOHO_MAXTERMS = 16 };
typedef struct moho_terms {
  int n;
  int64_t size;                         /* elements of each                                   */
  moho_stencil_term at[MOHO_MAXTERMS];  /* those of one part of y one after the other         */
} moho_terms;
/* One more; false: no room, or not of the others' size. */
bool moho_terms_add(moho_terms *t, int64_t size, const moho_stencil_term *one);
/* The product of two along axes that hold each other; false: of others, or of more than derivatives. */
bool moho_terms_product(const moho_stencil_term *a, const moho_stencil_term *b, moho_stencil_term *ab);
/* Those of an operator times a factor, whose x and y start at these elements; false: it is more than derivatives. */
bool moho_terms_of(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t);
/* y (+)= alpha A x when A is nothing but derivatives and the device applies them together, as *done then says. */
moho_status moho_terms_apply(const moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             const moho_array *x, moho_array *y, bool *done);
#endif
