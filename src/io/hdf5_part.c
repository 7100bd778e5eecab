/* Writing a part of a dataset: what does not fit into memory is written group by group. */
#include <inttypes.h>
#include "core/impl.h"
#include "io/h5.h"

/* The dataset at p, made when there is none. */
static moho_status whole(moho_h5 *f, char *p, moho_dtype t, const moho_h5_how *how, hid_t *d)
{
  hid_t type = -1, space = -1, dcpl = -1;
  moho_status st = MOHO_OK;
  if (moho_h5_exists(f->id, p)) {
    MOHO_TRY(moho_h5_object(f, p, d));
    if (H5Iget_type(*d) == H5I_DATASET) return MOHO_OK;
    H5Oclose(*d);
    return moho_fail(MOHO_EIO, "'%s' in %s is not a dataset", p, f->path);
  }
  if (!how->nshape)
    return moho_fail(MOHO_EIO, "there is no '%s' in %s to write a part of; give the whole's shape, and it is made", p,
                     f->path);
  type = moho_h5_file_type(t);
  space = moho_h5_space(&how->shape);
  dcpl = H5Pcreate(H5P_DATASET_CREATE);
  if (type < 0 || space < 0 || dcpl < 0) st = moho_h5_fail("cannot write '%s' into %s", p, f->path);
  if (!st) st = moho_h5_layout(t, &how->shape, how, dcpl);
  if (!st && (*d = moho_h5_make(f, p, type, space, dcpl)) < 0)
    st = moho_h5_fail("cannot write '%s' into %s", p, f->path);
  if (dcpl >= 0) H5Pclose(dcpl);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return st;
}

/* The hyperslab of the dataset that `a` goes to. */
static moho_status place(hid_t space, const char *p, const moho_array *a, const moho_h5_how *how)
{
  hsize_t from[MOHO_MAXDIM], many[MOHO_MAXDIM];
  moho_shape all;
  char is[160], got[160];
  MOHO_TRY(moho_h5_shape(space, p, &all));
  if (how->nshape && !moho_shape_equal(&all, &how->shape))
    return moho_fail_arg("shape", "'%s' is there already, %s, not %s", p, moho_shape_text(&all, is, sizeof is),
                         moho_shape_text(&how->shape, got, sizeof got));
  if (how->nstart != all.n)
    return moho_fail_arg("start", "expected %d, one an axis of '%s', got %d", all.n, p, how->nstart);
  if (a->shape.n != all.n)
    return moho_fail(MOHO_ESHAPE, "a part of '%s' %s has as many axes; got array %s", p,
                     moho_shape_text(&all, is, sizeof is), moho_shape_text(&a->shape, got, sizeof got));
  for (int i = 0; i < all.n; i++) {
    if (how->start[i] < 1 || how->start[i] - 1 > all.d[i] - a->shape.d[i])
      return moho_fail_arg("start", "axis %d: %" PRId64 " elements from %" PRId64 " on do not fit into %" PRId64, i + 1,
                           a->shape.d[i], how->start[i], all.d[i]);
    from[i] = (hsize_t)(how->start[i] - 1);
    many[i] = (hsize_t)a->shape.d[i];
  }
  if (moho_array_size(a) && H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, many, NULL) < 0)
    return moho_h5_fail("'%s'", p);
  return MOHO_OK;
}

moho_status moho_h5_write_part(moho_h5 *f, char *p, const moho_array *a, const moho_h5_how *how)
{
  hid_t d = -1, space = -1, mem = -1, type = -1;
  moho_array *h = NULL;
  moho_status st;
  MOHO_TRY(moho_h5_may_write(f, p));
  MOHO_TRY(moho_file_host(a, &h));
  bool begun = false;
  if ((st = whole(f, p, a->type, how, &d))) goto out;
  space = H5Dget_space(d);
  mem = moho_h5_space(&h->shape);
  type = moho_h5_file_type(a->type);
  if (space < 0 || mem < 0 || type < 0) st = moho_h5_fail("cannot write '%s' into %s", p, f->path);
  if (!st) st = place(space, p, h, how);
  begun = f->dirty = !st;
  if (!st && moho_array_size(h) && H5Dwrite(d, type, mem, space, H5P_DEFAULT, moho_array_data(h)) < 0)
    st = moho_h5_fail("cannot write '%s' into %s", p, f->path);
out:
  if (type >= 0) H5Tclose(type);
  if (mem >= 0) H5Sclose(mem);
  if (space >= 0) H5Sclose(space);
  if (d >= 0) H5Oclose(d);
  moho_array_unref(h);
  return begun ? moho_h5_wrote(f, st) : st;
}
