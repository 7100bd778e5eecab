# MOHO_CUDA: nvcc, the toolkit's folders, the architectures. --with-cuda[=DIR] stops when nothing usable is there,
# --without-cuda does not look, and by default a build without CUDA goes on and says why.
#
# Sets NVCC, NVCCFLAGS, NVCC_GENCODE, CUDA_LIBS, CUDA_HOME, CUDA_VERSION, CUDA_WHY and the conditional CUDA.
AC_DEFUN([MOHO_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [the CUDA backend, with the toolkit in DIR (default: when nvcc is found)])], [], [with_cuda=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [flags of the CUDA compiler])
  AC_ARG_VAR([NVCC_GENCODE], [architectures (default: sm_80, sm_90 and the PTX of the last)])
  CUDA_WHY=
  CUDA_HOME=
  CUDA_LIBS=
  CUDA_VERSION=
  moho_cuda=no
  AS_IF([test "$with_cuda" = no], [CUDA_WHY="built without CUDA"], [
    AS_CASE([$with_cuda],
      [yes|auto], [moho_cuda_path="$PATH$PATH_SEPARATOR/usr/local/cuda/bin"],
      [moho_cuda_path="$with_cuda/bin"])
    AC_PATH_PROG([NVCC], [nvcc], [], [$moho_cuda_path])
    AS_IF([test -z "$NVCC"], [CUDA_WHY="nvcc was not found"], [MOHO_CUDA_TOOLKIT])
    AS_IF([test $moho_cuda = no && test "$with_cuda" != auto],
      [AC_MSG_ERROR([--with-cuda=$with_cuda: $CUDA_WHY])])
    AS_IF([test $moho_cuda = no], [
      CUDA_WHY="built without CUDA: $CUDA_WHY"
      CUDA_VERSION=])])
  AC_SUBST([CUDA_HOME])
  AC_SUBST([CUDA_LIBDIR])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([CUDA_VERSION])
  AC_SUBST([CUDA_WHY])
  AM_CONDITIONAL([CUDA], [test $moho_cuda = yes])])

# What nvcc itself says about its folders: lib, lib64 and targets/*/lib are all in use.
AC_DEFUN([MOHO_CUDA_TOOLKIT], [
  : ${NVCCFLAGS="-O2 -g -lineinfo"}
  : ${NVCC_GENCODE="-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90"}
  AC_MSG_CHECKING([for the CUDA toolkit])
  echo 'int main(void) { return 0; }' > conftest.cu
  moho_dryrun=`$NVCC --dryrun conftest.cu 2>&1`
  moho_dirs=`AS_ECHO(["$moho_dryrun"]) | sed -n 's/^#\$ LIBRARIES=//p' | tr -d '"' | tr ' ' '\n' | sed -n 's/^-L//p' | grep -v stubs`
  CUDA_HOME=`AS_ECHO(["$moho_dryrun"]) | sed -n 's/^#\$ TOP=//p'`
  CUDA_HOME=`cd "${CUDA_HOME:-$(dirname "$NVCC")/..}" 2>/dev/null && pwd -P`
  CUDA_LIBDIR=
  for moho_dir in $moho_dirs "$CUDA_HOME/lib64" "$CUDA_HOME/lib"; do
    AS_IF([test -z "$CUDA_LIBDIR" && test -f "$moho_dir/libcudart_static.a"],
      [CUDA_LIBDIR=`cd "$moho_dir" && pwd -P`])
  done
  CUDA_VERSION=`$NVCC --version | sed -n 's/.*release \([[0-9.]]*\).*/\1/p'`
  AC_MSG_RESULT([${CUDA_LIBDIR:-no} (version ${CUDA_VERSION:-unknown})])
  # A module with one kernel is compiled and linked as the real one is.
  AS_IF([test -z "$CUDA_LIBDIR"], [CUDA_WHY="$NVCC has no libcudart_static.a"], [
    CUDA_LIBS="-L$CUDA_LIBDIR -lcudart_static -lstdc++ -lrt -lpthread -ldl -lm"
    AC_MSG_CHECKING([whether nvcc builds for the architectures asked for])
    cat > conftest.cu <<_MOHO_EOF
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <cufft.h>
__global__ void k(float *x) { x@<:@threadIdx.x@:>@ *= 2; }
extern "C" int f(float *x) { k<<<1, 1>>>(x); return cudaGetLastError(); }
_MOHO_EOF
    AS_IF([{ $NVCC -forward-unknown-to-host-compiler -std=c++17 $NVCCFLAGS $NVCC_GENCODE -fPIC -c conftest.cu -o conftest.o &&
             $CC -shared conftest.o -o conftest.so $CUDA_LIBS; } >conftest.log 2>&1],
      [moho_cuda=yes
       AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       cat conftest.log >&AS_MESSAGE_LOG_FD
       CUDA_WHY="`sed '/^@<:@^a-z@:>@*$/d;q' conftest.log | tr -d '"\\\\'`"])])
  rm -f conftest.cu conftest.o conftest.so conftest.log])
