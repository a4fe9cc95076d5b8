/* SPDX-License-Identifier: Apache-2.0 */
/* Registration of memory, and single operations. */
#include "fabric_ofi.h"
#include "fabric_key.h"

#define TRIES 8 /* number of keys to try, because a short key may collide with another key */

int fabric_register(struct fabric_ofi *f, struct fi_mr_attr *attr, struct fid_mr **mr)
{
	int code = -FI_ENOKEY;
	attr->access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	for (int i = 0; i < TRIES && code == -FI_ENOKEY; i++) {
		if (fabric_key(f->info->domain_attr->mr_key_size, &attr->requested_key))
			return -FI_EOTHER;
		code = fi_mr_regattr(f->domain, attr, 0, mr);
	}
	return code;
}

int fabric_register_host(struct fabric_ofi *f, void *at, uint64_t bytes, struct fid_mr **mr)
{
	struct iovec memory = {.iov_base = at, .iov_len = bytes};
	struct fi_mr_attr attr = {.mr_iov = &memory, .iov_count = 1};
	return fabric_register(f, &attr, mr);
}

struct fabric_remote fabric_remote(const struct fabric_ofi *f, const struct fabric_local *here)
{
	int virtual = (f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
	return (struct fabric_remote){.base = virtual ? (uint64_t)(uintptr_t)here->at : 0,
				     .key = fi_mr_key(here->mr),
				     .bytes = here->bytes,
				     .staged = here->staged != 0};
}

/* Converts a code of libfabric. EAGAIN becomes LOOM_EAGAIN. Any other error is a failure of this operation. */
int fabric_result(ssize_t code, int *status)
{
	if (code == 0)
		return 0;
	if (code == -FI_EAGAIN)
		return LOOM_EAGAIN;
	*status = (int)-code;
	return LOOM_EIO;
}

static ssize_t put(struct fabric_ofi *f, const struct fabric_io *io, void *from, void *desc,
		   const struct fabric_remote *to, void *context)
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

ssize_t fabric_issue_notify(struct fabric_ofi *f, uint32_t target, uint32_t notify, struct fabric_context *context)
{
	const struct fabric_remote *to = &f->scratch_remote[target];
	return fi_writedata(f->ep, f->scratch, sizeof(uint64_t), fi_mr_desc(f->scratch_mr), notify, f->peer[target],
			    to->base + FABRIC_SCRATCH_SINK, to->key, context);
}

ssize_t fabric_issue(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context)
{
	const struct fabric_local *here = &f->local[LOOM_REF_SEGMENT(io->local)];
	const struct fabric_remote *to =
		&f->remote[io->target * f->segments + LOOM_REF_SEGMENT(io->remote)];
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
			return -FI_EAGAIN;
		code = io->fetch ? fi_fetch_atomic(f->ep, local, 1, desc, (char *)local + 8, desc, peer, at, to->key,
						   FI_UINT64, FI_SUM, context)
				 : fi_atomic(f->ep, local, io->bytes / fabric_type_bytes(io->type), desc, peer, at,
					     to->key, fabric_type(io->type), FI_SUM, context);
		if (!code && f->add_alone)
			f->adding = context;
		break;
	}
	return code;
}
