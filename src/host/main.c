/* The program: options, then -l and -e in order, the script, the prompt. Each runs protected; the exit code says how it
 * ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <luajit.h>

#include "bind/lmoho.h"
#include "host/options.h"
#include "host/repl.h"
#include "host/report.h"
#include "host/signals.h"
#include "host/state.h"
#include "host/version.h"

/* Calls the function below `nargs` arguments; gives the exit code, the error is written. */
static int run(lua_State *L, int status, int nargs)
{
  if (status == 0) {
    int at = lua_gettop(L) - nargs;
    lua_pushcfunction(L, report_handler);
    lua_insert(L, at);
    signals_arm(true);
    status = lua_pcall(L, nargs, 0, at);
    signals_arm(false);
    lua_remove(L, at);
  }
  if (status != 0) report_error(L);
  if (signals_terminated()) return EXIT_TERM;
  if (signals_pending() && moho_stopped()) return EXIT_INT;
  signals_clear();
  return status == 0 ? EXIT_OK : EXIT_ERROR;
}

/* As in Lua 5.4 the module is a global too: moho -l moho -e 'print(moho.mem())'. What the module has set itself
   stays. */
static int run_require(lua_State *L, const char *name)
{
  static const char code[] = "local name = ... local m = require(name) "
                             "if name:find '^[%a_][%w_]*$' and rawget(_G, name) == nil then rawset(_G, name, m) end";
  int status = luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host");
  lua_pushstring(L, name);
  return run(L, status, 1);
}

static int run_steps(lua_State *L, const options *o)
{
  for (int i = 0; i < o->nsteps; i++)
    if (o->steps[i].kind == 'e') state_keep(L, o->steps[i].text);
  for (int i = 0; i < o->nsteps; i++) {
    int rc;
    if (o->steps[i].kind == 'l')
      rc = run_require(L, o->steps[i].text);
    else {
      int status = state_loadstring(L, o, o->steps[i].text, "=(command line)");
      rc = run(L, status, status == 0 ? state_pushargs(L) : 0);
    }
    if (rc) return rc;
  }
  return EXIT_OK;
}

/* A script that returns a sweep is a sweep's script: it is run. */
static int run_script(lua_State *L, const options *o, const char *path)
{
  static const char code[] =
    "local script = ... local s = script(select(2, ...)) local sweep = package.loaded['moho.sweep'] "
    "if sweep and sweep.is(s) then require('moho.sweep_command').returned(s) end";
  int status = luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host");
  if (status == 0) status = state_loadfile(L, o, path && strcmp(path, "-") != 0 ? path : NULL);
  return run(L, status, status == 0 ? state_pushargs(L) + 1 : 0);
}

/* The function that a module of ours gives, called without arguments. */
static int run_module(lua_State *L, const char *name)
{
  static const char code[] = "require(...)()";
  int status = luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host");
  lua_pushstring(L, name);
  return run(L, status, 1);
}

static int refuse_device(const options *o, const char *why)
{
  fprintf(stderr, "moho: %s %s: %s\n", o->device_from, o->device, why);
  return EXIT_DEVICE;
}

/* The device asked for is opened before anything runs: a script of an hour must not find out at its end. */
static int set_device(lua_State *L, const options *o)
{
  if (!o->device || strcmp(o->device, "auto") == 0) return EXIT_OK;
  moho_ctx *c = NULL;
  if (moho_ctx_open(o->device, &c) != MOHO_OK) return refuse_device(o, moho_errmsg());
  int rc = EXIT_OK;
  if (L) {
    static const char code[] = "return require('moho.core').default_device(...)";
    int status = luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host");
    lua_pushstring(L, moho_ctx_name(c));
    if (status == 0) status = lua_pcall(L, 1, 0, 0);
    if (status != 0) {
      rc = refuse_device(o, lua_tostring(L, -1));
      lua_pop(L, 1);
    }
  }
  moho_ctx_unref(c);
  return rc;
}

