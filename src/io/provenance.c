/* How a file came to be: words and texts that the program notes as it goes (its script, parameters, versions, seeds)
   and that every HDF5 file is given when it is closed, as attributes of "/". No clock and no host: the same run gives
   the same file. A file that several scripts add to keeps what each of them noted, with a number behind the names from
   the second on; they are told apart by the texts that are keys. */
#include <stdlib.h>
#include "core/impl.h"
#include "io/h5.h"

enum { MOST = 32, WRITERS = 1000 };
typedef struct entry {
  char name[48];
  char *text;
  bool key;
} entry;
static entry noted[MOST];
static int count;

moho_status moho_provenance(const char *name, const char *text, bool key)
{
  int i = 0;
  while (i < count && strcmp(noted[i].name, name) != 0) i++;
  if (!text) {
    if (i == count) return MOHO_OK;
    free(noted[i].text);
    noted[i] = noted[--count];
    return MOHO_OK;
  }
  if (i == MOST || strlen(name) >= sizeof noted->name || !*name)
    return moho_fail_arg("name", "expected at most %d names of 1 to %zu characters, got \"%s\"", MOST,
                         sizeof noted->name - 1, name);
  char *copy = strdup(text);
  if (!copy) return moho_fail(MOHO_ENOMEM, "out of memory for what a file is made by");
  if (i == count) snprintf(noted[count++].name, sizeof noted->name, "%s", name);
  else free(noted[i].text);
  noted[i].text = copy;
  noted[i].key = key;
  return MOHO_OK;
}

static void name_of(int i, int writer, char *name, size_t size)
{
  if (writer == 1) snprintf(name, size, "%.47s", noted[i].name);
  else snprintf(name, size, "%.47s_%d", noted[i].name, writer);
}

/* Whether the file has the attribute, and whether it says the same. */
static bool compare(moho_h5 *f, const char *name, const char *text, bool *same)
{
  moho_h5_kind kind = MOHO_H5_NONE;
  moho_array *a = NULL;
  char *old = NULL;
  int64_t n = 0;
  bool there = !moho_h5_attr(f, "/", name, &kind, &a, &old, &n) && kind != MOHO_H5_NONE;
  *same = there && kind == MOHO_H5_TEXT && n == 1 && strcmp(old, text) == 0;
  moho_array_unref(a);
  free(old);
  return there;
}

moho_status moho_h5_stamp(moho_h5 *f)
{
  char name[64];
  for (int writer = 1; writer < WRITERS; writer++) {
    bool free_number = true, ours = true;
    for (int i = 0; i < count; i++) {
      bool same;
      name_of(i, writer, name, sizeof name);
      if (compare(f, name, noted[i].text, &same)) free_number = false;
      ours = ours && (same || !noted[i].key);
    }
    if (!free_number && !ours) continue;
    for (int i = 0; i < count; i++) {
      name_of(i, writer, name, sizeof name);
      MOHO_TRY(moho_h5_set_attr(f, "/", name, NULL, noted[i].text, -1));
    }
    return MOHO_OK;
  }
  return MOHO_OK;
}
