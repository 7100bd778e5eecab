/* What the operator object, its parameters and the algebra share. */
#ifndef MOHO_OP_IMPL_H
#define MOHO_OP_IMPL_H
#include "core/impl.h"

moho_status moho_op_make(const moho_opclass *cls, moho_op **out);
void moho_params_default(moho_op *op);
moho_status moho_params_needed(moho_op *op);
void moho_params_free(moho_op *op);
size_t moho_op_line_dir(const moho_op *a, moho_dir dir, char *buf, size_t size, bool devices);
/* An operator too deep to be a part is refused, as an application goes down call by call; then `op` notes its part. */
moho_status moho_op_shallow(const moho_op *part);
void moho_op_deepen(moho_op *op, const moho_op *part);
/* A chain of one term without a factor: its operator and direction (ops/op_chain.c). */
bool moho_op_is_adjoint(const moho_op *a, const moho_op **only, moho_dir *dir);
/* Where the lift that comes first (out: last) moves its input to (its output from), of a sum or a stack what all its
   parts agree on; NULL when no lift to another device is there. Arrays that are there already are handed through. */
moho_ctx *moho_op_far_side(const moho_op *a, moho_dir dir, bool out);

/* What is left of an operator without the lifts at its ends, and where these lead, NULL without one. A sum or a stack
   of lifted parts is left as it is: it takes and gives arrays there. */
moho_status moho_op_core(moho_op *a, moho_op **core, moho_ctx **dom, moho_ctx **ran);

/* What a product is multiplied by; 1 for other operators. */
moho_scalar moho_op_factor(const moho_op *a);

typedef struct moho_term { moho_op *op; moho_dir dir; } moho_term;
#endif
