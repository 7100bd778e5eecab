/* The command line and the environment, read once. */
#ifndef MOHO_HOST_OPTIONS_H
#define MOHO_HOST_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_DEVICE = 3, EXIT_INT = 130, EXIT_TERM = 143 };

typedef enum job {
  RUN_LUA,
  RUN_INFO,
  RUN_TEST,
  RUN_SWEEP,
  RUN_HELP,
  RUN_HEAD,
  RUN_CONVERT,
  SHOW_VERSION,
  SHOW_HELP,
  SHOW_ENV
} job;
typedef struct step {
  char kind;
  const char *text;
} step; /* 'e' code or 'l' module, in the order given */

typedef struct options {
  job what;
  const char *program; /* argv[0]                                        */
  step *steps;
  int nsteps;
  const char **include; /* -I, in order                                   */
  int ninclude;
  int script;              /* index of the script in argv, 0: none           */
  int first;               /* index of the first argument behind it          */
  const char *device;      /* NULL: not asked for                            */
  const char *device_from; /* "--device" or "MOHO_DEVICE", for messages      */
  int threads;             /* 0: the default                                 */
  size_t memory;           /* --mem: bytes of a device's arrays, 0: no limit */
  double memory_part;      /* or this part of what a device has              */
  double seed;             /* of generators that are given none; -1: not set */
  const char *watch;       /* -j v, -j dump: module of LuaJIT's that reports */
  int jit;                 /* -1: scripts on, prompt off                     */
  bool interactive, quiet, json, strict, bytecode, sync, no_env, colour_set;
} options;

/* Gives EXIT_OK, or EXIT_USAGE with the message written. */
int options_parse(int argc, char **argv, options *o);
void options_clear(options *o);
void options_help(void);
/* Entry i of a section as help shows it, left column and right; false behind the last. */
typedef enum options_section { COMMANDS, OPTIONS, ENVIRONMENT } options_section;
bool options_entry(options_section what, int i, char *left, size_t size, const char **help);
void options_help_env(void);
/* A variable of the environment, NULL when it is empty or with -E. */
const char *options_env(const options *o, const char *name);

#endif
