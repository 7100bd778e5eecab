/* Text: glyphs of our own as strokes, so that one drawing serves every size and both directions.
   A glyph is a path over a grid with the base line at 0, small letters to 10, capitals and figures to 14:
     M x y  move      L x y  line      c x1 y1 x2 y2 x y  cubic      D x y  dot
     h x y  quarter of an ellipse that leaves horizontally, arrives vertically;   v x y  the other way
   Small text looks sharp only when stems and heights fall on whole pixels: both are moved there (fit). */
#include <math.h>
#include <string.h>
#include "plot/plot.h"

typedef struct glyph {
  unsigned code;
  float left, right; /* room on either side of the path */
  const char *path;
} glyph;

/* clang-format off */
/* In the order of their codes (found by bisection). Figures advance by 12.4 each. */
static const glyph glyphs[] = {
  {' ', 0, 5.6f, ""},
  {'!', 2.4f, 2.4f, "M0 14L0 4.4D0 .4"},
  {'"', 2, 2, "M0 14L0 9.8M3.4 14L3.4 9.8"},
  {'#', 1.4f, 1.4f, "M2 0L4.2 14M7.4 0L9.6 14M.6 9.6L11.4 9.6M0 4.6L10.8 4.6"},
  {'$', 1.6f, 1.6f, "M8 11.3c7.4 12.4 6 13 4.2 13h.3 10.2c.3 8.4 2 7.8 4.2 7.2c6.8 6.6 8.4 5.8 8.4 3.8v4.2 1c2.2 1 .6 1.8 0 3.2M4.2 15.2L4.2 -1.2"},
  {'%', 1.4f, 1.4f, "M2.8 7.6h5.6 10.8v2.8 14h0 10.8v2.8 7.6M10.4 0h13.2 3.2v10.4 6.4h7.6 3.2v10.4 0M10.6 14L2.6 0"},
  {'&', 1.5f, 1.2f, "M10.6 0c8 2.6 2 8.6 2 11v4.6 14h7.2 11.2c7.2 7.4 0 7.6 0 3.6v4.2 0c7.4 0 9.6 2.6 9.9 6.4"},
  {'\'', 2, 2, "M0 14L0 9.8"},
  {'(', 2, 1.2f, "M3.4 15.4c-1.1 9.8 -1.1 2.2 3.4 -3.4"},
  {')', 1.2f, 2, "M0 15.4c4.5 9.8 4.5 2.2 0 -3.4"},
  {'*', 1.4f, 1.4f, "M3.2 14L3.2 7.6M.2 12.5L6.2 9.1M6.2 12.5L.2 9.1"},
  {'+', 1.6f, 1.6f, "M0 6L9 6M4.5 10.5L4.5 1.5"},
  {',', 1.9f, 1.9f, "M.9 .5L0 -2.7"},
  {'-', 1.6f, 1.6f, "M0 5.2L4.6 5.2"},
  {'.', 2.2f, 2.2f, "D0 .3"},
  {'/', .8f, .8f, "M0 -1.4L6 15"},
  {'0', 2, 2, "M4.2 0h8.4 7v4.2 14h0 7v4.2 0"},
  {'1', 3, 5.6f, "M0 11.1L3.8 14L3.8 0"},
  {'2', 2, 2, "M.3 10.5v4.2 14h8 10.4c8 7.8 5.2 5.4 0 0L8.4 0"},
  {'3', 2, 2, "M.4 11.4c1 13 2.4 14 4.1 14h7.8 10.7v4 7.5L2.8 7.5M4 7.5h8.4 3.8v4.1 0c2.1 0 .6 1 0 2.8"},
  {'4', 1.6f, 1.8f, "M6.8 0L6.8 14L0 4L9 4"},
  {'5', 2, 2, "M7.7 14L1.3 14L.7 7.5c1.5 8.4 2.6 9 4 9h8.4 4.5v4 0c2.1 0 .7 1 0 2.7"},
  {'6', 2, 2, "M7.7 12.2c7 13.4 5.9 14 4.6 14h0 6.6L0 4.5v4.2 0h8.4 4.5v4.3 8.9c2.1 8.9 .3 7.4 0 5.2"},
  {'7', 2, 2, "M0 14L8.4 14c5.6 10 3.6 5.4 3 0"},
  {'8', 2, 2, "M4.2 7.5h.5 10.8v4.2 14h7.9 10.8v4.2 7.5h0 3.7v4.2 0h8.4 3.7v4.2 7.5"},
  {'9', 2, 2, "M.7 1.8c1.4 .6 2.5 0 3.8 0h8.4 7.4L8.4 9.5v4.2 14h0 9.5v4.1 5.1c6.3 5.1 8.1 6.6 8.4 8.8"},
  {':', 2.2f, 2.2f, "D0 .3D0 8.6"},
  {';', 1.9f, 1.9f, "M.9 .5L0 -2.7D.9 8.6"},
  {'<', 1.6f, 1.6f, "M8.4 10.4L0 6L8.4 1.6"},
  {'=', 1.6f, 1.6f, "M0 8L9 8M0 4L9 4"},
  {'>', 1.6f, 1.6f, "M0 10.4L8.4 6L0 1.6"},
  {'?', 1.5f, 1.6f, "M0 10.8v3.8 14h7.4 10.9c7.4 7.8 3.6 7.8 3.6 4.4D3.6 .4"},
  {'@', 1.5f, 1.5f, "M9.4 4.2c8.6 3.2 7.6 2.8 6.6 2.8h4 5.6v6.8 8.8h9.4 5.6L9.4 4.6c9.4 3.2 10.1 2.6 11 2.6h13.2 6.2v6.8 12.8h0 5.2v6.8 -2.4c8.6 -2.4 10 -2 11.2 -1.2"},
  {'A', .9f, .9f, "M0 0L5.4 14L10.8 0M1.9 4.8L8.9 4.8"},
  {'B', 2.1f, 1.6f, "M0 0L0 14L5 14h8.8 10.8v5 7.5L0 7.5M5 7.5h9.7 3.8v5 0L0 0"},
  {'C', 1.6f, 1.5f, "M10.8 10.8c9.9 12.8 8.2 14 6 14h0 7v6 0c8.3 0 10.1 1.2 11 3.4"},
  {'D', 2.1f, 1.7f, "M0 0L0 14L4.4 14h10.8 7v4.4 0L0 0"},
  {'E', 2.1f, 1.4f, "M8.4 14L0 14L0 0L8.6 0M0 7.4L7.6 7.4"},
  {'F', 2.1f, 1.2f, "M8.2 14L0 14L0 0M0 7L7.2 7"},
  {'G', 1.6f, 1.9f, "M10.8 11c9.9 12.9 8.2 14 6 14h0 7v6.2 0h11.2 4.6L11.2 6.6L6.8 6.6"},
  {'H', 2.1f, 2.1f, "M0 0L0 14M9.8 0L9.8 14M0 7.4L9.8 7.4"},
  {'I', 2.2f, 2.2f, "M0 0L0 14"},
  {'J', 1.2f, 2.1f, "M6.2 14L6.2 4v3.1 0h0 3.6"},
  {'K', 2.1f, 1, "M0 0L0 14M9 14L0 5.2M3.4 8.5L9.6 0"},
  {'L', 2.1f, 1, "M0 14L0 0L7.8 0"},
  {'M', 2.1f, 2.1f, "M0 0L0 14L5.9 3L11.8 14L11.8 0"},
  {'N', 2.1f, 2.1f, "M0 0L0 14L9.6 0L9.6 14"},
  {'O', 1.6f, 1.6f, "M6 0h12 7v6 14h0 7v6 0"},
  {'P', 2.1f, 1.2f, "M0 0L0 14L5 14h9.2 10.2v5 6.4L0 6.4"},
  {'Q', 1.6f, 1.6f, "M6 0h12 7v6 14h0 7v6 0M7.4 3.8L11.8 -1.2"},
  {'R', 2.1f, 1.2f, "M0 0L0 14L5 14h9.2 10.3v5 6.6L0 6.6M5.2 6.6L9.6 0"},
  {'S', 1.5f, 1.5f, "M8.7 11.1c8.1 13 6.6 14 4.7 14h.4 10.6c.4 8.5 2.2 7.9 4.7 7.3c7.4 6.6 9.2 5.8 9.2 3.6v4.7 0c2.3 0 .6 1.2 0 3.2"},
  {'T', .9f, .9f, "M0 14L10 14M5 14L5 0"},
  {'U', 2, 2, "M0 14L0 5v4.8 0h9.6 5L9.6 14"},
  {'V', .9f, .9f, "M0 14L5.3 0L10.6 14"},
  {'W', 1, 1, "M0 14L3.7 0L7.5 13L11.3 0L15 14"},
  {'X', 1, 1, "M.3 14L9.7 0M9.4 14L0 0"},
  {'Y', .9f, .9f, "M0 14L5 6.8L10 14M5 6.8L5 0"},
  {'Z', 1.4f, 1.4f, "M.3 14L9 14L0 0L9.4 0"},
  {'[', 2.1f, 1, "M3.4 15.4L0 15.4L0 -3.4L3.4 -3.4"},
  {'\\', .8f, .8f, "M0 15L6 -1.4"},
  {']', 1, 2.1f, "M0 15.4L3.4 15.4L3.4 -3.4L0 -3.4"},
  {'^', 1.4f, 1.4f, "M0 9L3.6 14L7.2 9"},
  {'_', 0, 0, "M0 -2.6L9.6 -2.6"},
  {'`', 1.4f, 1.4f, "M0 14.6L2.6 12"},
  {'a', 1.5f, 1.9f, "M.5 8c1.2 9.4 2.4 10 3.9 10h7.4 6.8L7.4 0M7.4 5.9L4 5.7c1.4 5.5 0 4.6 0 2.8v3.3 0c5.6 0 7.4 1.5 7.4 3.8"},
  {'b', 1.9f, 1.5f, "M0 15L0 0M0 5v4.2 10h8.3 5v4.2 0h0 5"},
  {'c', 1.5f, 1.2f, "M7.6 7.6c6.9 9.2 5.7 10 4.2 10h0 5v4.2 0c5.8 0 7.1 .8 7.8 2.4"},
  {'d', 1.5f, 1.9f, "M8.3 15L8.3 0M8.3 5v4.1 10h0 5v4.1 0h8.3 5"},
  {'e', 1.5f, 1.4f, "M0 5.3L8.4 5.3v4.2 10h0 5v4.4 0c6 0 7.3 .8 8 2.2"},
  {'f', .8f, .6f, "M5.4 14.9c2.8 15.3 2 14 2 11.6L2 0M0 10L5 10"},
  {'g', 1.5f, 1.9f, "M8.2 10L8.2 .4v4.1 -4c2.4 -4 1.2 -3.4 .5 -2.3M8.2 5v4.1 10h0 5v4.1 0h8.2 5"},
  {'h', 1.9f, 1.8f, "M0 15L0 0M0 5.4v4.2 10h7.8 6.2L7.8 0"},
  {'i', 1.9f, 1.9f, "M0 0L0 10D0 14"},
  {'j', .6f, 1.9f, "M2.4 10L2.4 -.8c2.4 -3 1.8 -3.8 0 -3.9D2.4 14"},
  {'k', 1.9f, .9f, "M0 15L0 0M7.2 10L0 3.6M2.7 6L7.6 0"},
  {'l', 1.9f, 1.9f, "M0 15L0 0"},
  {'m', 1.9f, 1.8f, "M0 10L0 0M0 5.4v3.6 10h6.3 6.4L6.3 0M6.3 5.4v9.9 10h12.6 6.4L12.6 0"},
  {'n', 1.9f, 1.8f, "M0 10L0 0M0 5.4v4.2 10h7.8 6.2L7.8 0"},
  {'o', 1.5f, 1.5f, "M4.3 0h8.6 5v4.3 10h0 5v4.3 0"},
  {'p', 1.9f, 1.5f, "M0 10L0 -4M0 5v4.2 10h8.3 5v4.2 0h0 5"},
  {'q', 1.5f, 1.9f, "M8.3 10L8.3 -4M8.3 5v4.1 10h0 5v4.1 0h8.3 5"},
  {'r', 1.9f, .5f, "M0 10L0 0M0 5c.4 8.4 2.2 10.3 4.8 9.9"},
  {'s', 1.3f, 1.3f, "M6.8 7.7c6.3 9.2 5.1 10 3.6 10h.3 7.5c.3 6 1.8 5.7 3.6 5.3c5.7 4.8 7.1 4.3 7.1 2.6v3.6 0c1.9 0 .6 .9 0 2.4"},
  {'t', .7f, .8f, "M2 13.2L2 3c2 .6 3 -.3 5.4 .2M0 10L5.2 10"},
  {'u', 1.8f, 1.9f, "M7.8 10L7.8 0M7.8 4.6v3.6 0h0 3.8L0 10"},
  {'v', .8f, .8f, "M0 10L4 0L8 10"},
  {'w', .9f, .9f, "M0 10L3 0L6 9.6L9 0L12 10"},
  {'x', .9f, .9f, "M.1 10L7.6 0M7.4 10L0 0"},
  {'y', .8f, .8f, "M0 10L4.1 0M8.2 10L3.9 -1.2c3.1 -3.4 2.2 -4.2 .5 -3.9"},
  {'z', 1.2f, 1.2f, "M.2 10L7 10L0 0L7.2 0"},
  {'{', 1.4f, 1.4f, "M4.4 15.4c1.2 15.4 2.4 13 2.2 10c2 7.6 2 6.4 0 6c2 5.6 2 4.4 2.2 2c2.4 -1 1.2 -3.4 4.4 -3.4"},
  {'|', 2.2f, 2.2f, "M0 15.4L0 -3.4"},
  {'}', 1.4f, 1.4f, "M0 15.4c3.2 15.4 2 13 2.2 10c2.4 7.6 2.4 6.4 4.4 6c2.4 5.6 2.4 4.4 2.2 2c2 -1 3.2 -3.4 0 -3.4"},
  {'~', 1.5f, 1.5f, "M0 5c1.8 8.4 3.6 7.4 4.8 6.2c6 5 7.6 4.2 9.4 7.4"},
  {0xb0, 1.4f, 1.4f, "M2.4 9.2h4.8 11.6v2.4 14h0 11.6v2.4 9.2"},                     /* degree */
  {0xb1, 1.6f, 1.6f, "M0 7.4L9 7.4M4.5 11.6L4.5 3.2M0 0L9 0"},
  {0xb5, 1.9f, 1.6f, "M0 10L0 -4M0 3.8v3.6 0h7.6 4.4M7.6 10L7.6 0"},                   /* micro */
  {0xb7, 2.2f, 2.2f, "D0 6"},
  {0xd7, 1.6f, 1.6f, "M0 10L8 2M8 10L0 2"},                                            /* times */
  {0xd8, 1.6f, 1.6f, "M6 0h12 7v6 14h0 7v6 0M.8 -.6L11.2 14.6"},
  {0xdf, 1.9f, 1.4f, "M0 0L0 10.6v3.8 14.8h7.4 11.4c7.4 8.8 4.6 8.8 4.6 7.2c4.6 5.4 8.4 5.4 8.4 2.4c8.4 .4 5.6 -.6 3.4 .4"},
  {0xe6, 1.4f, 1.4f, "M.5 8c1.2 9.4 2.2 10 3.6 10h6.8 6.8L6.8 4c6.8 1.4 5 0 3.2 0h0 2.8c0 4.6 1.4 5.4 3.6 5.4L14 5.4v10.4 10h6.8 6M6.8 4v10.6 0c12 0 13 .8 13.8 2.2"},
  {0xf8, 1.5f, 1.5f, "M4.3 0h8.6 5v4.3 10h0 5v4.3 0M.4 -1L8.2 11"},
  {0x394, 1, 1, "M0 0L5.6 14L11.2 0L0 0"},                                             /* Delta */
  {0x3a3, 1.4f, 1.4f, "M8.8 14L0 14L5 7.2L0 0L9.2 0"},                                 /* Sigma */
  {0x3a9, 1.4f, 1.4f, "M0 0L3.8 0c1.4 2.4 .2 4.8 .2 7.8v5.8 14h11.4 7.8c11.4 4.8 10.2 2.4 7.8 0L11.6 0"},
  {0x3b1, 1.5f, 1.2f, "M9.4 10c7.6 6 6.6 0 3.6 0h0 5v3.8 10c6.6 10 6.8 0 9.6 .2"},
  {0x3b2, 1.9f, 1.5f, "M0 -4L0 10.8v3.7 14.6h7.2 11.2v3.4 8.2L2.4 8.2M3.6 8.2h8 4v3.8 0h0 2.6"},
  {0x3b3, .9f, .9f, "M0 9c1.6 11 3 8.6 4.4 -.4c4.6 -3 4.2 -4 3.4 -4c2.4 -4 2.4 -2.6 4.2 1L8.4 10"},
  {0x3b4, 1.5f, 1.5f, "M7 13.6c5.6 15 2.2 15 2.2 12.6c2.2 10 8.4 9.4 8.4 4.8v4.2 0h0 4.6v4.2 9.2"},
  {0x3b5, 1.4f, 1.2f, "M6.8 8.4c5.8 9.6 4.8 10 3.6 10h.4 7.4v3.4 5.2h0 2.6v3.6 0c5 0 6.2 .5 7 1.8M3.4 5.2L5 5.2"},
  {0x3b8, 1.5f, 1.5f, "M3.9 0h7.8 7.2v3.9 14.4h0 7.2v3.9 0M.2 7.2L7.6 7.2"},
  {0x3bb, .8f, .8f, "M.6 14.8c3 15.2 3.2 13 4 10L7.8 0M4 9.6L0 0"},
  {0x3bc, 1.9f, 1.6f, "M0 10L0 -4M0 3.8v3.6 0h7.6 4.4M7.6 10L7.6 0"},
  {0x3c0, .8f, .8f, "M0 10L9.4 10M2.4 10L2.4 0M7 10L7 0"},
  {0x3c1, 1.9f, 1.5f, "M0 -4L0 5v4.2 10h8.3 5v4.2 0h0 4.4"},
  {0x3c3, 1.5f, .8f, "M10 10L4.2 10h0 4.8v4.2 0h8.4 4.8c8.4 7.6 6.4 10 4.2 10"},
  {0x3c4, .8f, .8f, "M0 10L7.8 10M3.8 10L3.8 2.6c3.8 .6 4.8 -.2 6.4 .3"},
  {0x3c6, 1.5f, 1.5f, "M5 0h10 5v5 10h0 5v5 0M5 14L5 -4"},
  {0x3c9, 1.5f, 1.5f, "M2.4 10c.6 8.4 0 6.6 0 4.2v2.8 0h5.6 4.4L5.6 6.6M5.6 4.4v8.4 0h11.2 4.2c11.2 6.6 10.6 8.4 8.8 10"},
  {0x2013, .8f, .8f, "M0 5.2L8 5.2"},
  {0x2014, .8f, .8f, "M0 5.2L14 5.2"},
  {0x2019, 1.6f, 1.6f, "M1 14.4L0 11"},
  {0x2032, 1.4f, 1.4f, "M1.2 14.2L0 10"},
  {0x2202, 1.5f, 1.5f, "M.6 12.6c2 15 8 15.4 8 7c8 3 6.4 0 4 0h0 4v3.8 8.4c6 8.4 7.6 6.8 8 5"},
  {0x2207, 1, 1, "M0 14L5.6 0L11.2 14L0 14"},
  {0x2212, 1.6f, 1.6f, "M0 6L8.4 6"},                                                  /* minus */
  {0x221a, 1, .6f, "M0 6L1.8 7.2L5 0L9 15.4"},
  {0x2248, 1.5f, 1.5f, "M0 7c1.8 10 3.6 9 4.8 8c6 7 7.6 6.2 9.4 9M0 3c1.8 6 3.6 5 4.8 4c6 3 7.6 2.2 9.4 5"},
  {0x2264, 1.6f, 1.6f, "M8.4 11.4L0 7.4L8.4 3.4M0 0L8.4 0"},
  {0x2265, 1.6f, 1.6f, "M0 11.4L8.4 7.4L0 3.4M0 0L8.4 0"},
};
static const glyph unknown = {0, 2, 2, "M0 0L0 14L8 14L8 0L0 0"};

