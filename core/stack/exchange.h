/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges between ranks, over the allgather() of the program. A call that all ranks make, such as loom_stack_run(),
 * consists of exchanges. If a rank fails between two of them, it takes part in the next one, but sends its error
 * instead of its data. So the call ends on all ranks, with the reason. */
#ifndef LOOM_EXCHANGE_H
#define LOOM_EXCHANGE_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

struct loom__exchange {
	const struct loom_ranks *ranks; /* NULL: there is only this rank */
	struct loom__frame *frame;      /* [ranks + 1]; the last one is what this rank sends */
	uint32_t call;                  /* number of calls that have begun */
	int open;                       /* 1: a call is in progress, and the other ranks expect an exchange */
	int failed;                     /* the error of an exchange of this call, with its text in `why`; 0: none */
	struct loom_error why;
};

/* Checks `ranks`, which may be NULL. Returns LOOM_EINVAL with the reason, or LOOM_ENOMEM. `ranks` must stay valid until
 * loom__exchange_destroy(). */
int loom__exchange_create(struct loom__exchange *x, const struct loom_ranks *ranks, struct loom_error *err);
void loom__exchange_destroy(struct loom__exchange *x);
/* The first function begins a call. The second ends it: if the result `rc` of this rank is an error that the other
 * ranks do not know, it sends them the error. Returns rc. `err` must not be NULL. */
void loom__exchange_begin(struct loom__exchange *x);
int loom__exchange_end(struct loom__exchange *x, int rc, struct loom_error *err);
/* Notes that the other ranks expect no further exchange of this call, or cannot take part in one. */
void loom__exchange_close(struct loom__exchange *x);
/* Works as allgather() of struct loom_host. Returns the error of another rank, or LOOM_EINVAL if ranks are in different
 * exchanges. After an error, later exchanges of the call return it, too. */
int loom__exchange(struct loom__exchange *x, const void *mine, void *all, size_t bytes, struct loom_error *err);

#endif
