/* Pictures for Lua. lua/moho/plot.lua checks the arguments and lays them out; the tables here are its own. */
#include <stdlib.h>
#include <string.h>
#include <moho/plot.h>
#include "bind/lmoho_file.h"

/* Strings stay in the table they come from, which is on the stack for the call. */
static const char *text(lua_State *L, int t, const char *name)
{
  lua_getfield(L, t, name);
  const char *s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1);
  return s;
}

static bool pair(lua_State *L, int t, const char *name, double *a, double *b)
{
  lua_getfield(L, t, name);
  bool is = lua_istable(L, -1);
  if (is) {
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    *a = lua_tonumber(L, -2);
    *b = lua_tonumber(L, -1);
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
  return is;
}

static void axis(lua_State *L, int t, const char *name, moho_plot_axis *a)
{
  lua_getfield(L, t, name);
  if (lua_istable(L, -1)) {
    int i = lua_gettop(L);
    lua_getfield(L, i, "o");
    lua_getfield(L, i, "d");
    a->has_o = lua_isnumber(L, -2);
    a->has_d = lua_isnumber(L, -1);
    a->o = lua_tonumber(L, -2);
    a->d = lua_tonumber(L, -1);
    lua_pop(L, 2);
    a->label = text(L, i, "label");
    a->unit = text(L, i, "unit");
  }
  lua_pop(L, 1);
}

static void parameters(lua_State *L, int t, moho_plot_par *p)
{
  *p = (moho_plot_par){
      .file = text(L, t, "file"),
      .title = text(L, t, "title"),
      .xlabel = text(L, t, "xlabel"),
      .ylabel = text(L, t, "ylabel"),
      .barlabel = text(L, t, "label"),
      .cmap = text(L, t, "cmap"),
      .interp = text(L, t, "interp"),
      .aspect = text(L, t, "aspect"),
      .clip = lmoho_number(L, t, "quantile"),
      .transpose = lmoho_flag(L, t, "transpose"),
      .nobar = lmoho_flag(L, t, "nobar"),
      .bare = lmoho_flag(L, t, "bare"),
      .width = (int)lmoho_number(L, t, "width"),
      .height = (int)lmoho_number(L, t, "height"),
      .columns = (int)lmoho_number(L, t, "columns"),
      .font = lmoho_number(L, t, "font"),
      .gain = lmoho_number(L, t, "gain"),
      .every = (int)lmoho_number(L, t, "every"),
      .nofill = lmoho_flag(L, t, "nofill"),
      .flip = lmoho_flag(L, t, "flip"),
  };
  p->limits = pair(L, t, "limits", &p->lo, &p->hi);
  axis(L, t, "x", &p->x);
  axis(L, t, "y", &p->y);
}

static int result(lua_State *L, const char *file, const moho_plot_info *info)
{
  lua_createtable(L, 0, 6);
  if (info->rgb) {
    lua_pushlstring(L, (const char *)info->rgb, 3 * (size_t)info->width * (size_t)info->height);
    free(info->rgb);
    lua_setfield(L, -2, "pixels");
  }
  lua_pushstring(L, file);
  lua_setfield(L, -2, "file");
  lua_pushinteger(L, info->width);
  lua_setfield(L, -2, "width");
  lua_pushinteger(L, info->height);
  lua_setfield(L, -2, "height");
  lua_createtable(L, 2, 0);
  lua_pushnumber(L, info->lo);
  lua_rawseti(L, -2, 1);
  lua_pushnumber(L, info->hi);
  lua_rawseti(L, -2, 2);
  lua_setfield(L, -2, "clip");
  lua_pushnumber(L, (lua_Number)info->nonfinite);
  lua_setfield(L, -2, "nonfinite");
  lua_pushinteger(L, info->every);
  lua_setfield(L, -2, "every");
  return 1;
}

/* (who, list of arrays, parameters) */
static int plot_image(lua_State *L)
{
  const char *who = LMOHO_WHO(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  int n = (int)lua_objlen(L, 2);
  moho_plot_par p;
  moho_plot_info info = {0};
  parameters(L, 3, &p);
  const moho_array **a = lua_newuserdata(L, ((size_t)n + 1) * sizeof *a);
  const char **titles = lua_newuserdata(L, ((size_t)n + 1) * sizeof *titles);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    a[i] = lmoho_toarray(L, -1, who, "a");
    lua_pop(L, 1);
  }
  lua_getfield(L, 3, "titles");
  if (lua_istable(L, -1)) {
    for (int i = 0; i < n; i++) {
      lua_rawgeti(L, -1, i + 1);
      titles[i] = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
      lua_pop(L, 1);
    }
    p.titles = titles;
  }
  moho_status st = moho_plot_image(a, n, &p, &info);
  if (lmoho_again(L, st)) st = moho_plot_image(a, n, &p, &info);
  lmoho_check(L, st, who);
  return result(L, p.file, &info);
}

/* (who, array, parameters) */
static int plot_wiggle(lua_State *L)
{
  const char *who = LMOHO_WHO(L);
  moho_array *a = lmoho_toarray(L, 2, who, "a");
  luaL_checktype(L, 3, LUA_TTABLE);
  moho_plot_par p;
  moho_plot_info info = {0};
  parameters(L, 3, &p);
  moho_status st = moho_plot_wiggle(a, &p, &info);
  if (lmoho_again(L, st)) st = moho_plot_wiggle(a, &p, &info);
  lmoho_check(L, st, who);
  return result(L, p.file, &info);
}

/* The array in t[name]; a list of numbers becomes one, and takes the list's place so that it lives as long. */
static const moho_array *values(lua_State *L, int t, const char *name, const char *who)
{
  lua_getfield(L, t, name);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return NULL;
  }
  if (lua_istable(L, -1)) {
    int list = lua_gettop(L);
    int64_t n = (int64_t)lua_objlen(L, list);
    moho_shape s = moho_shape_make(1, &n);
    moho_array **a = lmoho_newarray(L);
    lmoho_check(L, moho_array_new(lmoho_cpu(L), MOHO_F64, &s, a), who);
    double *v = moho_array_data(*a);
    for (int64_t i = 0; i < n; i++) {
      lua_rawgeti(L, list, (int)i + 1);
      v[i] = lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
    lua_setfield(L, t, name);
    lua_pop(L, 1);
    lua_getfield(L, t, name);
  }
  const moho_array *a = lmoho_toarray(L, -1, who, name);
  lua_pop(L, 1);
  return a;
}

/* (who, list of lines, parameters) */
static int plot_curve(lua_State *L)
{
  const char *who = LMOHO_WHO(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  int n = (int)lua_objlen(L, 2);
  moho_plot_line *l = lua_newuserdata(L, ((size_t)n + 1) * sizeof *l);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    int t = lua_gettop(L);
    const moho_array *x = values(L, t, "x", who), *y = values(L, t, "y", who);
    l[i] = (moho_plot_line){
      x, y, text(L, t, "label"), lmoho_flag(L, t, "dashed"), lmoho_flag(L, t, "marks"), lmoho_flag(L, t, "noline")
    };
    lua_pop(L, 1);
  }
  moho_plot_curve_par p = {
      .file = text(L, 3, "file"),
      .title = text(L, 3, "title"),
      .xlabel = text(L, 3, "xlabel"),
      .ylabel = text(L, 3, "ylabel"),
      .legend = text(L, 3, "legend"),
      .logx = lmoho_flag(L, 3, "logx"),
      .logy = lmoho_flag(L, 3, "logy"),
      .width = (int)lmoho_number(L, 3, "width"),
      .height = (int)lmoho_number(L, 3, "height"),
      .font = lmoho_number(L, 3, "font"),
  };
  p.xlim = pair(L, 3, "xlim", &p.x0, &p.x1);
  p.ylim = pair(L, 3, "ylim", &p.y0, &p.y1);
  moho_plot_info info = {0};
  moho_status st = moho_plot_curve(l, n, &p, &info);
  if (lmoho_again(L, st)) st = moho_plot_curve(l, n, &p, &info);
  lmoho_check(L, st, who);
  return result(L, p.file, &info);
}

/* (who, pixels, width, height) -> text */
static int plot_sixel(lua_State *L)
{
  size_t n, size;
  const char *who = LMOHO_WHO(L), *rgb = luaL_checklstring(L, 2, &n);
  int w = (int)luaL_checkinteger(L, 3), h = (int)luaL_checkinteger(L, 4);
  char *out = NULL;
  if (w < 1 || h < 1 || n != 3 * (size_t)w * (size_t)h) return lmoho_error(L, who, "expected 3 bytes a pixel");
  lmoho_check(L, moho_plot_sixel((const unsigned char *)rgb, w, h, &out, &size), who);
  lua_pushlstring(L, out, size);
  free(out);
  return 1;
}

void lmoho_open_plot(lua_State *L)
{
  static const luaL_Reg functions[] = { { "plot_image", plot_image },
                                        { "plot_wiggle", plot_wiggle },
                                        { "plot_curve", plot_curve },
                                        { "plot_sixel", plot_sixel },
                                        { NULL, NULL } };
  luaL_register(L, NULL, functions);
}