/* Letters with accents: the base and the accent's path, centred on the base, over small letters. */
static const char grave[] = "M-2 14.4L.8 11.8", acute[] = "M2 14.4L-.8 11.8", circ[] = "M-2.6 12L0 14.6L2.6 12",
  tilde[] = "M-3 12.2c-1.6 14.8 -.6 13.6 0 13.2c1 12.4 2 12.2 3 14", dots[] = "D-2.3 13.4D2.3 13.4",
  ring[] = "M0 11.8h1.8 13.5v0 15.2h-1.8 13.5v0 11.8", cedil[] = "M.3 0L-.3 -1.4c1.8 -1.6 1.8 -4 -1.6 -3.6";
static const struct { unsigned char code; char base; const char *accent; } accented[] = {
  {0xc0, 'A', grave}, {0xc1, 'A', acute}, {0xc2, 'A', circ}, {0xc3, 'A', tilde}, {0xc4, 'A', dots}, {0xc5, 'A', ring},
  {0xc7, 'C', cedil}, {0xc8, 'E', grave}, {0xc9, 'E', acute}, {0xca, 'E', circ}, {0xcb, 'E', dots}, {0xcd, 'I', acute},
  {0xd1, 'N', tilde}, {0xd3, 'O', acute}, {0xd4, 'O', circ}, {0xd6, 'O', dots}, {0xda, 'U', acute}, {0xdc, 'U', dots},
  {0xe0, 'a', grave}, {0xe1, 'a', acute}, {0xe2, 'a', circ}, {0xe3, 'a', tilde}, {0xe4, 'a', dots}, {0xe5, 'a', ring},
  {0xe7, 'c', cedil}, {0xe8, 'e', grave}, {0xe9, 'e', acute}, {0xea, 'e', circ}, {0xeb, 'e', dots}, {0xed, 'i', acute},
  {0xee, 'i', circ}, {0xef, 'i', dots}, {0xf1, 'n', tilde}, {0xf2, 'o', grave}, {0xf3, 'o', acute}, {0xf4, 'o', circ},
  {0xf5, 'o', tilde}, {0xf6, 'o', dots}, {0xf9, 'u', grave}, {0xfa, 'u', acute}, {0xfb, 'u', circ}, {0xfc, 'u', dots},
};

