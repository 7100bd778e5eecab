/* libmoho from C, without Lua: a wavelet convolved with two spikes, the adjoint, and the dot test of the pair. */
#include <moho/moho.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing is left to save here: the message says what was expected and what came. */
static void check(moho_status st)
{
  if (!st) return;
  fprintf(stderr, "convolve: %s\n", moho_errmsg());
  exit(1);
}

static moho_array *vector(moho_ctx *cpu, int64_t n, const float *v)
{
  moho_array *a;
  moho_shape s = moho_shape_make(1, &n);
  check(moho_array_zeros(cpu, MOHO_F32, &s, &a));
  if (v) memcpy(moho_array_data(a), v, (size_t)n * sizeof *v);
  return a;
}

static void print(const char *name, const moho_array *a)
{
  const float *v = moho_array_data(a);
  printf("%-12s", name);
  for (int64_t i = 0; i < moho_array_size(a); i++) printf(" %5.2f", v[i]);
  printf("\n");
}

int main(void)
{
  enum { N = 12 };
  const float spikes[N] = {0, 0, 1, 0, 0, 0, 0, -0.5f, 0, 0, 0, 0}, wavelet[3] = {-0.5f, 1, -0.4f};
  int64_t n = N;
  moho_shape dims = moho_shape_make(1, &n);
  moho_ctx *cpu;
  moho_lane *lane;
  moho_op *op;
  moho_dot dot;
  check(moho_ctx_open("cpu", &cpu));
  check(moho_ctx_lane(cpu, 0, &lane));
  moho_array *x = vector(cpu, N, spikes), *y = vector(cpu, N, NULL), *z = vector(cpu, N, NULL), *h = vector(cpu, 3, wavelet);

  /* An operator: its class by name, its parameters, ready. Names and counting are those of the Lua function. */
  check(moho_op_new("convolve1d", &op));
  check(moho_op_device(op, cpu, MOHO_F32));
  check(moho_op_set_shape(op, "dims", &dims));
  check(moho_op_set_array(op, "h", h));
  check(moho_op_set_int(op, "offset", 2));   /* the wavelet's time zero: its second sample */
  check(moho_op_ready(op));

  char line[256];
  moho_op_line(op, line, sizeof line);
  printf("%s\n", line);
  check(moho_op_apply(op, lane, MOHO_FWD, (moho_scalar){1, 0}, false, x, y));
  check(moho_op_apply(op, lane, MOHO_ADJ, (moho_scalar){1, 0}, false, y, z));
  print("x", x);
  print("y = A x", y);
  print("z = A' y", z);
  check(moho_op_dottest(op, 1, 1e-6, &dot));
  printf("dot test: %g, at most %g: %s\n", dot.error, dot.tol, dot.error <= dot.tol ? "passed" : "failed");

  moho_op_unref(op);
  moho_array_unref(h);
  moho_array_unref(z);
  moho_array_unref(y);
  moho_array_unref(x);
  moho_ctx_unref(cpu);
  return dot.error <= dot.tol ? 0 : 1;
}
