/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `gpuloom doctor` that every device for GPUs has. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

void doctor_failed(struct loom_doctor *out, const char *topic, struct loom_error *err)
{
	char *text = strstr(err->text, ": "), *mend = NULL;
	text = text ? text + 2 : err->text;
	for (char *at = strstr(text, ": install"); at; at = NULL)
		mend = at + 2;
	if (!mend && (mend = strstr(text, "; ")))
		mend += 2;
	if (mend)
		mend[-2] = 0;
	out->row(out, topic, "no", text, mend ? mend : "");
}

void doctor_compiler(const struct loom_host *host, const struct gpu_driver *driver,
		     struct loom_doctor *out)
{
	struct rtc compiler;
	struct loom_error err = {0};
	char topic[48], found[300];
	snprintf(topic, sizeof(topic), "%s: %s", driver->name, driver->compiler->title);
	if (rtc_open(host, driver->name, driver->compiler, NULL, &compiler, &err) != 0) {
		doctor_failed(out, topic, &err);
		return;
	}
	snprintf(found, sizeof(found), "%d.%d, %s", compiler.major, compiler.minor, compiler.path);
	out->row(out, topic, "ok", found, "");
}
