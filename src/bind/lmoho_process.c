/* Processes for sweeps: a parent that starts workers, hears and ends them, and the worker's side of the talk.

   A worker is started by posix_spawn: no fork of a process that may hold a device. It has a process group of its own,
   so that Ctrl-C at the terminal reaches the parent alone and what a worker starts ends with it; nothing to read on 0,
   one pipe for 1 and 2, a socket on 3 for the talk. It dies with its parent, whatever ends that.

   The parent lets signals in only while it waits (process_guard): an answer is never torn in two. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bind/lmoho.h"

#define PROCESS_NAME "moho.process"
enum { TALK = 3, HIGH = 10, ENOUGH = 1 << 16 };

extern char **environ;

typedef struct process { pid_t pid; int talk, out; bool reaped; int status; } process;

static sigset_t before;                 /* the mask from before process_guard(true)            */
static bool guarded;

static process *to_process(lua_State *L, int i) { return luaL_checkudata(L, i, PROCESS_NAME); }

/* ---- starting ------------------------------------------------------------------------------------------------ */

/* The strings of the list at i, with the last one NULL. They live as long as the list. */
static const char **strings(lua_State *L, int i)
{
  int n = (int)lua_objlen(L, i);
  const char **s = lua_newuserdata(L, sizeof *s * (size_t)(n + 1));
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, i, k + 1);
    s[k] = luaL_checkstring(L, -1);
    lua_pop(L, 1);
  }
  s[n] = NULL;
  return s;
}

/* The environment with the list's "NAME=value" in place of what it has under these names. */
static const char **environment(lua_State *L, int i)
{
  const char **more = strings(L, i);
  size_t nmore = 0, n = 0, k = 0;
  while (more[nmore]) nmore++;
  while (environ[n]) n++;
  const char **s = lua_newuserdata(L, sizeof *s * (n + nmore + 1));
  for (char **e = environ; *e; e++) {
    bool ours = false;
    for (size_t j = 0; j < nmore; j++) {
      size_t name = strcspn(more[j], "=") + 1;
      ours = ours || strncmp(*e, more[j], name) == 0;
    }
    if (!ours) s[k++] = *e;
  }
  for (size_t j = 0; j < nmore; j++) s[k++] = more[j];
  s[k] = NULL;
  return s;
}

/* Above the numbers that the worker's ends get, so that none is overwritten before it is copied. */
static int raise_fd(int fd)
{
  int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
  close(fd);
  return high;
}

static int start(process *p, const char **argv, const char **env, int theirs, int out)
{
  posix_spawn_file_actions_t acts;
  posix_spawnattr_t attr;
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGINT);
  sigaddset(&usual, SIGTERM);
  sigaddset(&usual, SIGPIPE);
  int bad = posix_spawn_file_actions_init(&acts);
  if (bad) return bad;
  bad = posix_spawnattr_init(&attr);
  if (!bad) {
    bad = posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0);
    if (!bad) bad = posix_spawn_file_actions_adddup2(&acts, out, 1);
    if (!bad) bad = posix_spawn_file_actions_adddup2(&acts, out, 2);
    if (!bad) bad = posix_spawn_file_actions_adddup2(&acts, theirs, TALK);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &usual);
    if (!bad) bad = posix_spawn(&p->pid, argv[0], &acts, &attr, (char *const *)argv, (char *const *)env);
    posix_spawnattr_destroy(&attr);
  }
  posix_spawn_file_actions_destroy(&acts);
  return bad;
}

/* (who, argv, {"NAME=value", ...}): argv[1] is a path. */
static int process_start(lua_State *L)
{
  const char *who = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  const char **argv = strings(L, 2), **env = environment(L, 3);
  if (!argv[0]) lmoho_error(L, who, "no program to start");
  process *p = lua_newuserdata(L, sizeof *p);
  *p = (process){ .pid = -1, .talk = -1, .out = -1, .reaped = true };
  luaL_getmetatable(L, PROCESS_NAME);
  lua_setmetatable(L, -2);
  int sock[2], out[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock)) lmoho_error(L, who, "no socket: %s", strerror(errno));
  p->talk = raise_fd(sock[0]);
  int theirs = raise_fd(sock[1]);
  if (pipe2(out, O_CLOEXEC)) {
    int why = errno;
    close(theirs);
    lmoho_error(L, who, "no pipe: %s", strerror(why));
  }
  p->out = raise_fd(out[0]);
  out[1] = raise_fd(out[1]);
  int bad = p->talk < 0 || p->out < 0 || theirs < 0 || out[1] < 0 ? EMFILE : start(p, argv, env, theirs, out[1]);
  close(theirs);
  close(out[1]);
  if (bad) lmoho_error(L, who, "cannot start %s: %s", argv[0], strerror(bad));
  p->reaped = false;
  fcntl(p->out, F_SETFL, O_NONBLOCK);
  return 1;
}

/* ---- hearing ------------------------------------------------------------------------------------------------- */

