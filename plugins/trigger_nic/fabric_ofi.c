/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint of libfabric: memory, operations, events. */
#include "fabric_inside.h"

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
	const struct ofi *f = ofi_of(of);
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	if (rank >= f->is.host->ranks || segment == 0 || segment >= f->segments)
		return LOOM_EINVAL;
	uint64_t size = f->theirs[rank * f->segments + segment].bytes;
	return LOOM_REF_OFFSET(ref) > size || bytes > size - LOOM_REF_OFFSET(ref) ? LOOM_EINVAL : 0;
}

/* ---- memory ------------------------------------------------------------------------------------ */

int fabric_register(struct ofi *f, void *at, uint64_t bytes, uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(f->domain, at, bytes,
			 FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0,
			 mr, NULL);
}

struct fabric_there fabric_there(const struct ofi *f, const struct fabric_here *here)
{
	int virtual = (f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
	return (struct fabric_there){.base = virtual ? (uint64_t)(uintptr_t)here->at : 0,
				     .key = fi_mr_key(here->mr),
				     .bytes = here->bytes};
}

static int share(struct fabric *of, const struct loom_segments *segments, struct loom_error *err)
{
	struct ofi *f = ofi_of(of);
	const struct loom_host *host = f->is.host;
	uint32_t n = segments->count, most = n;
	uint32_t *counts = host->alloc(host, host->ranks * sizeof(*counts));
	if (!counts)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int rc = host->allgather(host, &n, counts, sizeof(n), err);
	for (uint32_t r = 0; !rc && r < host->ranks; r++)
		most = counts[r] > most ? counts[r] : most;
	host->free(host, counts);
	if (rc)
		return rc;
	f->mine = host->alloc(host, most * sizeof(*f->mine));
	f->theirs = host->alloc(host, (size_t)host->ranks * most * sizeof(*f->theirs));
	struct fabric_there *mine = host->alloc(host, most * sizeof(*mine));
	if (!f->mine || !f->theirs || !mine)
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	else
		f->segments = most;
	for (uint32_t i = 1; !rc && i < n; i++) {
		if (!segments->at[i] || !segments->bytes[i])
			continue; /* never a place for an operation: its size stays 0 */
		f->mine[i] = (struct fabric_here){.at = segments->at[i], .bytes = segments->bytes[i]};
		int code = fabric_register(f, f->mine[i].at, f->mine[i].bytes, FABRIC_FIRST_KEY + i,
					   &f->mine[i].mr);
		if (code)
			rc = LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				       "%s: cannot register %llu KiB of memory: %s", f->is.name,
				       (unsigned long long)f->mine[i].bytes >> 10, fi_strerror(-code));
		else
			mine[i] = fabric_there(f, &f->mine[i]);
	}
	if (!rc)
		rc = host->allgather(host, mine, f->theirs, most * sizeof(*mine), err);
	host->free(host, mine);
	return rc;
}

void ofi_stop(struct fabric *of)
{
	struct ofi *f = ofi_of(of);
	if (f->ep)
		fi_close(&f->ep->fid);
	f->ep = NULL;
}

void ofi_close(struct fabric *of)
{
	struct ofi *f = ofi_of(of);
	const struct loom_host *host = of->host;
	ofi_stop(of);
	for (uint32_t i = 1; i < f->segments; i++)
		if (f->mine[i].mr)
			fi_close(&f->mine[i].mr->fid);
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
	if (!strcmp(f->is.name, "shm")) /* a rank that died is why this one ends, perhaps */
		fabric_sweep_shm();
	host->free(host, f->mine);
	host->free(host, f->theirs);
	host->free(host, f->scratch);
	host->free(host, f->scratch_there);
	host->free(host, f->peer);
	host->free(host, f);
}

/* ---- operations -------------------------------------------------------------------------------- */

/* EAGAIN of libfabric is ours; anything else is a failure of this operation. */
int fabric_verdict(ssize_t code, int *status)
{
	if (code == 0)
		return 0;
	if (code == -FI_EAGAIN)
		return LOOM_EAGAIN;
	*status = (int)-code;
	return LOOM_EIO;
}

static ssize_t put(struct ofi *f, const struct fabric_io *io, void *from, void *desc,
		   const struct fabric_there *to, void *context)
{
	uint64_t at = to->base + LOOM_REF_OFFSET(io->remote);
	if (f->ask_delivery) {
		struct iovec iov = {.iov_base = from, .iov_len = io->bytes};
		struct fi_rma_iov rma = {.addr = at, .len = io->bytes, .key = to->key};
		struct fi_msg_rma m = {.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = f->peer[io->target],
				       .rma_iov = &rma, .rma_iov_count = 1, .context = context, .data = io->notify};
		return fi_writemsg(f->ep, &m,
				   FI_COMPLETION | FI_DELIVERY_COMPLETE | (io->notify ? FI_REMOTE_CQ_DATA : 0));
	}
	if (io->notify)
		return fi_writedata(f->ep, from, io->bytes, desc, io->notify, f->peer[io->target], at,
				    to->key, context);
	return fi_write(f->ep, from, io->bytes, desc, f->peer[io->target], at, to->key, context);
}

