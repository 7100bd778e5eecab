/* What is inside: --version asks no device, info asks all of them. */
#ifndef MOHO_HOST_VERSION_H
#define MOHO_HOST_VERSION_H

#include "host/options.h"

void version_show(bool json);
/* Default device: the one asked for; none or "auto": the first GPU or else the CPU. */
void info_show(const options *o);
const char *version_moho(void);
const char *version_luajit(void);
/* The lines of --version, from malloc. */
char *version_text(void);

#endif
