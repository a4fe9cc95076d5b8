/* SPDX-License-Identifier: Apache-2.0 */
/* The back end over libfabric: memory, operations, events. */
#include "fabric_ofi.h"
#include "../segment_count.h"

#include <gpuloom/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct fabric_context) == sizeof(struct fi_context2), "providers write there");

const char *fabric_strerror(int status)
{
	return fi_strerror(status);
}

static int check(const struct fabric *of, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	const struct fabric_ofi *f = fabric_ofi(of);
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	if (rank >= f->is.host->ranks || segment == 0 || segment >= f->segments)
		return LOOM_EINVAL;
	uint64_t size = f->remote[rank * f->segments + segment].bytes;
	return LOOM_REF_OFFSET(ref) > size || bytes > size - LOOM_REF_OFFSET(ref) ? LOOM_EINVAL : 0;
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* Finds the address of device memory, if operations on such memory are wanted. The result is the address of the memory
 * itself or, if the provider cannot access the memory, of a copy on the host. Only the process that makes the device's
 * calls can do this. */
static int find_device(struct fabric_ofi *f, const struct loom_segments *segments, uint32_t i,
		       struct fabric_local *here, struct loom_error *err)
{
	struct loom_memory_key key = {0};
	if (!f->devices || !LOOM_HAS(segments, copy) || !segments->image[i])
		return 0;
	int rc = segments->key(segments->ctx, i, &key, err);
	if (rc == LOOM_ENOTSUP)
		return rc;
	if (rc || !fabric_hmem(f, segments, i, &key, here))
		*here = (struct fabric_local){.at = segments->image[i], .bytes = segments->bytes[i], .staged = 1};
	return 0;
}

static int any_staged(const struct fabric_ofi *f)
{
	int any = 0;
	for (uint32_t i = 0; i < f->is.host->ranks * f->segments; i++)
		any |= f->remote[i].staged != 0;
	return any;
}

static int share(struct fabric *of, const struct loom_segments *segments, struct loom_error *err)
{
	struct fabric_ofi *f = fabric_ofi(of);
	const struct loom_host *host = f->is.host;
	uint32_t n = segments->count, most;
	int rc = segment_count_most(host, n, &most, err);
	if (rc)
		return rc;
	f->local = host->alloc(host, most * sizeof(*f->local));
	f->remote = host->alloc(host, (size_t)host->ranks * most * sizeof(*f->remote));
	struct fabric_remote *mine = host->alloc(host, most * sizeof(*mine));
	if (!f->local || !f->remote || !mine)
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	else
		f->segments = most;
	for (uint32_t i = 1; !rc && i < n; i++) {
		f->local[i] = (struct fabric_local){.at = segments->at[i], .bytes = segments->bytes[i]};
		if (!segments->at[i])
			rc = find_device(f, segments, i, &f->local[i], err);
		if (rc || !f->local[i].at || !f->local[i].bytes)
			continue; /* the size of this segment stays 0, so check() rejects operations on it */
		int code =
		    f->local[i].mr ? 0 : fabric_register_host(f, f->local[i].at, f->local[i].bytes, &f->local[i].mr);
		if (code)
			rc = LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				       "%s: cannot register %llu KiB of memory: %s", f->is.name,
				       (unsigned long long)f->local[i].bytes >> 10, fi_strerror(-code));
		else
			mine[i] = fabric_remote(f, &f->local[i]);
	}
	if (!rc)
		rc = host->allgather(host, mine, f->remote, most * sizeof(*mine), err);
	host->free(host, mine);
	return rc || !any_staged(f) ? rc : fabric_staged_open(f, segments, err);
}

void fabric_ofi_close(struct fabric *of)
{
	struct fabric_ofi *f = fabric_ofi(of);
	const struct loom_host *host = of->host;
	if (f->ep)
		fi_close(&f->ep->fid);
	for (uint32_t i = 1; i < f->segments; i++)
		if (f->local[i].mr)
			fi_close(&f->local[i].mr->fid);
	fabric_staged_close(f);
	if (f->scratch_mr)
		fi_close(&f->scratch_mr->fid);
	if (f->cq)
		fi_close(&f->cq->fid);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	if (f->info)
		fi_freeinfo(f->info);
	if (!strcmp(f->is.name, "shm")) /* a rank may have died before it removed its shared memory, so remove it here */
		fabric_sweep_shm();
	host->free(host, f->local);
	host->free(host, f->remote);
	host->free(host, f->scratch);
	host->free(host, f->scratch_remote);
	host->free(host, f->peer);
	host->free(host, f);
}

