/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that use a plug-in without the core get the plug-in's descriptor, its options and a host from this file. */
#ifndef LOOM_TEST_FAKE_HOST_H
#define LOOM_TEST_FAKE_HOST_H

#include <dlfcn.h>
#include <gpuloom/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "rig/host.h"
#include "support.h"

#define FAKE_FN static __attribute__((unused))

/* The host records messages in fake.log, and metrics in loom__rig_host_metric(). */
static struct loom__rig_host fake;
#define fake_host fake.table

__attribute__((constructor)) FAKE_FN void fake_begin(void)
{
	loom__rig_host_init(&fake);
}

FAKE_FN void fake_must(int ok, const char *what, const struct loom_error *err)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, err ? err->text : "");
	exit(99);
}

/* Returns the descriptor of BUILD/plugins/NAME.so. Ends the program if the plug-in does not load. */
FAKE_FN const struct loom_plugin *fake_load(const char *name)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/plugins/%s.so", test_build_dir(), name);
	/* The handlers that libinfinipath.so installs at SIGTERM call exit(), which can deadlock. libgpuloom removes them. */
	setenv("IPATH_NO_BACKTRACE", "1", 1);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const struct loom_plugin *(*entry)(void) = NULL;
	if (so)
		*(void **)&entry = dlsym(so, "loom_plugin_entry");
	if (!entry) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		exit(99);
	}
	return entry();
}

/* Returns options that live until the program ends: the defaults, then "name=value name=value". */
FAKE_FN void *fake_settings(const struct loom_plugin *plugin, const char *settings)
{
	/* A list refers to the options, so that the leak detector does not report them. */
	static struct kept {
		struct kept *next;
		char *text;
		void *opts; /* separate from the list entry, because some rigs free the options */
	} *all;
	struct loom_error err = {0};
	struct kept *kept = calloc(1, sizeof(*kept));
	void *opts = kept->opts = calloc(1, plugin->opts_size + 8);
	kept->text = strdup(settings ? settings : "");
	kept->next = all;
	all = kept;
	for (const struct loom_opt *row = plugin->opts; row && row->name; row++)
		if (row->dflt)
			loom__value_parse(row, row->dflt, (char *)opts + row->offset, &err);
	char *rest = NULL; /* the options point into this text */
	for (char *one = strtok_r(kept->text, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(one, '=');
		if (value)
			*value++ = 0;
		const struct loom_opt *row = plugin->opts;
		while (value && row && row->name && strcmp(row->name, one))
			row++;
		fake_must(value && row && row->name, plugin->name, &(struct loom_error){.text = "no such option"});
		if (row->type == LOOM_OPT_CPUS) /* a list of CPUs is not checked, because tests also need wrong lists */
			*(const char **)(void *)((char *)opts + row->offset) = value;
		else
			fake_must(!loom__value_parse(row, value, (char *)opts + row->offset, &err), one, &err);
	}
	return opts;
}

#endif