/* Raised and lowered figures of Unicode, as the plain sign. */
static const struct { unsigned code; char sign; } raised[] = {
  {0xb2, '2'}, {0xb3, '3'}, {0xb9, '1'}, {0x2070, '0'}, {0x2074, '4'}, {0x2075, '5'}, {0x2076, '6'}, {0x2077, '7'},
  {0x2078, '8'}, {0x2079, '9'}, {0x207b, '-'},
};

/* clang-format on */

static const glyph *find(unsigned code)
{
  if (code < ' ') code = ' ';
  size_t lo = 0, hi = sizeof glyphs / sizeof *glyphs;
  while (lo < hi) {
    size_t m = (lo + hi) / 2;
    if (glyphs[m].code == code) return &glyphs[m];
    if (glyphs[m].code < code)
      lo = m + 1;
    else
      hi = m;
  }
  return &unknown;
}

/* The next code of UTF-8; a byte that fits nowhere is taken as Latin 1. */
static unsigned next_code(const char **s)
{
  const unsigned char *p = (const unsigned char *)*s;
  int n = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc2 ? 1 : 0;
  unsigned v = n == 3 ? p[0] & 7u : n == 2 ? p[0] & 15u : n == 1 ? p[0] & 31u : p[0];
  for (int i = 1; i <= n; i++) {
    if ((p[i] & 0xc0) != 0x80) {
      (*s)++;
      return p[0];
    }
    v = v << 6 | (p[i] & 63u);
  }
  *s += n + 1;
  return v;
}