/* ---- operations -------------------------------------------------------------------------------- */

static int start(struct fabric *of, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct fabric_ofi *f = fabric_ofi(of);
	return f->staging ? fabric_staged_start(f, io, context, status) :
			    fabric_result(fabric_issue(f, io, context), status);
}

static int staged(const struct fabric *of, uint32_t rank, loom_ref ref)
{
	const struct fabric_ofi *f = fabric_ofi(of);
	return f->remote[rank * f->segments + LOOM_REF_SEGMENT(ref)].staged != 0;
}

static int notify_only(struct fabric *of, uint32_t target, uint32_t notify, struct fabric_context *context, int *status)
{
	return fabric_result(fabric_issue_notify(fabric_ofi(of), target, notify, context), status);
}

static void cancel(struct fabric *of, struct fabric_context *context)
{
	struct fabric_ofi *f = fabric_ofi(of);
	/* The event of the receive shows whether fi_cancel() came too late. */
	(void)fi_cancel(&f->ep->fid, f->staging ? fabric_staged_context(f, context) : context);
}

static int can_add(const struct fabric *of, uint32_t type, uint64_t bytes)
{
	const struct fabric_ofi *f = fabric_ofi(of);
	uint64_t size = fabric_type_bytes(type);
	return !size || bytes % size || !f->most_add[type] || bytes / size > f->most_add[type] ?
		       LOOM_ENOTSUP :
		       0;
}

/* ---- events ------------------------------------------------------------------------------------ */

static void ended(struct fabric_ofi *f, const struct fabric_context *context)
{
	if (context && context == f->adding)
		f->adding = NULL;
}

/* Returns 1 if the event is for the caller. Returns 0 for an operation of fabric_test() that ended late, and for an
 * internal event of staging. */
static int is_for_caller(struct fabric_ofi *f, struct fabric_event *e)
{
	if (f->tested && e->context >= f->test && e->context < f->test + FABRIC_TESTS)
		return 0;
	return !f->staging || fabric_staged_event(f, e);
}

static void failed(struct fabric_ofi *f, struct fabric_event *e)
{
	struct fi_cq_err_entry entry = {0};
	ssize_t n = fi_cq_readerr(f->cq, &entry, 0);
	*e = (struct fabric_event){.what = FABRIC_FAILED,
				   .status = n == 1 ? entry.err : FI_EOTHER,
				   .context = n == 1 ? entry.op_context : NULL};
	ended(f, e->context);
}

static int take_events(struct fabric *of, struct fabric_event *event, uint32_t room)
{
	struct fabric_ofi *f = fabric_ofi(of);
	struct fi_cq_data_entry entry[FABRIC_BATCH];
	int events = f->staging ? fabric_staged_go_on(f, event, room) : 0;
	room -= (uint32_t)events;
	ssize_t n = room ? fi_cq_read(f->cq, entry, room < FABRIC_BATCH ? room : FABRIC_BATCH) : -FI_EAGAIN;
	if (n == -FI_EAGAIN)
		return events;
	if (n == -FI_EAVAIL) {
		failed(f, &event[events]);
		return events + is_for_caller(f, &event[events]);
	}
	if (n < 0)
		return LOOM_EIO;
	for (ssize_t i = 0; i < n; i++) {
		/* If a put has immediate data, the sockets provider repeats these data in the sender's completion. Only
		 * FI_REMOTE_WRITE shows that an event is an arrival. */
		int arrived = (entry[i].flags & (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)) ==
			      (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		event[events] = (struct fabric_event){.what = arrived ? FABRIC_ARRIVED : FABRIC_DONE,
						      .context = arrived ? NULL : entry[i].op_context,
						      .notify = arrived ? entry[i].data : 0};
		ended(f, event[events].context);
		events += is_for_caller(f, &event[events]);
	}
	return events;
}

static int may_sleep(struct fabric *of)
{
	struct fabric_ofi *f = fabric_ofi(of);
	struct fid *cq = &f->cq->fid;
	return !(f->staging && fabric_staged_busy(f)) && fi_trywait(f->fabric, &cq, 1) == FI_SUCCESS;
}

const struct fabric_ops fabric_ofi_ops = {.close = fabric_ofi_close,
					  .share = share,
					  .check = check,
					  .staged = staged,
					  .can_add = can_add,
					  .start = start,
					  .notify = notify_only,
					  .cancel = cancel,
					  .poll = take_events,
					  .may_sleep = may_sleep};
