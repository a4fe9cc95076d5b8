/* SPDX-License-Identifier: Apache-2.0 */
/* To what stands behind an endpoint. */
#include "../fabric/fabric.h"

#include <stdio.h>
#include <string.h>

#include "../fabric/fabric_inside.h"
#include "../simnet/simnet.h"

const char *fabric_name(const struct fabric *f)
{
	return f->name;
}

int fabric_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		struct loom_error *err)
{
	int rc = strcmp(want->provider, "sim") ? ofi_open(host, want, fabric, err) : net_open(host, want, fabric, err);
	if (!rc)
		LOOM_CHOICE(host, "trigger.provider", "%s", fabric_name(*fabric));
	return rc;
}

void fabric_stop(struct fabric *f)
{
	if (f)
		f->ops->stop(f);
}

void fabric_close(struct fabric *f)
{
	if (f)
		f->ops->close(f);
}

int fabric_share(struct fabric *f, const struct loom_segments *segments, struct loom_error *err)
{
	return f->ops->share(f, segments, err);
}

int fabric_check(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	return f->ops->check(f, rank, ref, bytes);
}

int fabric_staged(const struct fabric *f, uint32_t rank, loom_ref ref)
{
	return f->ops->staged && f->ops->staged(f, rank, ref);
}

int fabric_can_add(const struct fabric *f, uint32_t type, uint64_t bytes)
{
	return f->ops->can_add(f, type, bytes);
}

int fabric_start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	return f->ops->start(f, io, context, status);
}

int fabric_notify(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context, int *status)
{
	return f->ops->notify(f, target, notify, context, status);
}

void fabric_cancel(struct fabric *f, struct fabric_context *context)
{
	f->ops->cancel(f, context);
}

int fabric_poll(struct fabric *f, struct fabric_event *event, uint32_t room)
{
	return f->ops->poll(f, event, room);
}

int fabric_may_sleep(struct fabric *f)
{
	return f->fd >= 0 && f->ops->may_sleep(f);
}

void fabric_attach(struct fabric *f, const struct loom_clock *time, struct loom_agent *agent)
{
	if (f->ops->attach)
		f->ops->attach(f, time, agent);
}

uint64_t fabric_due(const struct fabric *f)
{
	return f->ops->due ? f->ops->due(f) : LOOM_NEVER;
}

void fabric_begin(struct fabric *f)
{
	if (f->ops->begin)
		f->ops->begin(f);
}
