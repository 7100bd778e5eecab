/* ptyrun PROGRAM ARGS... < script: runs a program on a pseudo-terminal and talks to it as a user would. Lines of the
   script:
 *
 *   send TEXT      \n \r \t \\ \e \xHH are read as in C; \x03 is Ctrl-C, \x04 Ctrl-D
 *   expect TEXT    waits until TEXT comes, behind what was matched before
 *   refuse TEXT    TEXT must not have come with the last match: behind the one before it
 *   pause SECONDS  only to vary the moment; nothing may depend on how long it is
 *   settle         waits until no signal is pending for the program
 *   size ROWS COLUMNS      of the terminal from now on
 *   signal N       sends signal N to the program
 *   exit CODE      waits for the end; 128 + N for signal N
 *
 * Exit 0 when all came true; otherwise 1, and the transcript on the output.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *text; /* all that came */
static size_t used, room, matched, before; /* ends of the last match and of the one before it */
static int master;
static pid_t child;
static double patience = 60; /* for a machine at work; spent only when something does not come */

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const char *arg)
{
  printf("ptyrun: %s '%s'; the terminal showed:\n", what, arg);
  for (size_t i = 0; i < used; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '\n' || (c >= 32 && c < 127))
      putchar(c);
    else if (c != '\r')
      printf("<%02x>", c);
  }
  printf("\n");
  kill(child, SIGKILL);
  exit(1);
}

/* What has come within `ms`; false at the end of the terminal. */
static bool gather(int ms)
{
  struct pollfd p = {.fd = master, .events = POLLIN};
  int n = poll(&p, 1, ms);
  if (n <= 0) return true;
  if (room - used < 4097) {
    room = 2 * room + 65536;
    text = realloc(text, room);
    if (!text) exit(1);
  }
  ssize_t got = read(master, text + used, 4096);
  if (got <= 0) return got < 0 && errno == EINTR;
  used += (size_t)got;
  text[used] = 0;
  return true;
}

static char *find(size_t from, const char *what)
{
  return text ? memmem(text + from, used - from, what, strlen(what)) : NULL;
}

static void expect(const char *what)
{
  double until = now() + patience;
  for (;;) {
    char *at = find(matched, what);
    if (at) {
      before = matched;
      matched = (size_t)(at - text) + strlen(what);
      return;
    }
    bool open = gather(100);
    if (!open && !find(matched, what)) fail("the end came before", what);
    if (now() > until) fail("no", what);
  }
}

static size_t unescape(char *s)
{
  char *out = s, *start = s;
  for (; *s; s++) {
    if (*s != '\\') {
      *out++ = *s;
      continue;
    }
    s++;
    if (*s == 'n')
      *out++ = '\n';
    else if (*s == 'r')
      *out++ = '\r';
    else if (*s == 't')
      *out++ = '\t';
    else if (*s == 'e')
      *out++ = '\033';
    else if (*s == 'x' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
      char hex[3] = {s[1], s[2], 0};
      *out++ = (char)strtol(hex, NULL, 16);
      s += 2;
    } else
      *out++ = *s;
  }
  *out = 0;
  return (size_t)(out - start);
}

/* Reads what comes meanwhile: a program that echoes a long text would otherwise wait for us, and we for it. */
static bool type(const char *s, size_t n)
{
  double until = now() + patience;
  while (n > 0 && now() < until) {
    struct pollfd p = {.fd = master, .events = POLLIN | POLLOUT};
    if (poll(&p, 1, 100) <= 0) continue;
    if (p.revents & POLLIN) gather(0);
    if (!(p.revents & POLLOUT)) continue;
    ssize_t put = write(master, s, n < 64 ? n : 64);
    if (put < 0) return false;
    s += put;
    n -= (size_t)put;
  }
  return n == 0;
}

static bool signal_pending(void)
{
  char path[64], about[256];
  unsigned long long set;
  bool found = false;
  snprintf(path, sizeof path, "/proc/%ld/status", (long)child);
  FILE *f = fopen(path, "r");
  while (f && !found && fgets(about, sizeof about, f))
    found = (sscanf(about, "SigPnd: %llx", &set) == 1 || sscanf(about, "ShdPnd: %llx", &set) == 1) && set;
  if (f) fclose(f);
  return found;
}

/* Two signals at once are one: what is to be the second waits here until the program has seen the first. */
static void settle(void)
{
  double until = now() + patience;
  while (signal_pending()) {
    gather(10);
    if (now() > until) fail("a signal is still pending", "");
  }
}

static void leave(int code)
{
  double until = now() + patience;
  int status;
  pid_t done;
  while ((done = waitpid(child, &status, WNOHANG)) == 0) {
    if (!gather(50)) usleep(10000);
    if (now() > until) fail("still running, expected the exit code", "");
  }
  for (int i = 0; i < 100 && gather(0); i++) {
  }
  int got = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  char numbers[64];
  snprintf(numbers, sizeof numbers, "%d, expected %d", got, code);
  if (got != code) fail("exit code", numbers);
  child = 0;
}

static void obey(char *line)
{
  line[strcspn(line, "\n")] = 0;
  char *arg = strchr(line, ' ');
  if (arg)
    *arg++ = 0;
  else
    arg = line + strlen(line);
  if (!*line || *line == '#') return;
  if (strcmp(line, "send") == 0) {
    size_t n = unescape(arg);
    if (!type(arg, n)) fail("could not send", arg);
  } else if (strcmp(line, "expect") == 0) {
    unescape(arg);
    expect(arg);
  } else if (strcmp(line, "refuse") == 0) {
    unescape(arg);
    if (find(before, arg)) fail("unwanted", arg);
  } else if (strcmp(line, "pause") == 0) {
    double until = now() + atof(arg);
    while (now() < until && gather(20)) {
    }
  } else if (strcmp(line, "size") == 0) {
    struct winsize size = {0};
    char *columns;
    size.ws_row = (unsigned short)strtol(arg, &columns, 10);
    size.ws_col = (unsigned short)strtol(columns, NULL, 10);
    ioctl(master, TIOCSWINSZ, &size);
  } else if (strcmp(line, "signal") == 0) {
    kill(child, atoi(arg));
  } else if (strcmp(line, "settle") == 0) {
    settle();
  } else if (strcmp(line, "exit") == 0) {
    leave(atoi(arg));
  } else {
    fail("no such word", line);
  }
}

int main(int argc, char **argv)
{
  if (argc < 2) return fprintf(stderr, "usage: ptyrun PROGRAM ARGS... < script\n"), 2;
  struct winsize size = {.ws_row = 24, .ws_col = 200};
  child = forkpty(&master, NULL, NULL, &size);
  if (child < 0) return perror("ptyrun"), 2;
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    signal(SIGINT, SIG_DFL); /* a shell's job in the background ignores it */
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    _exit(127);
  }
  char *line = NULL;
  size_t n = 0;
  while (getline(&line, &n, stdin) > 0) obey(line);
  free(line);
  if (child) kill(child, SIGKILL);
  free(text);
  return 0;
}