/* ({process, ...}, seconds): waits until one has something to say or has ended. Gives "ready", "time", or
   "interrupted" after Ctrl-C, which is answered by that. */
static int process_wait(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TTABLE);
  double seconds = luaL_checknumber(L, 2);
  int n = (int)lua_objlen(L, 1);
  struct pollfd *f = lua_newuserdata(L, sizeof *f * (size_t)(2 * n + 1));
  int k = 0;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    process *p = to_process(L, -1);
    if (p->talk >= 0) f[k++] = (struct pollfd){ .fd = p->talk, .events = POLLIN };
    if (p->out >= 0) f[k++] = (struct pollfd){ .fd = p->out, .events = POLLIN };
    lua_pop(L, 1);
  }
  seconds = seconds > 0 ? fmin(seconds, 1e6) : 0;
  struct timespec t = { (time_t)seconds, (long)((seconds - floor(seconds)) * 1e9) };
  int got = ppoll(f, (nfds_t)k, &t, guarded ? &before : NULL);
  if (moho_stopped()) {
    moho_stop_set(false);
    lua_pushliteral(L, "interrupted");
  } else if (got > 0) lua_pushliteral(L, "ready");
  else lua_pushliteral(L, "time");
  return 1;
}

/* (on): no signals but in process_wait, from here on. */
static int process_guard(lua_State *L)
{
  bool on = lua_toboolean(L, 1);
  sigset_t both;
  if (on == guarded) return 0;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  if (on) pthread_sigmask(SIG_BLOCK, &both, &before);
  else pthread_sigmask(SIG_SETMASK, &before, NULL);
  guarded = on;
  return 0;
}

/* (process, "talk" or "out"): what is there now, "" when nothing is, nil when its end is closed. */
static int process_read(lua_State *L)
{
  process *p = to_process(L, 1);
  int *fd = strcmp(luaL_checkstring(L, 2), "out") == 0 ? &p->out : &p->talk;
  char buf[ENOUGH];
  if (*fd < 0) { lua_pushnil(L); return 1; }
  ssize_t n = fd == &p->out ? read(*fd, buf, sizeof buf) : recv(*fd, buf, sizeof buf, MSG_DONTWAIT);
  if (n > 0) lua_pushlstring(L, buf, (size_t)n);
  else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) lua_pushliteral(L, "");
  else {
    close(*fd);
    *fd = -1;
    lua_pushnil(L);
  }
  return 1;
}

/* (process, text): false when nobody hears it. */
static int process_tell(lua_State *L)
{
  process *p = to_process(L, 1);
  size_t n;
  const char *s = luaL_checklstring(L, 2, &n);
  bool ok = p->talk >= 0;
  while (ok && n) {
    ssize_t k = send(p->talk, s, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    ok = k > 0;
    if (ok) s += k, n -= (size_t)k;
  }
  lua_pushboolean(L, ok);
  return 1;
}

/* (process): nil while it runs, else "exit", its code, or "signal", its number and name. What it has started ends with
   it: as long as nobody has waited for the leader the group's number is no one else's. */
static int process_ended(lua_State *L)
{
  process *p = to_process(L, 1);
  if (!p->reaped) {
    siginfo_t about = { 0 };
    if (waitid(P_PID, (id_t)p->pid, &about, WEXITED | WNOHANG | WNOWAIT) == 0) {
      if (!about.si_pid) return 0;
      kill(-p->pid, SIGKILL);
    }
    if (waitpid(p->pid, &p->status, 0) < 0) p->status = 0;   /* someone else has waited for it   */
    p->reaped = true;
  }
  if (WIFSIGNALED(p->status)) {
    lua_pushliteral(L, "signal");
    lua_pushinteger(L, WTERMSIG(p->status));
    lua_pushstring(L, strsignal(WTERMSIG(p->status)));
    return 3;
  }
  lua_pushliteral(L, "exit");
  lua_pushinteger(L, WEXITSTATUS(p->status));
  return 2;
}

/* (process, hard): the worker and all that it started. */
static int process_stop(lua_State *L)
{
  process *p = to_process(L, 1);
  if (!p->reaped) kill(-p->pid, lua_toboolean(L, 2) ? SIGKILL : SIGTERM);
  return 0;
}

static int process_pid(lua_State *L)
{
  lua_pushinteger(L, lua_isnoneornil(L, 1) ? getpid() : to_process(L, 1)->pid);
  return 1;
}

/* (process): bytes of memory it holds now; 0 when that can't be seen. */
static int process_memory(lua_State *L)
{
  process *p = to_process(L, 1);
  char path[64];
  unsigned long long pages = 0;
  snprintf(path, sizeof path, "/proc/%ld/statm", (long)p->pid);
  FILE *f = p->reaped ? NULL : fopen(path, "re");
  if (f) {
    if (fscanf(f, "%*u %llu", &pages) != 1) pages = 0;
    fclose(f);
  }
  lua_pushnumber(L, (double)pages * (double)sysconf(_SC_PAGESIZE));
  return 1;
}

static int process_gc(lua_State *L)
{
  process *p = to_process(L, 1);
  if (!p->reaped) {
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR) {}
    p->reaped = true;
  }
  if (p->talk >= 0) close(p->talk);
  if (p->out >= 0) close(p->out);
  p->talk = p->out = -1;
  return 0;
}

