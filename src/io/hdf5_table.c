/* Tables of named columns as datasets of compounds, which h5py gives as structured arrays, and links to other files. */
#include <stdlib.h>
#include "core/impl.h"
#include "io/h5.h"

/* The compound of a row: 8 bytes a number, a pointer a word. -1: failed. */
static hid_t row_type(int ncolumns, const moho_h5_column *c, hid_t words)
{
  hid_t t = H5Tcreate(H5T_COMPOUND, (size_t)ncolumns * 8);
  for (int j = 0; t >= 0 && j < ncolumns; j++)
    if (H5Tinsert(t, c[j].name, (size_t)j * 8, c[j].numbers ? H5T_NATIVE_DOUBLE : words) < 0) {
      H5Tclose(t);
      t = -1;
    }
  return t;
}

static void fill(char *rows, int ncolumns, const moho_h5_column *c, int64_t n)
{
  _Static_assert(sizeof(double) == 8 && sizeof(char *) == 8, "a cell is eight bytes");
  for (int64_t i = 0; i < n; i++)
    for (int j = 0; j < ncolumns; j++, rows += 8)
      if (c[j].numbers) memcpy(rows, &c[j].numbers[i], 8);
      else memcpy(rows, &c[j].words[i], 8);
}

static moho_status write_table(moho_h5 *f, char *p, int ncolumns, const moho_h5_column *c, int64_t n)
{
  MOHO_TRY(moho_h5_may_write(f, p));
  char *rows = malloc((size_t)n * (size_t)ncolumns * 8 + 1);
  if (!rows) return moho_fail(MOHO_ENOMEM, "out of memory for a table of %lld rows", (long long)n);
  fill(rows, ncolumns, c, n);
  hsize_t dims = (hsize_t)n;
  hid_t words = moho_h5_text_type(), type = words < 0 ? -1 : row_type(ncolumns, c, words);
  hid_t space = H5Screate_simple(1, &dims, NULL), d = -1;
  f->dirty = true;
  if (type >= 0 && space >= 0) d = moho_h5_make(f, p, type, space, H5P_DEFAULT);
  moho_status st = MOHO_OK;
  if (d < 0 || H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) < 0)
    st = moho_h5_fail("cannot write the table '%s' into %s", p, f->path);
  if (d >= 0) H5Oclose(d);
  st = moho_h5_wrote(f, st);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (words >= 0) H5Tclose(words);
  free(rows);
  return st;
}

moho_status moho_h5_write_table(moho_h5 *f, const char *path, int ncolumns, const moho_h5_column *c, int64_t n)
{
  char *p;
  MOHO_TRY(moho_h5_path(path, &p));
  moho_status st = write_table(f, p, ncolumns, c, n);
  free(p);
  return st;
}

static moho_status link_to(moho_h5 *f, char *p, const char *file, const char *object)
{
  MOHO_TRY(moho_h5_may_write(f, p));
  hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
  f->dirty = true;
  bool bad = lcpl < 0 || H5Pset_create_intermediate_group(lcpl, 1) < 0 ||
             (H5Lexists(f->id, p, H5P_DEFAULT) > 0 && H5Ldelete(f->id, p, H5P_DEFAULT) < 0) ||
             H5Lcreate_external(file, object, f->id, p, lcpl, H5P_DEFAULT) < 0;
  moho_status st = bad ? moho_h5_fail("cannot link '%s' in %s to %s", p, f->path, file) : MOHO_OK;
  if (lcpl >= 0) H5Pclose(lcpl);
  return moho_h5_wrote(f, st);
}

moho_status moho_h5_link(moho_h5 *f, const char *path, const char *file, const char *object)
{
  char *p;
  MOHO_TRY(moho_h5_path(path, &p));
  moho_status st = link_to(f, p, file, object);
  free(p);
  return st;
}
