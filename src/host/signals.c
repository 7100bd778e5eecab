/* Ctrl-C and SIGTERM. The handler raises the stop flag, which solvers and long native loops poll, and installs a hook,
   which raises "interrupted" in Lua code. Who answers the flag itself (a solver that returns its iterate) lowers it,
   and the hook then goes away in silence.

   Hooks do not fire in compiled code. LuaJIT's profiler does have a way into it: traces compiled while it runs look at
   its flag at each line. So scripts run with the profiler started at an interval that never ends, and the handler rings
   its signal. Without the profiler (a script uses it itself) a compiled loop stops at the second Ctrl-C, which ends the
   program in any case. */
#include "host/signals.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <luajit.h>

#include "host/options.h"
#include "host/report.h"
#include "moho/ctx.h"

static lua_State *state;
static pthread_t owner; /* the thread that runs Lua           */
static volatile sig_atomic_t armed, pending, terminated, patient, warned;
static double first, warning; /* when the first came, and the warning */

static void hook(lua_State *L, lua_Debug *ar)
{
  (void)ar;
  if (!moho_stopped() && !terminated) { /* answered by someone on the way */
    lua_sethook(L, NULL, 0, 0);
    pending = 0;
    return;
  }
  /* The hook stays: a pcall or a coroutine on the way out must not swallow it. */
  report_where(L, 0);
  lua_pushstring(L, terminated ? "terminated" : "interrupted");
  lua_concat(L, 2);
  lua_error(L);
}

/* Ends a run of compiled code. Only when the profiler's handler is there: the default action would end the program. */
static void leave_compiled_code(void)
{
  struct sigaction now;
  if (sigaction(SIGPROF, NULL, &now) != 0) return;
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
  raise(SIGPROF);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether a further Ctrl-C, the first not yet answered, ends the program. At the prompt a session is at stake: what
   comes within a second is the same impatience, the next one warns, and only the one after that ends it. */
static bool last_straw(int sig)
{
  static const char text[] = "\n(still stopping; Ctrl-C once more ends the program, and this session with it)\n";
  double at = now();
  if (!patient || sig == SIGTERM) return true;
  if (at - first < 1) return false;
  if (!warned) {
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    warned = 1;
    warning = at;
    return false;
  }
  return at - warning > 0.3;
}

static void handler(int sig)
{
  if (!pthread_equal(pthread_self(), owner)) {
    pthread_kill(owner, sig);
    return;
  }
  if (moho_stopped() && armed) {
    if (!last_straw(sig)) return;
    if (sig == SIGINT) (void)!write(STDERR_FILENO, "\n", 1);
    _exit(sig == SIGTERM ? EXIT_TERM : EXIT_INT);
  }
  first = now();
  warned = 0;
  pending = 1;
  if (sig == SIGTERM) terminated = 1;
  if (!armed) return;
  moho_stop_set(true);
  if (!state) return;
  lua_sethook(state, hook, LUA_MASKCOUNT, 1);
  leave_compiled_code();
}

static void profiled(void *data, lua_State *L, int samples, int vmstate)
{
  (void)data, (void)L, (void)samples, (void)vmstate;
}

static void install(int sig)
{
  struct sigaction old, act;
  memset(&act, 0, sizeof act);
  act.sa_handler = handler;
  sigemptyset(&act.sa_mask);
  sigaddset(&act.sa_mask, SIGINT);
  sigaddset(&act.sa_mask, SIGTERM);
  if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN) return; /* nohup, or a job of a shell */
  sigaction(sig, &act, NULL);                                               /* without SA_RESTART: reads return   */
}

void signals_install(lua_State *L)
{
  state = L;
  owner = pthread_self();
  /* A check at each line of a trace, and a timer that is stopped at once: only the handler rings. */
  luaJIT_profile_start(L, "li1000000", profiled, NULL);
  struct itimerval none;
  memset(&none, 0, sizeof none);
  setitimer(ITIMER_PROF, &none, NULL);
  install(SIGINT);
  install(SIGTERM);
}

void signals_patient(void) { patient = 1; }
void signals_arm(bool on) { armed = on; }
bool signals_pending(void) { return pending; }
bool signals_terminated(void) { return terminated; }

void signals_clear(void)
{
  pending = 0;
  moho_stop_set(false);
  if (state) lua_sethook(state, NULL, 0, 0);
}

void signals_detach(void)
{
  armed = 0;
  state = NULL;
}