/* ---- the worker's side --------------------------------------------------------------------------------------- */

static struct stat given[TALK + 1];     /* what the worker's first descriptors led to at its start */

/* Whether they still do. A run may have closed them, and what is opened next gets their numbers: another run would
   print into a file of results. */
static int worker_whole(lua_State *L)
{
  bool whole = true;
  for (int fd = 0; fd <= TALK; fd++) {
    struct stat st;
    whole = whole && fstat(fd, &st) == 0 && st.st_dev == given[fd].st_dev && st.st_ino == given[fd].st_ino;
  }
  lua_pushboolean(L, whole);
  return 1;
}

/* Before a file is opened: one that got the number of a closed output would get what is printed. Nothing goes there
   then. */
static int worker_fill(lua_State *L)
{
  for (int fd = 0; fd < TALK; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
      lmoho_error(L, "sweep", "cannot open /dev/null: %s", strerror(errno));
  return 0;
}

/* (pid): ends with the parent of this number, or at once when that has ended already. */
static int worker_begin(lua_State *L)
{
  pid_t parent = (pid_t)luaL_checkinteger(L, 1);
  for (int fd = 0; fd <= TALK; fd++) (void)fstat(fd, &given[fd]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  if (fcntl(TALK, F_SETFD, FD_CLOEXEC)) lmoho_error(L, "sweep", "a worker is started by a sweep, not by hand");
  return 0;
}

/* The next line from the parent, nil when there will be none. */
static int worker_next(lua_State *L)
{
  luaL_Buffer b;
  char c;
  luaL_buffinit(L, &b);
  for (;;) {
    ssize_t n = read(TALK, &c, 1);      /* lines are short, and few                            */
    if (n < 0 && errno == EINTR && !moho_stopped()) continue;
    if (n <= 0) return 0;
    if (c == '\n') break;
    luaL_addchar(&b, c);
  }
  luaL_pushresult(&b);
  return 1;
}

static int worker_tell(lua_State *L)
{
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  while (n) {
    ssize_t k = send(TALK, s, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) {                       /* the parent is gone, or the run has closed what it knew nothing of */
      if (k < 0 && (errno == EBADF || errno == ENOTSOCK))
        fputs("sweep: the run has closed descriptor 3, its worker's line to the sweep\n", stderr);
      _exit(1);
    }
    s += k, n -= (size_t)k;
  }
  return 0;
}

/* The most bytes of memory that this process has held since this was last asked; nil where the system does not let
   that be counted anew. */
static int worker_peak(lua_State *L)
{
  char line[256];
  unsigned long long kib = 0;
  FILE *f = fopen("/proc/self/status", "re");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
  if (f) fclose(f);
  int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  bool reset = fd >= 0 && write(fd, "5", 1) == 1;
  if (fd >= 0) close(fd);
  if (!reset || !kib) return 0;
  lua_pushnumber(L, (double)kib * 1024);
  return 1;
}

/* How many processes the system has ended for lack of memory, since it was started; nil where it does not say. */
static int process_ooms(lua_State *L)
{
  char line[256];
  unsigned long long n;
  bool found = false;
  FILE *f = fopen("/proc/vmstat", "re");
  while (f && !found && fgets(line, sizeof line, f)) found = sscanf(line, "oom_kill %llu", &n) == 1;
  if (f) fclose(f);
  if (!found) return 0;
  lua_pushnumber(L, (double)n);
  return 1;
}

/* ({program, word, ...}): this process becomes the program, and does not return. */
static int process_become(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TTABLE);
  const char **argv = strings(L, 1);
  fflush(NULL);
  execv(argv[0], (char *const *)argv);
  return lmoho_error(L, "sweep", "cannot start %s: %s", argv[0], strerror(errno));
}

void lmoho_open_process(lua_State *L)
{
  static const luaL_Reg f[] = {
      {"process_start", process_start},   {"process_wait", process_wait},   {"process_guard", process_guard},
      {"process_read", process_read},     {"process_tell", process_tell},   {"process_ended", process_ended},
      {"process_stop", process_stop},     {"process_pid", process_pid},     {"process_memory", process_memory},
      {"worker_begin", worker_begin},     {"worker_next", worker_next},     {"worker_tell", worker_tell},
      {"worker_peak", worker_peak},       {"worker_whole", worker_whole},   {"process_ooms", process_ooms},
      {"process_become", process_become}, {"worker_fill", worker_fill},
      {NULL, NULL},
  };
  luaL_setfuncs(L, f, 0);
  if (luaL_newmetatable(L, PROCESS_NAME)) {
    lua_pushcfunction(L, process_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushliteral(L, "process");
    lua_setfield(L, -2, "__metatable");
  }
  lua_pop(L, 1);
}