static int start(struct fabric *of, const struct fabric_io *io, struct fabric_context *context, int *status)
{
	struct ofi *f = ofi_of(of);
	const struct fabric_here *here = &f->mine[LOOM_REF_SEGMENT(io->local)];
	const struct fabric_there *to =
		&f->theirs[io->target * f->segments + LOOM_REF_SEGMENT(io->remote)];
	void *local = (char *)here->at + LOOM_REF_OFFSET(io->local);
	void *desc = here->mr ? fi_mr_desc(here->mr) : NULL;
	fi_addr_t peer = f->peer[io->target];
	uint64_t at = to->base + LOOM_REF_OFFSET(io->remote);
	ssize_t code = -FI_EINVAL;
	switch (io->op) {
	case LOOM_NET_PUT:
		code = put(f, io, local, desc, to, context);
		break;
	case LOOM_NET_GET:
		code = fi_read(f->ep, local, io->bytes, desc, peer, at, to->key, context);
		break;
	case LOOM_NET_SEND:
		code = fi_tsend(f->ep, local, io->bytes, desc, peer, io->match, context);
		break;
	case LOOM_NET_RECV:
		code = fi_trecv(f->ep, local, io->bytes, desc, FI_ADDR_UNSPEC, io->match, 0, context);
		break;
	case LOOM_NET_ADD:
		if (f->adding)
			return LOOM_EAGAIN;
		code = io->fetch ? fi_fetch_atomic(f->ep, local, 1, desc, (char *)local + 8, desc, peer, at, to->key, FI_UINT64,
						   FI_SUM, context) :
				   fi_atomic(f->ep, local, io->bytes / fabric_type_bytes(io->type), desc, peer, at, to->key,
					     fabric_type(io->type), FI_SUM, context);
		if (!code && f->add_alone)
			f->adding = context;
		break;
	}
	return fabric_verdict(code, status);
}

static int notify_only(struct fabric *of, uint32_t target, uint32_t notify, struct fabric_context *context, int *status)
{
	struct ofi *f = ofi_of(of);
	const struct fabric_there *to = &f->scratch_there[target];
	return fabric_verdict(fi_writedata(f->ep, f->scratch, sizeof(uint64_t), fi_mr_desc(f->scratch_mr), notify,
				    f->peer[target], to->base + FABRIC_SCRATCH_SINK, to->key, context),
		       status);
}

static void cancel(struct fabric *f, struct fabric_context *context)
{
	(void)fi_cancel(&ofi_of(f)->ep->fid, context); /* its event says whether it came too late */
}

static int can_add(const struct fabric *of, uint32_t type, uint64_t bytes)
{
	const struct ofi *f = ofi_of(of);
	uint64_t size = fabric_type_bytes(type);
	return !size || bytes % size || !f->most_add[type] || bytes / size > f->most_add[type] ?
		       LOOM_ENOTSUP :
		       0;
}

/* ---- events ------------------------------------------------------------------------------------ */

static void ended(struct ofi *f, const struct fabric_context *context)
{
	if (context && context == f->adding)
		f->adding = NULL;
}

static void failed(struct ofi *f, struct fabric_event *e)
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
	struct ofi *f = ofi_of(of);
	struct fi_cq_data_entry entry[FABRIC_BATCH];
	ssize_t n = fi_cq_read(f->cq, entry, room < FABRIC_BATCH ? room : FABRIC_BATCH);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL) {
		failed(f, event);
		return 1;
	}
	if (n < 0)
		return LOOM_EIO;
	for (ssize_t i = 0; i < n; i++) {
		/* The sockets provider repeats the immediate data in the local completion too: only
		 * FI_REMOTE_WRITE tells the two apart. */
		int arrived = (entry[i].flags & (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)) ==
			      (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		event[i] = (struct fabric_event){.what = arrived ? FABRIC_ARRIVED : FABRIC_DONE,
						 .context = arrived ? NULL : entry[i].op_context,
						 .notify = arrived ? entry[i].data : 0};
		ended(f, event[i].context);
	}
	return (int)n;
}

static int may_sleep(struct fabric *of)
{
	struct ofi *f = ofi_of(of);
	struct fid *cq = &f->cq->fid;
	return fi_trywait(f->fabric, &cq, 1) == FI_SUCCESS;
}

const struct fabric_ops ofi_ops = {.stop = ofi_stop,
				   .close = ofi_close,
				   .share = share,
				   .check = check,
				   .can_add = can_add,
				   .start = start,
				   .notify = notify_only,
				   .cancel = cancel,
				   .poll = take_events,
				   .may_sleep = may_sleep};