/* ---- one glyph ------------------------------------------------------------------ */
static bool digit(unsigned c) { return c >= '0' && c <= '9'; }

/* Not strtod, which follows the user's locale. */
static double number(const char **p)
{
  const char *s = *p;
  while (*s == ' ') s++;
  bool minus = *s == '-';
  if (minus) s++;
  double v = 0, part = 1;
  for (; digit((unsigned char)*s); s++) v = 10 * v + (*s - '0');
  if (*s == '.')
    for (s++; digit((unsigned char)*s); s++) v += (part /= 10) * (*s - '0');
  *p = s;
  return minus ? -v : v;
}

static void extent(const char *p, double *lo, double *hi)
{
  *lo = 1e9;
  *hi = -1e9;
  while (*p) {
    char k = *p++;
    for (int i = k == 'c' ? 3 : 1; i; i--) {
      double x = number(&p);
      number(&p);
      if (x < *lo) *lo = x;
      if (x > *hi) *hi = x;
    }
  }
  if (*lo > *hi) *lo = *hi = 0;
}

typedef struct pen { /* grid to pixels */
  moho_canvas *c;
  double unit, radius, shift; /* pixels a grid unit; half a stroke; where a stroke's centre is sharp */
  double x, y;                /* of the glyph's origin, before turning */
  double x0, kx, u0;          /* horizontal fit: u0 + kx (x - x0) */
  bool up;
  double ox, oy; /* where the text starts on the canvas */
} pen;

