/* The command line. Written out by hand: what is not implemented does not exist, and a word that is not known is
   answered with the nearest one that is. */
#include "host/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "host/terminal.h"

enum {
  OPT_E,
  OPT_L,
  OPT_I,
  OPT_INTERACTIVE,
  OPT_NOENV,
  OPT_QUIET,
  OPT_DEVICE,
  OPT_MEMORY,
  OPT_THREADS,
  OPT_SYNC,
  OPT_SEED,
  OPT_JIT,
  OPT_STRICT,
  OPT_NOSTRICT,
  OPT_BYTECODE,
  OPT_VERSION,
  OPT_JSON,
  OPT_HELP,
  OPT_HELPENV,
  OPT_COLOUR
};

/* The same table reads the line and prints the help. value: NULL for a flag. */
static const struct option {
  char letter;
  const char *name, *value, *help;
  int id;
} table[] = {
  { 'e', NULL, "CODE", "run CODE; -e and -l may be repeated and run in order, before the script", OPT_E },
  { 'l', NULL, "MOD", "require MOD, as the global of that name", OPT_L },
  { 'i', NULL, NULL, "the prompt after the rest, also when the input is no terminal", OPT_INTERACTIVE },
  { 'I', NULL, "DIR", "look for modules in DIR", OPT_I },
  { 'E', NULL, NULL, "ignore MOHO_* and LUA_* in the environment", OPT_NOENV },
  { 'q', NULL, NULL, "no greeting at the prompt", OPT_QUIET },
  { 'd', "device", "NAME", "default device: auto, cpu, cuda or cuda:N", OPT_DEVICE },
  { 0, "mem", "SIZE", "the most that arrays may hold on a device: 8GiB, or a part of what it has, 60%", OPT_MEMORY },
  { 0, "threads", "N", "threads of the CPU", OPT_THREADS },
  { 0, "sync", NULL, "wait for each CUDA kernel, so that a failure names the one that failed; slow", OPT_SYNC },
  { 0, "seed", "N", "seed of moho.rng() and math.random where a script gives none; without it 0", OPT_SEED },
  { 'j', NULL, "on|off|v|dump",
    "LuaJIT's compiler; without -j on for scripts, off at the prompt; v and dump report what it does", OPT_JIT },
  { 0, "strict", NULL, "undeclared globals are errors (the default for scripts)", OPT_STRICT },
  { 0, "no-strict", NULL, "undeclared globals are nil, as in plain Lua", OPT_NOSTRICT },
  { 0, "bytecode", NULL, "accept Lua bytecode, which can crash the program", OPT_BYTECODE },
  { 0, "color", "WHEN", "auto (colours on a terminal, without NO_COLOR), always or never", OPT_COLOUR },
  { 0, "json", NULL, "with --version or info: as JSON", OPT_JSON },
  { 'v', "version", NULL, "versions of everything inside", OPT_VERSION },
  { 'h', "help", NULL, "this text", OPT_HELP },
  { 0, "help-env", NULL, "variables of the environment", OPT_HELPENV },
};
enum { NTABLE = sizeof table / sizeof table[0] };

static const struct command {
  const char *name;
  job what;
  const char *help;
} commands[] = {
    {"info", RUN_INFO, "versions, devices, memory, threads"},
    {"test", RUN_TEST, "run specs (*_spec.lua) with busted; its options may follow"},
    {"help", RUN_HELP, "a function, method or operator; --text, --html or --man: the whole manual"},
    {"sweep", RUN_SWEEP, "run a script's parameter sweep, look at its results; moho sweep --help"},
    {"head", RUN_HEAD, "what a file of arrays holds, by its headers and the edges of its arrays"},
    {"convert", RUN_CONVERT, "an array from one format to another, by suffix; moho convert --help"},
};
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static const struct {
  const char *name, *help;
} environment[] = {
  { "MOHO_DEVICE", "default device, as --device" },
  { "MOHO_MEM", "the most that arrays may hold on a device, as --mem" },
  { "MOHO_THREADS", "threads of the CPU, as --threads" },
  { "MOHO_PATH", "where modules are looked for, as LUA_PATH (dir/?.lua;...), before ./?.lua" },
  { "MOHO_CPATH", "the same for C modules" },
  { "MOHO_LUA", "folder with moho/*.lua to be used instead of the copies in the program" },
  { "MOHO_HISTORY", "file of the prompt's history instead of $XDG_STATE_HOME/moho/history" },
  { "MOHO_DEBUG", "1: tracebacks show every frame" },
  { "MOHO_COLOR", "colours: auto, always or never, as --color" },
  { "NO_COLOR", "set to anything: no colours, unless --color or MOHO_COLOR ask for them" },
  { "MOHO_GRAPHICS", "how moho.show draws: sixel or blocks, instead of asking the terminal" },
  { "MOHO_LOG", "least level of moho.log that is written: debug, info, warning, error or none" },
  { "MOHO_MODULES", "folder of the device modules (moho-cuda.so)" },
  { "MOHO_ISA",
    "Kirchhoff and travel time loops of the CPU: generic, avx2 or avx512 instead of the best that the processor has" },
  { "MOHO_SYNC", "1: as --sync" },
  { "LUA_PATH, LUA_CPATH", "as in Lua; LUA_INIT is ignored" },
  { "OMP_NUM_THREADS", "threads of the CPU without --threads and MOHO_THREADS" },
  { "CUDA_VISIBLE_DEVICES", "as everywhere" },
};

