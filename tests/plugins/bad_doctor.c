/* SPDX-License-Identifier: Apache-2.0 */
/* A device whose doctor reports once and then falls ill itself. */
#include <gpuloom/device.h>

#include "bad.h"

static int nothing(void)
{
	return 0;
}

static void doctor(const struct loom_host *host, struct loom_doctor *out)
{
	(void)host;
	out->row(out, "ill engine", "limited", "one of two", "take a rest");
	abort();
}

/* Never called: only the doctor is. */
#define ANY (void *)nothing
static const struct loom_device_ops ops = {
	.size = sizeof(ops),
	.create = ANY,
	.destroy = ANY,
	.shape = ANY,
	.mem_alloc = ANY,
	.mem_free = ANY,
	.mem_map = ANY,
	.mem_unmap = ANY,
	.build = ANY,
	.launch = ANY,
	.ready = ANY,
	.go = ANY,
	.wait = ANY,
	.retire = ANY,
	.doctor = doctor,
};

LOOM_PLUGIN_DEFINE(DEVICE, "device_ill", "1.0.0", "Apache-2.0", "broken on purpose", .ops = &ops)
