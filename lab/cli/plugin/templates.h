/* SPDX-License-Identifier: Apache-2.0 */
/* The files of conform/templates/, embedded at build time. */
#ifndef LOOM_CLI_TEMPLATES_H
#define LOOM_CLI_TEMPLATES_H

#include <gpuloom/plugin.h>

struct loom__embedded {
	const char *at, *end;
};
struct loom__template {
	const struct loom__embedded *source, *dev; /* dev: NULL if there is no device code */
	const char *about;                         /* such as "one counter of idle workers" */
};
const struct loom__template *loom__template_of(enum loom_kind kind);

extern const struct loom__embedded loom__template_makefile, loom__template_conf,
    loom__template_test, loom__template_readme;

#endif
