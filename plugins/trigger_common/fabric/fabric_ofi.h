/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the libfabric back end share. */
#ifndef TRIGGER_FABRIC_INSIDE_H
#define TRIGGER_FABRIC_INSIDE_H

#include <gpuloom/trigger.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "fabric.h"

#define FABRIC_API FI_VERSION(1, 9)
#define FABRIC_BATCH 16u
#define FABRIC_TESTS 8u /* limit on operations in flight in a test */
#define FABRIC_ADDRESS 128u /* limit on the length of an endpoint's name in bytes */

/* Offsets in the scratch memory of a rank. Tests of a neighbour write there, and so do puts that only notify. */
#define FABRIC_TEST_BYTES 65536u
#define FABRIC_SCRATCH_FROM 0u
#define FABRIC_SCRATCH_TO FABRIC_TEST_BYTES
#define FABRIC_SCRATCH_SINK (2 * FABRIC_TEST_BYTES)
#define FABRIC_SCRATCH_BYTES (2 * FABRIC_TEST_BYTES + 4096u)

struct fabric_local { /* memory of this rank */
	void *at; /* address that the provider uses */
	uint64_t bytes;
	struct fid_mr *mr;
	int staged; /* 1: `at` is a copy of device memory on the host */
};
struct fabric_remote { /* address and key by which operations access memory of a rank */
	uint64_t base, key, bytes, staged;
};

struct fabric_ofi {
	struct fabric is; /* first member */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t *peer;      /* [ranks] */
	uint64_t most_add[2]; /* limit on the elements of one atomic, indexed by enum loom_net_type; 0: no atomics */
	int add_alone;        /* 1: only one atomic at a time may be in flight */
	int devices;	      /* as in struct fabric_want */
	int hmem;	      /* 1: the provider claims that it can access memory of GPUs */
	int ask_delivery;     /* 1: each put requests delivery, because the provider ignores the endpoint's flags */
	const struct fabric_context *adding; /* with add_alone: the atomic in flight, or NULL */
	uint32_t segments;
	struct fabric_local *local;   /* [segments] */
	struct fabric_remote *remote; /* [ranks][segments] */
	struct fabric_staging *staging; /* NULL: no memory of any rank is staged */
	int always_staged;		/* as `staged` in struct fabric_want */
	uint64_t piece;			/* as in struct fabric_want */
	/* Contexts for fabric_test(). They stay in place after the test, because an operation that timed out may end
	 * later. */
	struct fabric_context test[FABRIC_TESTS];
	uint64_t test_ns; /* limit on each part of the test */
	int tested;
	char *scratch;
	struct fid_mr *scratch_mr;
	struct fabric_remote *scratch_remote; /* [ranks] */
};

int fabric_ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		    struct loom_error *err);
void fabric_ofi_close(struct fabric *f);
extern const struct fabric_ops fabric_ofi_ops; /* defined in fabric_ofi.c */

static inline struct fabric_ofi *fabric_ofi(const struct fabric *f)
{
	return (struct fabric_ofi *)(uintptr_t)f;
}

/* Registers memory for every kind of operation. attr: the memory. The key cannot be guessed, unless the provider
 * chooses the keys itself. Returns 0 or libfabric's error. */
int fabric_register(struct fabric_ofi *f, struct fi_mr_attr *attr, struct fid_mr **mr);
int fabric_register_host(struct fabric_ofi *f, void *at, uint64_t bytes, struct fid_mr **mr);
struct fabric_remote fabric_remote(const struct fabric_ofi *f, const struct fabric_local *here);

/* fabric_shm.c: gives an endpoint of provider shm a unique name. Returns 0 or libfabric's error. */
int fabric_name_shm(struct fabric_ofi *f);
void fabric_forget_shm(const struct fabric_ofi *f); /* unlinks the name, so that a crash leaves nothing behind */
void fabric_sweep_shm(void); /* removes the shared memory of dead ranks */
int fabric_mapped_shm(const char *peer); /* returns 1 if this process has mapped the memory of this endpoint */

/* fabric_test.c: tests puts with notification to the next rank, and the atomics that the provider claims. With provider
 * shm, first tests puts to all other ranks. Collective over the ranks: the test fails on all ranks or on none. The
 * reason is in `why`, which has `size` bytes. */
int fabric_test(struct fabric_ofi *f, char *why, size_t size, struct loom_error *err);

/* Passes an operation to the provider. Returns 0 or libfabric's error. */
ssize_t fabric_issue(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context);

/* fabric_hmem.c: registers a segment of device memory with the provider. key: the key of that memory. Returns 1, or 0
 * if the segment must be staged. */
int fabric_hmem(struct fabric_ofi *f, const struct loom_segments *segments, uint32_t segment,
		const struct loom_memory_key *key, struct fabric_local *here);

/* Notifies a rank by a put of 8 bytes with immediate data. Returns 0 or libfabric's error. */
ssize_t fabric_issue_notify(struct fabric_ofi *f, uint32_t target, uint32_t notify, struct fabric_context *context);

/* fabric_staged.c, used if f->staging is not NULL. open: collective over the ranks, after the segments are known.
 * start: as in struct fabric_ops. context: converts the context that the caller has given for an operation into the
 * context that the provider gets. event: returns 1 if an event is for the caller; it may change the event. go_on:
 * continues operations whose copies have ended or for which there was no room, and returns events of operations that
 * have ended. busy: returns 1 if go_on() has work left. */
int fabric_staged_open(struct fabric_ofi *f, const struct loom_segments *segments, struct loom_error *err);
void fabric_staged_close(struct fabric_ofi *f);
int fabric_staged_start(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context, int *status);
struct fabric_context *fabric_staged_context(struct fabric_ofi *f, struct fabric_context *owner);
int fabric_staged_event(struct fabric_ofi *f, struct fabric_event *e);
int fabric_staged_go_on(struct fabric_ofi *f, struct fabric_event *event, uint32_t room);
int fabric_staged_busy(const struct fabric_ofi *f);

/* Converts a code of libfabric into 0, LOOM_EAGAIN, or LOOM_EIO with *status. */
int fabric_result(ssize_t code, int *status);

static inline enum fi_datatype fabric_type(uint32_t type)
{
	return type == LOOM_NET_F32 ? FI_FLOAT : FI_UINT64;
}

#endif
