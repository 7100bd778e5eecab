/* PNG files: 8-bit RGB through libpng's simplified writer, which needs no setjmp. No time stamp goes in. */
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <moho/io.h>

moho_status moho_png_write(const char *path, int w, int h, const unsigned char *rgb)
{
  if (w < 1 || h < 1)
    return moho_fail(MOHO_EINVAL, "%s: expected a picture of at least 1 x 1 pixels, got %d x %d", path, w, h);
  moho_newfile nf;
  MOHO_TRY(moho_newfile_begin(path, &nf));
  moho_status st = MOHO_OK;
  FILE *f = fopen(nf.tmp, "wb");
  if (!f) {
    st = moho_fail(MOHO_EIO, "%s: cannot be written: %s", path, strerror(errno));
  } else {
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = (png_uint_32)w, .height = (png_uint_32)h, .format = PNG_FORMAT_RGB};
    errno = 0;
    int ok = png_image_write_to_stdio(&image, f, 0, rgb, 0, NULL), why = errno;
    if (fclose(f) && ok) ok = 0, why = errno;
    png_image_free(&image);
    if (!ok) st = moho_fail(MOHO_EIO, "%s: writing failed: %s", path, why ? strerror(why) : image.message);
  }
  if (st) {
    moho_newfile_rollback(&nf);
    return st;
  }
  return moho_newfile_commit(&nf);
}
