/* How far a long application is. Whoever shows it says how much there is to do and what to call; host kernels tell as
   they go, from any thread, and the thread that waits for the application is the one that shows it. */
#include <pthread.h>
#include "core/impl.h"

static struct {
  bool on;
  pthread_t owner;
  double total, begin, told;
  void (*tell)(void *user, double part);
  void *user;
} watch;
static int64_t done;

enum { SILENT = 2 };                    /* seconds before the first line                            */
static const double often = 0.2;        /* and between them                                         */

void moho_pace_watch(double total, double already, void (*tell)(void *user, double part), void *user)
{
  done = (int64_t)already;
  if (!watch.on) watch.begin = watch.told = moho_clock();
  watch.on = tell && total > 0;
  watch.owner = pthread_self();
  watch.total = total;
  watch.tell = tell, watch.user = user;
}

bool moho_pace_watched(void) { return watch.on; }

void moho_pace(int64_t units)
{
  int64_t now_done = __atomic_add_fetch(&done, units, __ATOMIC_RELAXED);
  if (!watch.on || !pthread_equal(watch.owner, pthread_self())) return;
  double now = moho_clock();
  if (now - watch.begin < SILENT || now - watch.told < often) return;
  watch.told = now;
  watch.tell(watch.user, (double)now_done < watch.total ? (double)now_done / watch.total : 1);
}

double moho_op_units(const moho_op *a)
{
  const moho_op *part;
  moho_dir dir;
  double sum = a->cls->units ? a->cls->units(a) : 0;
  for (int i = 0; a->cls->child && a->cls->child(a, i, &part, &dir); i++) sum += moho_op_units(part);
  return sum;
}
