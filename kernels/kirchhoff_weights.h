/* Weights of the Kirchhoff sums, for both compilers: tapers of apertures, and the part of a leg, source - point or
   point - receiver.

   The obliquity factor 2 cos(theta/2), theta the angle between the two legs' rays, needs no angle of a pair. With c and
   s the cosine and sine of half a ray's angle from the vertical, s signed in 2-D,
     cos((a - b) / 2) = c_a c_b + s_a s_b;
   in 3-D (c, s cos phi, s sin phi), phi the azimuth, is the spinor (c, s e^i phi), and |<a, b>| = cos(theta/2):
     re = c c' + q q' + r r',  im = q r' - r q',  cos(theta/2) = |re + i im|.
   A leg's amplitude, its angle's taper and sqrt(2/v) are factors of these two or three numbers. Sums of squares don't
   cancel, so floats keep the accuracy of the tables. */
#ifndef MOHO_KIRCHHOFF_WEIGHTS_H
#define MOHO_KIRCHHOFF_WEIGHTS_H

#include <math.h>
#include "kirchhoff.h"
#include "moho_kernel.h"

enum {
  KIR_STEPS = 20, /* of a taper                                             */
  /* node spacings of coarse tables from a position within which rays turn too fast for what is linear between nodes */
  KIR_NEAR = 3
};

/* Half a cosine in steps; the first two are 1, the last is 0. */
static inline void kir_steps(double steps[KIR_STEPS])
{
  for (int i = 0; i < KIR_STEPS; i++)
    steps[i] = i ? (1 + cos(3.14159265358979323846 * (i - 1) / (KIR_STEPS - 1))) / 2 : 1;
}

/* 1 below the limit's min, its steps from there, 0 from its max on. */
MOHO_FORMULA double kir_taper(moho_kirchhoff_limit a, const double *steps, double v)
{
  if (!(v < a.max)) return 0;
  if (v < a.min || a.hard) return 1;
  int i = (int)((double)KIR_STEPS * (v - a.min) / (a.max - a.min));
  return steps[i < KIR_STEPS ? i : KIR_STEPS - 1];
}

/* The numbers that a leg needs: none, the taper of its angle, or those above. */
MOHO_FORMULA int kir_parts(bool dynamic, bool three, bool angles) { return dynamic ? three ? 3 : 2 : angles ? 1 : 0; }

/* A leg at a point: g the slopes of its times along y, x, z, amp the amplitude with sqrt(2/v). Where times around the
   point are missing there is no angle, and no weight. */
MOHO_FORMULA void kir_leg(bool dynamic, bool three, moho_kirchhoff_limit angle, const double *steps, const double g[3],
                          double amp, double w[3])
{
  double across = three ? sqrt(g[0] * g[0] + g[1] * g[1]) : fabs(g[1]);
  double length = sqrt(across * across + g[2] * g[2]);
  w[0] = w[1] = w[2] = 0;
  if (!(length <= 1e300)) return;
  double taper = angle.on ? kir_taper(angle, steps, atan2(across, g[2])) : 1;
  if (!dynamic) {
    w[0] = taper;
    return;
  }
  if (!(fabs(amp) <= 1e300)) return;
  double up = length > 0 ? g[2] / length : 1, side = length > 0 ? across / length : 0, c, s;
  if (up >= 0)
    c = sqrt((1 + up) / 2), s = side / (2 * c);
  else
    s = sqrt((1 - up) / 2), c = side / (2 * s);
  w[0] = taper * amp * c;
  w[1] = taper * amp * (three ? across > 0 ? s * (g[1] / across) : s : copysign(s, g[1]));
  if (three && across > 0) w[2] = taper * amp * s * (g[0] / across);
}

/* The weight of two legs. */
MOHO_FORMULA double kir_pair(int parts, const double a[3], const double b[3])
{
  if (parts == 1) return a[0] * b[0];
  if (parts == 2) return a[0] * b[0] + a[1] * b[1];
  double re = a[0] * b[0] + a[1] * b[1] + a[2] * b[2], im = a[1] * b[2] - a[2] * b[1];
  return sqrt(re * re + im * im);
}

/* Spreading over a straight distance, with sqrt(2/v). */
MOHO_FORMULA double kir_amplitude(bool three, double distance, double eps, double v)
{
  double d = distance + eps;
  return sqrt(2 / v) / (three ? d : sqrt(d));
}

/* Coarse tables: whether a point, `away` from a position along y, x, z, is so near that its leg is made from central
   differences of the interpolated times, as with full tables, instead of being interpolated. h: steps of the image. */
MOHO_FORMULA bool kir_near(bool three, const double h[3], int64_t step, const double away[3])
{
  double square = 0;
  for (int i = three ? 0 : 1; i < 3; i++) {
    const double d = away[i] / (h[i] * (double)step);
    square += d * d;
  }
  return square < (double)(KIR_NEAR * KIR_NEAR);
}

#endif
