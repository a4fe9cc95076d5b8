/* SPDX-License-Identifier: Apache-2.0 */
/* What the files share that reach libfabric. */
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
#define FABRIC_TESTS 8u /* operations under way at a time */
#define FABRIC_ADDRESS 128u /* longest endpoint name */

/* The scratch memory of a rank: what its neighbour's test writes, and where bare notifications go. */
#define FABRIC_TEST_BYTES 65536u
#define FABRIC_SCRATCH_FROM 0u
#define FABRIC_SCRATCH_TO FABRIC_TEST_BYTES
#define FABRIC_SCRATCH_SINK (2 * FABRIC_TEST_BYTES)
#define FABRIC_SCRATCH_BYTES (2 * FABRIC_TEST_BYTES + 4096u)

struct fabric_here { /* memory of this rank */
	void *at; /* what the provider is given */
	uint64_t bytes;
	struct fid_mr *mr;
	int staged; /* the host's copy of a device's memory */
};
struct fabric_there { /* memory of any rank, as operations name it */
	uint64_t base, key, bytes, staged;
};

struct ofi {
	struct fabric is; /* first */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t *peer;      /* [ranks] */
	uint64_t most_add[2]; /* elements of one atomic by enum loom_net_type; 0: cannot */
	int add_alone;        /* atomics must not be under way together */
	int devices;	      /* as in struct fabric_want */
	int hmem;	      /* the provider claims to reach memory of GPUs */
	int ask_delivery;     /* each put asks for it: what the endpoint was asked for is lost */
	const struct fabric_context *adding; /* the one that is */
	uint32_t segments;
	struct fabric_here *mine;    /* [segments] */
	struct fabric_there *theirs; /* [ranks][segments] */
	struct fabric_staging *staging; /* NULL: no rank's memory is staged */
	struct fabric_context test[FABRIC_TESTS]; /* of the operations of fabric_test(): one that was given up may end later */
	int tested;
	char *scratch;
	struct fid_mr *scratch_mr;
	struct fabric_there *scratch_there; /* [ranks] */
};

int ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric, struct loom_error *err);
void ofi_stop(struct fabric *f);
void ofi_close(struct fabric *f);
extern const struct fabric_ops ofi_ops; /* fabric_ofi.c */

static inline struct ofi *ofi_of(const struct fabric *f)
{
	return (struct ofi *)(uintptr_t)f;
}

/* Registers memory for all that operations do, with a key that nobody can guess (where providers do not choose their own).
 * `attr` says which memory. 0, or libfabric's error. */
int fabric_register(struct ofi *f, struct fi_mr_attr *attr, struct fid_mr **mr);
int fabric_register_host(struct ofi *f, void *at, uint64_t bytes, struct fid_mr **mr);
struct fabric_there fabric_there(const struct ofi *f, const struct fabric_here *here);

/* fabric_shm.c: a name of its own for an endpoint of the shm provider. 0, or libfabric's error. */
int fabric_name_shm(struct ofi *f);
void fabric_forget_shm(const struct ofi *f); /* its name: who is killed from now on leaves nothing */
void fabric_sweep_shm(void); /* takes away what dead ranks left */
int fabric_mapped_shm(const char *peer); /* whether the region of an endpoint with this name is mapped here */

/* fabric_test.c: puts to the neighbour and back, by shm to all others, with notification; atomics where claimed. Collective:
 * what is tested fails on all ranks or on none. `why` (of `size` bytes) says what did not work. */
int fabric_test(struct ofi *f, char *why, size_t size, struct loom_error *err);

/* Hands an operation to the provider: libfabric's code. */
ssize_t fabric_issue(struct ofi *f, const struct fabric_io *io, struct fabric_context *context);

/* fabric_hmem.c: a segment of a GPU's memory, which has that key, registered with the provider: 1, or 0, when it must be
 * staged. */
int fabric_hmem(struct ofi *f, const struct loom_segments *segments, uint32_t segment, const struct loom_memory_key *key,
		struct fabric_here *here);

/* fabric_staged.c. Collective, once the segments are known. The others where f->staging is there: as fabric_start(); the
 * context that the provider has of one that was given there; 1 when an event is for the caller, who is given it as it is now;
 * messages that found no room, and operations that failed meanwhile: so many events. */
int fabric_staged_open(struct ofi *f, const struct loom_segments *segments, struct loom_error *err);
void fabric_staged_close(struct ofi *f);
int fabric_staged_start(struct ofi *f, const struct fabric_io *io, struct fabric_context *context, int *status);
struct fabric_context *fabric_staged_context(struct ofi *f, struct fabric_context *owner);
int fabric_staged_event(struct ofi *f, struct fabric_event *e);
int fabric_staged_retry(struct ofi *f, struct fabric_event *event, uint32_t room);

/* What libfabric says, as fabric.h gives it: 0, LOOM_EAGAIN, or LOOM_EIO with *status. */
int fabric_verdict(ssize_t code, int *status);

static inline enum fi_datatype fabric_type(uint32_t type)
{
	return type == LOOM_NET_F32 ? FI_FLOAT : FI_UINT64;
}

#endif