/* Device and threads are for the workers: this process opens no device. A worker does, before anything runs. */
static int run_sweep(lua_State *L, const options *o)
{
  static const char code[] = "require('moho.sweep_command').main(...)";
  bool worker = false;
  lua_getglobal(L, "arg");
  lua_rawgeti(L, -1, 1);
  worker = lua_isstring(L, -1) && strncmp(lua_tostring(L, -1), "--worker=", 9) == 0;
  lua_pop(L, 2);
  int rc = worker ? set_device(L, o) : EXIT_OK;
  if (!rc && o->strict) rc = run_module(L, "moho.strict");
  if (rc) return rc;
  int status = luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host");
  if (o->device) lua_pushstring(L, o->device);
  else lua_pushnil(L);
  lua_pushinteger(L, o->threads);
  return run(L, status, 2);
}

/* What the options say of the language: its random numbers, the compiler's reports. */
static int start_language(lua_State *L, const options *o)
{
  static const char code[] =
    "local seed, watch = ... if seed >= 0 then math.randomseed(seed) end if not watch then return end local found, "
    "module = pcall(require, watch) if not found then error('-j: LuaJIT\\'s module ' .. watch .. ' is not installed "
    "(on Debian it is in libluajit-5.1-common)', 0) end module.start()";
  if (o->seed < 0 && !o->watch) return EXIT_OK;
  int status = luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host");
  lua_pushnumber(L, o->seed);
  lua_pushstring(L, o->watch);
  return run(L, status, 2);
}

static int run_prompt(lua_State *L, const options *o)
{
  if (o->jit != 1) { /* hooks, and so Ctrl-C, do not reach compiled code for sure */
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH);
  }
  host_set_interactive(L, o);
  static const char code[] = "require('moho.repl')()";
  if (luaL_loadbuffer(L, code, sizeof code - 1, "=moho/host") != 0 || lua_pcall(L, 0, 0, 0) != 0) {
    report_error(L);
    return EXIT_ERROR;
  }
  return signals_terminated() ? EXIT_TERM : EXIT_OK;
}

static int run_lua(lua_State *L, const options *o, char **argv)
{
  bool tty = isatty(STDIN_FILENO);
  bool prompt = o->interactive || (!o->script && !o->nsteps && tty);
  int rc = set_device(L, o);
  if (!rc && o->strict) {
    rc = run_module(L, "moho.strict");
  }
  if (!rc) rc = run_steps(L, o);
  if (!rc && o->script) rc = run_script(L, o, argv[o->script]);
  if (!rc && !o->script && !o->nsteps && !prompt) rc = run_script(L, o, NULL);
  if (!rc && prompt) rc = run_prompt(L, o);
  return rc;
}

static int run_test(lua_State *L, const options *o)
{
  int rc = set_device(L, o);
  return rc ? rc : run_module(L, "moho.test");
}

static int run_job(lua_State *L, const options *o, char **argv)
{
  switch (o->what) {
  case RUN_TEST: return run_test(L, o);
  case RUN_HELP: return run_module(L, "moho.help_command");
  case RUN_HEAD: return run_module(L, "moho.head_command");
  case RUN_CONVERT: return run_module(L, "moho.convert_command");
  case RUN_SWEEP: return run_sweep(L, o);
  default: return run_lua(L, o, argv);
  }
}

static int show(const options *o)
{
  switch (o->what) {
  case SHOW_HELP:
    options_help();
    break;
  case SHOW_ENV:
    options_help_env();
    break;
  default:
    version_show(o->json);
    break;
  }
  return fflush(stdout) == 0 ? EXIT_OK : EXIT_ERROR;
}

int main(int argc, char **argv)
{
  options o;
  int rc = options_parse(argc, argv, &o);
  if (rc || o.what >= SHOW_VERSION) {
    if (!rc) rc = show(&o);
    options_clear(&o);
    return rc;
  }
  if (o.threads) moho_threads(o.threads);
  moho_ctx_limit_new(o.memory, o.memory_part);
  if (o.what == RUN_INFO) {
    rc = set_device(NULL, &o);
    if (!rc) info_show(&o);
    options_clear(&o);
    return rc;
  }

  lua_State *L = state_new(&o, argc, argv);
  if (!L) {
    fprintf(stderr, "moho: no memory for a Lua state\n");
    return EXIT_ERROR;
  }
  const char *debug = options_env(&o, "MOHO_DEBUG");
  report_debug(debug && strcmp(debug, "0") != 0);
  signals_install(L);
  if (o.jit == 0) luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  rc = start_language(L, &o);
  if (!rc) rc = run_job(L, &o, argv);
  options_clear(&o);
  state_exit(L, rc);
}
