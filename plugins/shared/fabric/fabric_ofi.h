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
#define FABRIC_TESTS 8u /* limit on the operations of a test in flight */
#define FABRIC_ADDRESS 128u /* longest endpoint name */

/* The scratch memory of a rank: the target of its neighbour's tests, and of puts that only notify. */
#define FABRIC_TEST_BYTES 65536u
#define FABRIC_SCRATCH_FROM 0u
#define FABRIC_SCRATCH_TO FABRIC_TEST_BYTES
#define FABRIC_SCRATCH_SINK (2 * FABRIC_TEST_BYTES)
#define FABRIC_SCRATCH_BYTES (2 * FABRIC_TEST_BYTES + 4096u)

struct fabric_local { /* describes memory of this rank */
	void *at; /* the address for the provider */
	uint64_t bytes;
	struct fid_mr *mr;
	int staged; /* 1: `at` is the host's copy of device memory */
};
struct fabric_remote { /* describes memory of any rank for operations */
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
	uint64_t most_add[2]; /* limit on the elements of one atomic, by enum loom_net_type; 0: unsupported */
	int add_alone;        /* 1: only one atomic may be in flight */
	int devices;	      /* as in struct fabric_want */
	int hmem;	      /* 1: the provider claims to access memory of GPUs */
	int ask_delivery;     /* 1: each put requests delivery: the provider ignores endpoint flags */
	const struct fabric_context *adding; /* the atomic in flight */
	uint32_t segments;
	struct fabric_local *local;   /* [segments] */
	struct fabric_remote *remote; /* [ranks][segments] */
	struct fabric_staging *staging; /* NULL: no memory of any rank is staged */
	struct fabric_context test[FABRIC_TESTS]; /* used by fabric_test(): an operation that timed out may end later */
	int tested;
	char *scratch;
	struct fid_mr *scratch_mr;
	struct fabric_remote *scratch_remote; /* [ranks] */
};

int fabric_ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		    struct loom_error *err);
void fabric_ofi_stop(struct fabric *f);
void fabric_ofi_close(struct fabric *f);
extern const struct fabric_ops fabric_ofi_ops; /* defined in fabric_ofi.c */

static inline struct fabric_ofi *fabric_ofi(const struct fabric *f)
{
	return (struct fabric_ofi *)(uintptr_t)f;
}

/* Registers memory for every kind of operation, with a key that cannot be guessed (unless the provider chooses keys).
 * `attr` names the memory. Returns 0 or libfabric's error. */
int fabric_register(struct fabric_ofi *f, struct fi_mr_attr *attr, struct fid_mr **mr);
int fabric_register_host(struct fabric_ofi *f, void *at, uint64_t bytes, struct fid_mr **mr);
struct fabric_remote fabric_remote(const struct fabric_ofi *f, const struct fabric_local *here);

/* fabric_shm.c: sets a unique name for an endpoint of provider shm. Returns 0 or libfabric's error. */
int fabric_name_shm(struct fabric_ofi *f);
void fabric_forget_shm(const struct fabric_ofi *f); /* unlinks the name, so that a crash leaves nothing behind */
void fabric_sweep_shm(void); /* removes the regions of dead ranks */
int fabric_mapped_shm(const char *peer); /* returns whether this process has mapped the region of this endpoint */

/* fabric_test.c: tests puts with notification to the neighbour (with shm to all others), and claimed atomics.
 * Collective: it fails on all ranks or on none, with the reason in `why` (`size` bytes). */
int fabric_test(struct fabric_ofi *f, char *why, size_t size, struct loom_error *err);

/* Passes an operation to the provider. Returns libfabric's code. */
ssize_t fabric_issue(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context);

/* fabric_hmem.c: registers a segment of device memory, which has that key, with the provider. Returns 1, or 0 if the
 * segment must be staged. */
int fabric_hmem(struct fabric_ofi *f, const struct loom_segments *segments, uint32_t segment,
		const struct loom_memory_key *key, struct fabric_local *here);

/* fabric_staged.c, used if f->staging is not NULL. open: collective, after the segments are known. start: as in struct
 * fabric_ops. context: returns the provider's context for the caller's. event: returns 1 if the event, which it may
 * change, belongs to the caller. retry: sends messages that found no room, and returns events of failed operations. */
int fabric_staged_open(struct fabric_ofi *f, const struct loom_segments *segments, struct loom_error *err);
void fabric_staged_close(struct fabric_ofi *f);
int fabric_staged_start(struct fabric_ofi *f, const struct fabric_io *io, struct fabric_context *context, int *status);
struct fabric_context *fabric_staged_context(struct fabric_ofi *f, struct fabric_context *owner);
int fabric_staged_event(struct fabric_ofi *f, struct fabric_event *e);
int fabric_staged_retry(struct fabric_ofi *f, struct fabric_event *event, uint32_t room);

/* Converts libfabric's code. Returns 0, LOOM_EAGAIN, or LOOM_EIO with *status. */
int fabric_result(ssize_t code, int *status);

static inline enum fi_datatype fabric_type(uint32_t type)
{
	return type == LOOM_NET_F32 ? FI_FLOAT : FI_UINT64;
}

#endif
