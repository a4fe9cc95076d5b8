/* SPDX-License-Identifier: Apache-2.0 */
/* Checks before driver calls whether the device is usable, and makes the error text of a failed call. */
#include <stdio.h>
#include <string.h>

#include "gpu.h"

/* The last call of this thread that returned anything but success. Several threads use a device at once: one may copy for
 * the network while another polls the kernel. */
static __thread char failed_call[96] = "a call of the driver";

int gpu_called(int rc, const char *name)
{
	if (rc != 0)
		snprintf(failed_call, sizeof(failed_call), "%s", name);
	return rc;
}

const char *gpu_failed_call(void)
{
	return failed_call;
}

int gpu_fail(struct gpu *d, struct loom_error *err, int rc, const char *what)
{
	int code = rc == d->driver->out_of_memory ? LOOM_ENOMEM : LOOM_EIO;
	const char *call = gpu_failed_call();
	int fix = d->driver->call && !strcmp(call, d->driver->call);
	return LOOM_FAIL(d->host, err, code, "%s: %s: %s%s%s", d->name, what ? what : call, d->driver->text(d, rc),
			 fix ? "; " : "", fix ? d->driver->call_fix : "");
}

int gpu_dead(struct gpu *d, int rc, struct loom_error *err)
{
	d->lost = LOST_DEAD;
	d->died_of = rc;
	return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: its kernel has failed: %s", d->name, d->driver->text(d, rc));
}

int gpu_enter(struct gpu *d, struct loom_error *err)
{
	if (d->lost == LOST_HUNG)
		return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: unusable, because a kernel hangs: end this process to "
			"free the GPU", d->name);
	if (d->lost) /* the thread that detected the failure may have had no struct loom_error to fill in */
		return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: unusable, because its kernel has failed: %s", d->name,
				 d->driver->text(d, d->died_of));
	int rc = d->driver->enter(d);
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

void gpu_leave(struct gpu *d)
{
	d->driver->leave(d);
}
