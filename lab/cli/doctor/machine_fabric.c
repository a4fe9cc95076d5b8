/* SPDX-License-Identifier: Apache-2.0 */
/* Network fabrics, as libfabric reports them. The library is not linked, but loaded at run time if it is installed. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/doctor.h"

#if __has_include(<rdma/fabric.h>)
#include <rdma/fabric.h>
#define LOOM_HAVE_FABRIC_H 1
#endif

#ifdef LOOM_HAVE_FABRIC_H
/* Appends each provider once, in libfabric's order of preference. For a provider in layers ("tcp;ofi_rxm"), appends the
 * first layer. */
static void add_providers(struct loom__text *t, void *library)
{
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	struct fi_info *list = NULL;
	char seen[64][32];
	size_t n = 0;
	*(void **)&getinfo = dlsym(library, "fi_getinfo");
	if (getinfo && getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &list))
		list = NULL;
	for (struct fi_info *i = list; i && n < LOOM__COUNT(seen); i = i->next) {
		const char *name = i->fabric_attr ? i->fabric_attr->prov_name : NULL;
		size_t k = 0;
		if (!name)
			continue;
		snprintf(seen[n], sizeof(seen[n]), "%.*s", (int)strcspn(name, ";"), name);
		while (strcmp(seen[k], seen[n]))
			k++;
		if (k == n)
			loom__text_add(t, "%s%s", n ? ", " : ": ", seen[n]), n++;
	}
	if (!n)
		loom__text_add(t, ": no provider is available");
	/* The library is not closed, because the process ends. */
}
#else
static void add_providers(struct loom__text *t, void *library)
{
	(void)library;
	loom__text_add(t, "; built without <rdma/fabric.h>, so its providers are not known");
}
#endif

void loom__fabric_answer(int fd)
{
	static const char fix[] = "install libfabric (Debian: libfabric1; Fedora: libfabric)";
	struct loom__text t = {0};
	uint32_t (*version)(void);
	void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		loom__answer_row(fd, "libfabric", "no", "libfabric.so.1 is not installed", fix);
		return;
	}
	*(void **)&version = dlsym(library, "fi_version");
	uint32_t v = version ? version() : 0;
	loom__text_add(&t, "version %u.%u", (unsigned)(v >> 16), (unsigned)(v & 0xffff));
	add_providers(&t, library);
	loom__answer_row(fd, "libfabric", "ok", t.at, "");
	loom__text_free(&t);
}