static double fit_y(const pen *p, double y)
{
  static const double line[4] = {-4, 0, 10, 14};
  int i = y < 0 ? 0 : y < 10 ? 1 : 2;
  double a = floor(line[i] * p->unit + 0.5), b = floor(line[i + 1] * p->unit + 0.5);
  return a + (y - line[i]) * (b - a) / (line[i + 1] - line[i]);
}

static void place(const pen *p, double x, double y, double *px, double *py)
{
  double u = p->x + p->u0 + p->kx * (x - p->x0), v = p->y + fit_y(p, y) + p->shift;
  if (p->up)
    *px = p->ox - v, *py = p->oy - u;
  else
    *px = p->ox + u, *py = p->oy - v;
}

static void curve(const pen *p, const double q[8], double *lx, double *ly)
{
  enum { STEPS = 12 };
  for (int i = 1; i <= STEPS; i++) {
    double t = (double)i / STEPS, s = 1 - t, a = s * s * s, b = 3 * s * s * t, c = 3 * s * t * t, d = t * t * t, x, y;
    place(p, a * q[0] + b * q[2] + c * q[4] + d * q[6], a * q[1] + b * q[3] + c * q[5] + d * q[7], &x, &y);
    moho_canvas_segment(p->c, *lx, *ly, x, y, p->radius);
    *lx = x;
    *ly = y;
  }
}

