/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `gpuloom doctor` about GPUs of one vendor. */
#include "gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Splits an error text "device: problem: install ..." or "device: problem; fix" into the columns of a row. */
static void failed_row(struct loom_doctor *out, const char *topic, struct loom_error *err)
{
	char *text = strstr(err->text, ": "), *fix = NULL;
	text = text ? text + 2 : err->text;
	for (char *at = strstr(text, ": install"); at; at = NULL)
		fix = at + 2;
	if (!fix && (fix = strstr(text, "; ")))
		fix += 2;
	if (fix)
		fix[-2] = 0;
	out->row(out, topic, "no", text, fix ? fix : "");
}

static void compiler_row(const struct gpu *d, struct loom_doctor *out)
{
	struct rtc compiler;
	struct loom_error err = {0};
	char topic[64], found[300];
	snprintf(topic, sizeof(topic), "%s: %s", d->name, d->driver->compiler->title);
	if (rtc_open(d->host, d->name, d->driver->compiler, NULL, &compiler, &err) != 0) {
		failed_row(out, topic, &err);
		return;
	}
	snprintf(found, sizeof(found), "%d.%d, %s", compiler.major, compiler.minor, compiler.path);
	out->row(out, topic, "ok", found, "");
}

static void gpu_row(struct gpu *d, struct loom_doctor *out, int number)
{
	char topic[64], found[256];
	struct loom_error err = {0};
	snprintf(topic, sizeof(topic), "%s: GPU %d", d->name, number);
	if (d->driver->find(d, number, &err) != 0) {
		failed_row(out, topic, &err);
		return;
	}
	snprintf(found, sizeof(found), "%s, %s, %d multiprocessors, %" PRIu64 " MiB", d->model, d->arch,
		 d->limits.multiprocessors, d->memory >> 20);
	out->row(out, topic, "ok", found, "");
}

static void atomics_row(struct gpu *d, struct loom_doctor *out, int number)
{
	char topic[64], fix[100];
	struct gpu_atomics can = {0};
	snprintf(topic, sizeof(topic), "%s: GPU %d and CPU", d->name, number);
	d->driver->host_atomics(d, &can);
	if (can.native) {
		out->row(out, topic, "ok", "atomics on host memory are native", "");
	} else if (can.known && can.add && can.cas) {
		out->row(out, topic, "ok", "64-bit add and compare-and-swap on host memory are native", "");
	} else if (can.known) {
		snprintf(fix, sizeof(fix), "cpu:N and %s:N devices in one stack exchange tasks by mailboxes", d->name);
		out->row(out, topic, "limited",
			 can.add ? "no native compare-and-swap on host memory" : "no native atomics on host memory",
			 fix);
	} else {
		out->row(out, topic, "limited", "the driver does not report atomics on host memory",
			 d->driver->atomics_fix);
	}
}

static void peer_row(struct gpu *d, struct loom_doctor *out, int count)
{
	char topic[64], found[120];
	int pairs = 0, able = 0, reported = 0, atomic = 0;
	for (int a = 0; a < count; a++)
		for (int b = 0; b < count; b++) {
			int can = 0;
			if (a == b)
				continue;
			pairs++;
			if (d->driver->peers(d, a, b, &can) != 0 || !can)
				continue;
			able++;
			struct gpu_atomics native = {0};
			if (d->driver->peer_atomics)
				d->driver->peer_atomics(d, a, b, &native);
			reported += native.known;
			atomic += native.add && native.cas;
		}
	if (!pairs)
		return;
	snprintf(topic, sizeof(topic), "%s: peer access", d->name);
	int n = snprintf(found, sizeof(found), "%d of %d directed pairs of GPUs", able, pairs);
	if (reported)
		snprintf(found + n, sizeof(found) - (size_t)n, ", %d of them with native 64-bit atomics", atomic);
	out->row(out, topic, able == pairs && (!reported || atomic == able) ? "ok" : "limited", found,
		 able < pairs ? "transport p2p needs it between the GPUs of a stack; host does not"
		 : reported && atomic < able
		     ? "where the probe of a stack loses additions, its GPUs exchange tasks by mailboxes"
		     : "");
}

void gpu_doctor(struct gpu *d, const struct gpu_driver *driver, const struct loom_host *host, struct loom_doctor *out)
{
	char topic[64], found[96];
	struct loom_error err = {0};
	int count = 0;
	d->driver = driver;
	d->host = host;
	snprintf(d->name, sizeof(d->name), "%s", driver->name);
	snprintf(topic, sizeof(topic), "%s: %s", driver->name, driver->library);
	compiler_row(d, out);
	if (driver->open(d, &err) != 0) {
		failed_row(out, topic, &err);
		return;
	}
	int usable = driver->count(d, &count) == 0 && count;
	snprintf(found, sizeof(found), "%s, %d GPU(s)", d->version, count);
	out->row(out, topic, usable ? "ok" : "no", found, usable ? "" : driver->fix);
	for (int i = 0; i < count; i++) {
		gpu_row(d, out, i);
		atomics_row(d, out, i);
	}
	peer_row(d, out, count);
}
