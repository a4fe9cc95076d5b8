/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(name)  TEXT_OF_(name)
#define TEXT_OF_(name) #name
#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))

const char *runtime_text(const struct runtime *hip, int rc)
{
	static __thread char text[200];
	const char *name = hip->hipGetErrorName((hipError_t)rc);
	const char *words = hip->hipGetErrorString((hipError_t)rc);
	/* Some releases return the name as description, too. */
	int same = !words || (name && !strcmp(name, words));
	snprintf(text, sizeof(text), same ? "%s %d" : "%s %d (%s)", name ? name : "unknown error", rc, words);
	return text;
}

static int load(const struct loom_host *host, const char *label, struct runtime *hip, struct loom_error *err)
{
	static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so",
					    "libamdhip64.so.5"};
	const char *name = NULL;
	for (size_t i = 0; i < COUNT(names) && !hip->so; i++) {
		name = names[i];
		hip->so = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	if (!hip->so)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: there is no HIP runtime here (libamdhip64.so was not found): install ROCm 6 or "
				 "later, or set devices = cpu:0",
				 label);
	const struct gpu_symbol symbols[] = {
#define RUNTIME_ROW(name) {&hip->name, TEXT_OF(name)},
	    RUNTIME_MAP(RUNTIME_ROW)
#undef RUNTIME_ROW
		{&hip->hipModuleLaunchCooperativeKernel, "hipModuleLaunchCooperativeKernel"},
	    {&hip->hipDeviceSetLimit, "hipDeviceSetLimit"},
	    {&hip->hipGetDevicePropertiesR0600, "hipGetDevicePropertiesR0600"},
	};
	const char *lacks = gpu_symbols(hip->so, symbols, COUNT(symbols));
	if (lacks)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: the HIP runtime here (%s) lacks %s: install ROCm 6 or later", label, name, lacks);
	return 0;
}

int runtime_open(const struct loom_host *host, const char *label, struct runtime *hip, struct loom_error *err)
{
	*hip = (struct runtime){0};
	int code = load(host, label, hip, err);
	if (code)
		return code;
	int rc = (int)hip->hipInit(0);
	if (rc != 0)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "%s: the HIP runtime does not start: hipInit: %s; load the amdgpu kernel "
				 "module and give this user access to /dev/kfd and /dev/dri (groups render "
				 "and video)",
				 label, runtime_text(hip, rc));
	rc = (int)hip->hipRuntimeGetVersion(&hip->version);
	if (rc != 0)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "%s: hipRuntimeGetVersion: %s", label,
				 runtime_text(hip, rc));
	return 0;
}