static void trace(const pen *p, const char *s)
{
  const double k = 0.57; /* a little fuller than an ellipse's 0.5523 */
  double x = 0, y = 0, lx = 0, ly = 0;
  while (*s) {
    char op = *s++;
    double q[8] = {x, y};
    int n = op == 'c' ? 3 : 1;
    for (int i = 0; i < n; i++) {
      q[2 * (4 - n + i)] = number(&s);
      q[2 * (4 - n + i) + 1] = number(&s);
    }
    x = q[6];
    y = q[7];
    if (op == 'M') {
      place(p, x, y, &lx, &ly);
    } else if (op == 'D') {
      place(p, x, y, &lx, &ly);
      moho_canvas_segment(p->c, lx, ly, lx, ly, p->radius * 1.3);
    } else if (op == 'L') {
      double nx, ny;
      place(p, x, y, &nx, &ny);
      moho_canvas_segment(p->c, lx, ly, nx, ny, p->radius);
      lx = nx;
      ly = ny;
    } else {
      if (op == 'h') q[2] = q[0] + k * (x - q[0]), q[3] = q[1], q[4] = x, q[5] = y + k * (q[1] - y);
      if (op == 'v') q[2] = q[0], q[3] = q[1] + k * (y - q[1]), q[4] = x + k * (q[0] - x), q[5] = y;
      curve(p, q, &lx, &ly);
    }
  }
}

