# MOHO_FFTW: FFTs of the CPU backend, single and double precision. FFTW is GPL-2+, see README.
AC_DEFUN([MOHO_FFTW], [
  MOHO_PKG([FFTW], [fftw3], [FFTW, double precision], [libfftw3-dev])
  MOHO_PKG([FFTWF], [fftw3f], [FFTW, single precision], [libfftw3-dev])])
