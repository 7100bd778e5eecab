/* --version and info, as lines or as JSON: one list of names and values, written in either way. */
#include "host/version.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <H5public.h>
#include <fftw3.h>
#include <histedit.h>
#include <luajit.h>

#include "host/build.h"
#include "moho/moho.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif
typedef struct item {
  const char *name;
  char value[512];
} item;
enum { MAXITEMS = 96 };

static void json_string(const char *s)
{
  putchar('"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      printf("\\%c", *s);
    else if ((unsigned char)*s < 0x20)
      printf("\\u%04x", *s);
    else
      putchar(*s);
  }
  putchar('"');
}

const char *version_moho(void) { return PACKAGE_VERSION; }
const char *version_luajit(void) { return LUAJIT_VERSION; }

static int versions(item *v)
{
  unsigned a = 0, b = 0, c = 0;
  hbool_t threadsafe = 0;
  int n = 0;
  v[n].name = "moho";
  snprintf(v[n++].value, sizeof v->value, "%s", PACKAGE_VERSION);
  v[n].name = "LuaJIT";
  snprintf(v[n++].value, sizeof v->value, "%s",
           strchr(LUAJIT_VERSION, ' ') ? strchr(LUAJIT_VERSION, ' ') + 1 : LUAJIT_VERSION);
  v[n].name = "CUDA";
  snprintf(v[n++].value, sizeof v->value, "%s", *MOHO_CUDA_VERSION ? MOHO_CUDA_VERSION : "not built");
  H5get_libversion(&a, &b, &c);
  H5is_library_threadsafe(&threadsafe);
  v[n].name = "HDF5";
  snprintf(v[n++].value, sizeof v->value, "%u.%u.%u%s", a, b, c, threadsafe ? " threadsafe" : "");
  v[n].name = "FFTW";
  snprintf(v[n++].value, sizeof v->value, "%s",
           strncmp(fftw_version, "fftw-", 5) == 0 ? fftw_version + 5 : fftw_version);
  v[n].name = "libedit";
  snprintf(v[n++].value, sizeof v->value, "%d.%d", LIBEDIT_MAJOR, LIBEDIT_MINOR);
  v[n].name = "compiler";
  snprintf(v[n++].value, sizeof v->value, "%s", __VERSION__);
  v[n].name = "flags";
  snprintf(v[n++].value, sizeof v->value, "%s", MOHO_BUILD_FLAGS);
  v[n].name = "git";
  snprintf(v[n++].value, sizeof v->value, "%s", MOHO_GIT);
  return n;
}

static void write_items(const item *v, int n, bool json)
{
  for (int i = 0; i < n; i++) {
    if (json) {
      printf("%s\n  ", i ? "," : "");
      json_string(v[i].name);
      printf(": ");
      json_string(v[i].value);
    } else {
      printf("%s %s\n", v[i].name, v[i].value);
    }
  }
}

char *version_text(void)
{
  item v[MAXITEMS];
  int n = versions(v);
  size_t used = 0, room = (size_t)n * (sizeof v->value + 32);
  char *text = malloc(room);
  for (int i = 0; text && i < n; i++)
    used += (size_t)snprintf(text + used, room - used, "%s %s\n", v[i].name, v[i].value);
  return text;
}

void version_show(bool json)
{
  item v[MAXITEMS];
  int n = versions(v);
  if (json) printf("{");
  write_items(v, n, json);
  if (json) printf("\n}\n");
}

/* ---- info ---------------------------------------------------------------------- */

static void devices(const char *kind, bool json, bool *first)
{
  const char *why = NULL;
  char text[256], name[32];
  int n = moho_device_count(kind, &why);
  for (int i = 0; i < (n ? n : 1); i++) {
    bool there = n > 0;
    if (strcmp(kind, "cpu") == 0 || !there)
      snprintf(name, sizeof name, "%s", kind);
    else
      snprintf(name, sizeof name, "%s:%d", kind, i);
    if (!there)
      snprintf(text, sizeof text, "%s", why ? why : "none found");
    else if (moho_device_describe(kind, i, text, sizeof text) != MOHO_OK) {
      there = false;
      snprintf(text, sizeof text, "%s", moho_errmsg());
    }
    if (json) {
      printf("%s\n    {\"name\": ", *first ? "" : ",");
      json_string(name);
      printf(", \"available\": %s, \"%s\": ", there ? "true" : "false", there ? "description" : "reason");
      json_string(text);
      printf("}");
    } else {
      printf("  %-8s %s%s\n", name, there ? "" : "not available: ", text);
    }
    *first = false;
  }
}

/* What --mem lets arrays hold. */
static void limit(const options *o)
{
  if (o->memory_part > 0)
    printf(o->json ? ",\n  \"limit_part\": %.6g" : "arrays at most %.4g%% of a device's memory\n",
           o->memory_part * (o->json ? 1 : 100));
  else if (o->memory && o->json)
    printf(",\n  \"limit\": %zu", o->memory);
  else if (o->memory)
    printf("arrays at most %.4g GiB on a device\n", (double)o->memory / 1073741824.0);
}

void info_show(const options *o)
{
  const char *device = o->device;
  bool json = o->json;
  item v[MAXITEMS];
  int n = versions(v), threads = moho_threads(0);
  long page = sysconf(_SC_PAGESIZE);
  double total = (double)sysconf(_SC_PHYS_PAGES) * (double)page,
         avail = (double)sysconf(_SC_AVPHYS_PAGES) * (double)page;
  bool first = true;
  if (!device || strcmp(device, "auto") == 0) device = moho_device_count("cuda", NULL) > 0 ? "cuda:0" : "cpu";
  if (json) printf("{");
  write_items(v, n, json);
  if (json) {
    printf(",\n  \"threads\": %d,\n  \"memory\": {\"total\": %.0f, \"free\": %.0f}", threads, total, avail);
    limit(o);
    printf(",\n  \"default_device\": ");
    json_string(device);
    printf(",\n  \"devices\": [");
  } else {
    printf("threads %d\nmemory %.1f GiB, %.1f GiB free\n", threads, total / 1073741824.0, avail / 1073741824.0);
    limit(o);
    printf("default device %s\ndevices\n", device);
  }
  devices("cpu", json, &first);
  devices("cuda", json, &first);
  if (json) printf("\n  ]\n}\n");
}