/* ---- a line of text --------------------------------------------------------------- */
static double unit_of(double size) { return fmax(floor(size * 0.7 + 0.5), 5) / 14; }
double moho_text_cap(double size) { return 14 * unit_of(size); }

static void set_size(pen *p, double size)
{
  p->unit = unit_of(size);
  double w = fmax(1.15, 0.118 * moho_text_cap(size));
  p->radius = w / 2;
  p->shift = (int)floor(w + 0.5) % 2 ? 0.5 : 0;
}

/* Draws one code when there is a canvas; gives its advance in whole pixels. */
static double put(pen *p, unsigned code)
{
  const char *accent = NULL;
  bool high = false;
  for (size_t i = 0; code > 0xbf && code < 0x100 && i < sizeof accented / sizeof *accented; i++)
    if (accented[i].code == code) {
      code = (unsigned char)accented[i].base;
      accent = accented[i].accent;
      high = code < 'a' && accent != cedil;
      break;
    }
  const glyph *g = find(code);
  double lo, hi, side = p->unit * 0.92;
  extent(g->path, &lo, &hi);
  double width = floor((hi - lo) * p->unit + 0.5), left = floor(g->left * side + 0.5);
  double advance = fmax(left + width + floor(g->right * side + 0.5) + 1, 2);
  if (digit(code)) advance = floor(12.4 * p->unit + 0.5);
  if (!p->c || !*g->path) return advance;
  if (digit(code)) left = code == '1' ? floor((advance - width) * 0.4) : floor((advance - width) / 2);
  p->x0 = lo;
  p->u0 = left + p->shift;
  p->kx = hi > lo ? width / (hi - lo) : 1;
  if (accent && code == 'i')
    trace(p, "M0 0L0 10");
  else
    trace(p, g->path);
  if (accent) {
    double y = p->y;
    p->u0 += p->kx * (hi - lo) / 2;
    p->x0 = 0;
    p->kx = p->unit;
    if (high) p->y += floor(3.6 * p->unit + 0.5);
    trace(p, accent);
    p->y = y;
  }
  return advance;
}