const char *options_env(const options *o, const char *name)
{
  const char *v = o->no_env ? NULL : getenv(name);
  return v && *v ? v : NULL;
}

/* ---- did you mean ----------------------------------------------------------- */

static int distance(const char *a, const char *b)
{
  enum { MAX = 32 };
  int la = (int)strlen(a), lb = (int)strlen(b), row[MAX + 1];
  if (la > MAX || lb > MAX) return MAX;
  for (int j = 0; j <= lb; j++) row[j] = j;
  for (int i = 1; i <= la; i++) {
    int diag = row[0];
    row[0] = i;
    for (int j = 1; j <= lb; j++) {
      int best = diag + (a[i - 1] != b[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diag = row[j];
      row[j] = best;
    }
  }
  return row[lb];
}

static void consider(const char *word, const char *name, const char **best, int *at)
{
  int d = distance(word, name);
  if (strncmp(word, name, strlen(word)) == 0 && d > 1) d = 1;
  if (d < *at) *at = d, *best = name;
}

static int usage(const char *fmt, const char *word)
{
  fprintf(stderr, "moho: ");
  fprintf(stderr, fmt, word);
  fprintf(stderr, "\n");
  return EXIT_USAGE;
}

static int unknown_option(const char *arg)
{
  const char *word = arg + strspn(arg, "-"), *best = NULL;
  char name[64];
  int at = 3;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
  for (int i = 0; i < NTABLE; i++)
    if (table[i].name && strlen(name) > 1) consider(name, table[i].name, &best, &at);
  if (best)
    fprintf(stderr, "moho: unknown option '%s' (did you mean '--%s'?); moho --help lists them\n", arg, best);
  else
    fprintf(stderr, "moho: unknown option '%s'; moho --help lists them\n", arg);
  return EXIT_USAGE;
}

/* A script that is not there may be a command misspelt. */
static int no_script(const char *word)
{
  const char *best = NULL;
  int at = 3;
  if (!strpbrk(word, "/."))
    for (int i = 0; i < NCOMMANDS; i++) consider(word, commands[i].name, &best, &at);
  if (best)
    fprintf(stderr, "moho: no script '%s' (did you mean the command '%s'?)\n", word, best);
  else
    fprintf(stderr, "moho: no script '%s'\n", word);
  return EXIT_USAGE;
}

/* ---- values --------------------------------------------------------------------- */

static int set_device(options *o, const char *name, const char *from)
{
  const char *colon = strchr(name, ':');
  bool ok = strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0;
  if (colon && strncmp(name, "cuda:", 5) == 0 && colon[1])
    ok = strspn(colon + 1, "0123456789") == strlen(colon + 1) && strlen(colon) < 6;
  if (!ok) {
    fprintf(stderr, "moho: %s '%s': expected auto, cpu, cuda or cuda:N\n", from, name);
    return EXIT_USAGE;
  }
  o->device = name;
  o->device_from = from;
  return EXIT_OK;
}

static int set_threads(options *o, const char *value, const char *from)
{
  char *end;
  long n = strtol(value, &end, 10);
  if (end == value || *end || n < 1 || n > 4096) {
    fprintf(stderr, "moho: %s '%s': expected a number from 1 to 4096\n", from, value);
    return EXIT_USAGE;
  }
  o->threads = (int)n;
  return EXIT_OK;
}

/* "8GiB", "500 MB", "4e9" or "60%". */
static int set_memory(options *o, const char *text, const char *from)
{
  static const struct { const char *name; double size; } units[] = {
    {"", 1},           {"B", 1},          {"kB", 1e3},        {"MB", 1e6},         {"GB", 1e9},          {"TB", 1e12},
    {"KiB", 0x1p10},   {"MiB", 0x1p20},   {"GiB", 0x1p30},    {"TiB", 0x1p40},     {"K", 0x1p10},        {"M", 0x1p20},
    {"G", 0x1p30},     {"T", 0x1p40},
  };
  char *end;
  double n = strtod(text, &end), bytes = 0, part = 0;
  end += strspn(end, " ");
  if (strcmp(end, "%") == 0) part = n / 100;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (end != text && strcasecmp(end, units[i].name) == 0) bytes = n * units[i].size;
  if (!(bytes >= 1 && bytes < 0x1p63) && !(part > 0 && part <= 1)) {
    fprintf(
      stderr,
      "moho: %s '%s': expected a size such as 8GiB, or a part of what the device has, up to 100%%, such as 60%%\n",
      from, text);
    return EXIT_USAGE;
  }
  o->memory = (size_t)bytes;
  o->memory_part = part;
  return EXIT_OK;
}

static int set_seed(options *o, const char *text)
{
  char *end;
  o->seed = strtod(text, &end);
  if (end != text && !*end && o->seed >= 0 && o->seed <= 0x1p53 && o->seed == floor(o->seed)) return EXIT_OK;
  return usage("--seed '%s': expected a whole number from 0 to 2^53", text);
}

static int set_jit(options *o, const char *text)
{
  if (strcmp(text, "v") == 0) o->watch = "jit.v";
  else if (strcmp(text, "dump") == 0) o->watch = "jit.dump";
  else if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
    return usage("-j '%s': expected on, off, v or dump", text);
  o->jit = strcmp(text, "off") != 0;
  return EXIT_OK;
}

static int take(options *o, const struct option *t, const char *value)
{
  switch (t->id) {
  case OPT_E:
    o->steps[o->nsteps++] = (step){'e', value};
    break;
  case OPT_L:
    o->steps[o->nsteps++] = (step){'l', value};
    break;
  case OPT_I:
    o->include[o->ninclude++] = value;
    break;
  case OPT_INTERACTIVE:
    o->interactive = true;
    break;
  case OPT_NOENV:
    o->no_env = true;
    break;
  case OPT_QUIET:
    o->quiet = true;
    break;
  case OPT_DEVICE:
    return set_device(o, value, "--device");
  case OPT_MEMORY:
    return set_memory(o, value, "--mem");
  case OPT_SYNC:
    o->sync = true;
    break;
  case OPT_SEED:
    return set_seed(o, value);
  case OPT_THREADS:
    return set_threads(o, value, "--threads");
  case OPT_JIT:
    return set_jit(o, value);
  case OPT_STRICT:
    o->strict = true;
    break;
  case OPT_NOSTRICT:
    o->strict = false;
    break;
  case OPT_BYTECODE:
    o->bytecode = true;
    break;
  case OPT_COLOUR:
    if (!terminal_set_colour(value)) return usage("--color '%s': expected auto, always or never", value);
    o->colour_set = true;
    break;
  case OPT_JSON:
    o->json = true;
    break;
  case OPT_VERSION:
    if (o->what != SHOW_HELP) o->what = SHOW_VERSION;
    break;
  case OPT_HELP:
    o->what = SHOW_HELP;
    break;
  case OPT_HELPENV:
    o->what = SHOW_ENV;
    break;
  }
  return EXIT_OK;
}

/* One argument that starts with '-'; *i moves on when the value is the next one. */
static int parse_option(int argc, char **argv, int *i, options *o)
{
  const char *arg = argv[*i], *value = NULL;
  const struct option *t = NULL;
  if (arg[1] == '-') {
    size_t n = strcspn(arg + 2, "=");
    for (int k = 0; k < NTABLE; k++)
      if (table[k].name && strlen(table[k].name) == n && strncmp(table[k].name, arg + 2, n) == 0) t = &table[k];
    if (!t) return unknown_option(arg);
    if (arg[2 + n] == '=') value = arg + 3 + n;
    if (value && !t->value) return usage("option '%s' takes no value", arg);
  } else {
    for (int k = 0; k < NTABLE; k++)
      if (table[k].letter == arg[1]) t = &table[k];
    if (!t || (arg[2] && !t->value)) return unknown_option(arg);
    if (arg[2]) value = arg + 2 + (arg[2] == '=' && t->id != OPT_E);
  }
  if (t->value && !value) {
    if (*i + 1 >= argc) return usage("option '%s' needs a value", arg);
    value = argv[++*i];
  }
  return take(o, t, value);
}

/* Behind a command: `info` takes flags of ours, `test` and `sweep` read what follows themselves. */
static int parse_command(int argc, char **argv, int i, options *o)
{
  o->first = i;
  if (o->what != RUN_INFO) return EXIT_OK;
  for (; i < argc; i++) {
    if (argv[i][0] != '-') return usage("info takes no argument '%s'", argv[i]);
    int rc = parse_option(argc, argv, &i, o);
    if (rc) return rc;
  }
  return EXIT_OK;
}

static int from_environment(options *o)
{
  static const char *const library[] = {"MOHO_MODULES", "MOHO_ISA", "MOHO_SYNC", "MOHO_HISTORY",
                                       "MOHO_LOG",     "MOHO_GRAPHICS"}; /* read where they are needed */
  const char *v;
  for (size_t i = 0; o->no_env && i < sizeof library / sizeof *library; i++) unsetenv(library[i]);
  if (!o->device && (v = options_env(o, "MOHO_DEVICE"))) {
    int rc = set_device(o, v, "MOHO_DEVICE");
    if (rc) return rc;
  }
  if (!o->colour_set && (v = options_env(o, "MOHO_COLOR")) && !terminal_set_colour(v))
    return usage("MOHO_COLOR '%s': expected auto, always or never", v);
  if (!o->memory && !(o->memory_part > 0) && (v = options_env(o, "MOHO_MEM"))) {
    int rc = set_memory(o, v, "MOHO_MEM");
    if (rc) return rc;
  }
  if (o->sync) setenv("MOHO_SYNC", "1", 1);
  if (!o->threads && (v = options_env(o, "MOHO_THREADS"))) return set_threads(o, v, "MOHO_THREADS");
  return EXIT_OK;
}

static bool readable(const char *path)
{
  FILE *f = fopen(path, "r");
  if (f) fclose(f);
  return f != NULL;
}

int options_parse(int argc, char **argv, options *o)
{
  *o = (options){.jit = -1, .seed = -1, .strict = true, .program = argc > 0 ? argv[0] : "moho", .first = argc};
  o->steps = calloc((size_t)argc + 1, sizeof *o->steps);
  o->include = calloc((size_t)argc + 1, sizeof *o->include);
  if (!o->steps || !o->include) return usage("%s", "out of memory");
  int i = 1;
  for (; i < argc; i++) {
    const char *arg = argv[i];
    if (strcmp(arg, "--") == 0) {
      o->first = i + 1;
      break;
    }
    if (arg[0] != '-' || !arg[1]) {
      for (int k = 0; k < NCOMMANDS && o->what == RUN_LUA; k++)
        if (strcmp(arg, commands[k].name) == 0) {
          o->what = commands[k].what;
          int rc = parse_command(argc, argv, i + 1, o);
          return rc ? rc : from_environment(o);
        }
      o->script = i;
      o->first = i + 1;
      break;
    }
    int rc = parse_option(argc, argv, &i, o);
    if (rc) return rc;
  }
  if (o->what != RUN_LUA) return EXIT_OK;
  if (o->json) return usage("%s", "--json goes with --version or info");
  if (o->script && strcmp(argv[o->script], "-") != 0 && !readable(argv[o->script])) return no_script(argv[o->script]);
  return from_environment(o);
}

void options_clear(options *o)
{
  free(o->steps);
  free(o->include);
}

/* ---- help --------------------------------------------------------------------------- */

bool options_entry(options_section what, int i, char *left, size_t size, const char **help)
{
  const int n[] = {NCOMMANDS, NTABLE, sizeof environment / sizeof environment[0]};
  if (i < 0 || i >= n[what]) return false;
  if (what == COMMANDS) {
    snprintf(left, size, "moho %s", commands[i].name);
    *help = commands[i].help;
  } else if (what == ENVIRONMENT) {
    snprintf(left, size, "%s", environment[i].name);
    *help = environment[i].help;
  } else {
    char letter[4] = "";
    const char *name = table[i].name, *value = table[i].value;
    if (table[i].letter) snprintf(letter, sizeof letter, "-%c", table[i].letter);
    snprintf(left, size, "%-2s%s%s%s%s%s", letter,
             letter[0] && name ? ", "
             : name            ? "  "
                               : "",
             name ? "--" : "", name ? name : "", value ? (name ? "=" : " ") : "", value ? value : "");
    *help = table[i].help;
  }
  return true;
}

void options_help(void)
{
  printf("usage: moho [options] [script.lua [arguments]]\n"
         "       moho [options] -e CODE [-- arguments]\n");
  for (int i = 0; i < NCOMMANDS; i++) printf("       moho %-8s %s\n", commands[i].name, commands[i].help);
  printf("\nWithout a script: the prompt on a terminal, otherwise the script is read from the input (as with -).\n\n");
  char left[64];
  const char *help;
  for (int i = 0; options_entry(OPTIONS, i, left, sizeof left, &help); i++) printf("  %-22s %s\n", left, help);
  printf("\nExit codes: 0 done, 1 error or failed test, 2 usage, 3 the device asked for is not available, 130 "
         "interrupted,\n"
         "143 terminated.\n");
}

void options_help_env(void)
{
  for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++)
    printf("%-22s %s\n", environment[i].name, environment[i].help);
}
