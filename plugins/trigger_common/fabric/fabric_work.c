/* SPDX-License-Identifier: Apache-2.0 */
/* The provider's deferred work queue (fi_trigger(3)). Without special hardware only provider sockets has such a queue.
 * In libfabric 1.17 only counters report completions, so this file uses counters. */
#include "fabric_ofi.h"

#include <rdma/fi_trigger.h>
#include <string.h>

struct deferred {
	struct fi_deferred_work work;
	union {
		struct fi_op_rma rma;
		struct fi_op_tagged tagged;
		struct fi_op_atomic atomic;
	} op;
	union {
		struct iovec bytes;
		struct fi_ioc elements;
	} here;
	union {
		struct fi_rma_iov bytes;
		struct fi_rma_ioc elements;
	} there;
	void *desc;
};
_Static_assert(sizeof(struct deferred) <= sizeof(struct fabric_work), "its place");

struct fabric_counter *fabric_counter_open(struct fabric *of)
{
	struct fabric_ofi *f = fabric_ofi(of);
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *c;
	return fi_cntr_open(f->domain, &attr, &c, NULL) ? NULL : (struct fabric_counter *)c;
}

void fabric_counter_close(struct fabric_counter *c)
{
	if (c)
		fi_close(&((struct fid_cntr *)c)->fid);
}

void fabric_counter_add(struct fabric_counter *c, uint64_t n)
{
	fi_cntr_add((struct fid_cntr *)c, n);
}

uint64_t fabric_counter_read(struct fabric_counter *c, uint64_t *failed)
{
	*failed = fi_cntr_readerr((struct fid_cntr *)c);
	return fi_cntr_read((struct fid_cntr *)c);
}

static void fill_rma(struct fabric_ofi *f, struct deferred *w, const struct fabric_io *io, void *local,
		     const struct fabric_remote *to)
{
	int put = io->op == LOOM_NET_PUT;
	w->here.bytes = (struct iovec){.iov_base = local, .iov_len = io->bytes};
	w->there.bytes = (struct fi_rma_iov){
		.addr = to->base + LOOM_REF_OFFSET(io->remote), .len = io->bytes, .key = to->key};
	w->op.rma = (struct fi_op_rma){.ep = f->ep,
				       .msg = {.msg_iov = &w->here.bytes,
					       .desc = &w->desc,
					       .iov_count = 1,
					       .addr = f->peer[io->target],
					       .rma_iov = &w->there.bytes,
					       .rma_iov_count = 1,
					       .context = &w->work.context,
					       .data = io->notify},
				       .flags = (put ? FI_DELIVERY_COMPLETE : 0) |
						(io->notify ? FI_REMOTE_CQ_DATA : 0)};
	w->work.op_type = put ? FI_OP_WRITE : FI_OP_READ;
	w->work.op.rma = &w->op.rma;
}

static void fill_tagged(struct fabric_ofi *f, struct deferred *w, const struct fabric_io *io, void *local)
{
	int send = io->op == LOOM_NET_SEND;
	w->here.bytes = (struct iovec){.iov_base = local, .iov_len = io->bytes};
	w->op.tagged = (struct fi_op_tagged){.ep = f->ep,
					     .msg = {.msg_iov = &w->here.bytes,
						     .desc = &w->desc,
						     .iov_count = 1,
						     .addr = send ? f->peer[io->target] : FI_ADDR_UNSPEC,
						     .tag = io->match,
						     .context = &w->work.context},
					     .flags = send ? FI_DELIVERY_COMPLETE : 0};
	w->work.op_type = send ? FI_OP_TSEND : FI_OP_TRECV;
	w->work.op.tagged = &w->op.tagged;
}

static void fill_add(struct fabric_ofi *f, struct deferred *w, const struct fabric_io *io, void *local,
		     const struct fabric_remote *to)
{
	uint64_t count = io->bytes / fabric_type_bytes(io->type);
	w->here.elements = (struct fi_ioc){.addr = local, .count = count};
	w->there.elements = (struct fi_rma_ioc){
		.addr = to->base + LOOM_REF_OFFSET(io->remote), .count = count, .key = to->key};
	w->op.atomic = (struct fi_op_atomic){.ep = f->ep,
					     .msg = {.msg_iov = &w->here.elements,
						     .desc = &w->desc,
						     .iov_count = 1,
						     .addr = f->peer[io->target],
						     .rma_iov = &w->there.elements,
						     .rma_iov_count = 1,
						     .datatype = fabric_type(io->type),
						     .op = FI_SUM,
						     .context = &w->work.context},
					     .flags = FI_DELIVERY_COMPLETE};
	w->work.op_type = FI_OP_ATOMIC;
	w->work.op.atomic = &w->op.atomic;
}

int fabric_defer(struct fabric *of, const struct fabric_io *io, uint64_t threshold,
		 struct fabric_counter *fired, struct fabric_counter *done, struct fabric_work *work,
		 int *status)
{
	struct fabric_ofi *f = fabric_ofi(of);
	struct deferred *w = (struct deferred *)work;
	const struct fabric_local *here = &f->local[LOOM_REF_SEGMENT(io->local)];
	const struct fabric_remote *to =
		&f->remote[io->target * f->segments + LOOM_REF_SEGMENT(io->remote)];
	void *local = (char *)here->at + LOOM_REF_OFFSET(io->local);
	memset(w, 0, sizeof(*w));
	w->work.threshold = threshold;
	w->work.triggering_cntr = (struct fid_cntr *)fired;
	w->work.completion_cntr = (struct fid_cntr *)done;
	w->desc = here->mr ? fi_mr_desc(here->mr) : NULL;
	if (io->op == LOOM_NET_PUT || io->op == LOOM_NET_GET)
		fill_rma(f, w, io, local, to);
	else if (io->op == LOOM_NET_ADD)
		fill_add(f, w, io, local, to);
	else
		fill_tagged(f, w, io, local);
	return fabric_result(fi_control(&f->domain->fid, FI_QUEUE_WORK, &w->work), status);
}