static double run(pen *p, double size, const char *s)
{
  double x = 0;
  int level = 0;
  char close = 0;
  while (*s) {
    if ((*s == '^' || *s == '_') && s[1] == '{' && !close) {
      level = *s == '^' ? 1 : -1;
      close = '}';
      s += 2;
      continue;
    }
    if (close && *s == close) {
      close = 0;
      level = 0;
      s++;
      continue;
    }
    unsigned code = next_code(&s);
    int l = level;
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
      if (raised[i].code == code) {
        code = (unsigned char)raised[i].sign;
        l = 1;
        break;
      }
    if (l && code == '-') code = 0x2212;
    set_size(p, l ? size * 0.72 : size);
    p->x = x;
    p->y = l > 0 ? floor(0.36 * size + 0.5) : l < 0 ? -floor(0.16 * size + 0.5) : 0;
    x += put(p, code);
  }
  return x;
}

double moho_text_width(const char *s, double size)
{
  pen p = {0};
  return s ? run(&p, size, s) : 0;
}

void moho_text_draw(moho_canvas *c, double x, double y, double size, double anchor, bool up, moho_rgb k, const char *s)
{
  if (!s || !*s) return;
  double back = floor(anchor * moho_text_width(s, size) + 0.5);
  pen p = {.c = c, .up = up, .ox = floor(up ? x + 0.5 : x - back + 0.5), .oy = floor(up ? y + back + 0.5 : y + 0.5)};
  run(&p, size, s);
  moho_canvas_paint(c, k, 1);
}
