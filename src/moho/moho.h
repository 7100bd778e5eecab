/* Everything libmoho offers to C. */
#ifndef MOHO_H
#define MOHO_H
#include <moho/status.h>
#include <moho/ctx.h>
#include <moho/array.h>
#include <moho/dlpack.h>
#include <moho/op.h>
#include <moho/eikonal.h>
#include <moho/solve.h>
#include <moho/io.h>
#include <moho/plot.h>
#endif
