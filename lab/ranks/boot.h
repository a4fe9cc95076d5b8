/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks: how the processes of one job come to be and find each other. Three ways: this command forks
 * them (run -n N); a launcher with PMIx started them (mpirun, srun); or GPULOOM_RANK, GPULOOM_RANKS and
 * GPULOOM_ROOT=host:port say it all. In the first and the last a hub, the parent of rank 0, passes the
 * messages on and watches who dies. */
#ifndef LOOM_BOOT_H
#define LOOM_BOOT_H

#include <gpuloom/gpuloom.h>
#include <poll.h>

#include "base/base.h"
#include "ranks/frame.h"

enum loom__boot_how { LOOM__BOOT_ALONE = 0, LOOM__BOOT_FORK, LOOM__BOOT_ROOT, LOOM__BOOT_PMIX };

struct loom__boot {
	struct loom_ranks ranks; /* for struct loom_stack_params */
	enum loom__boot_how how;
	int fd;         /* to the hub; -1: none */
	uint32_t turn;  /* exchanges so far */
	uint32_t local_rank, local_ranks; /* on this host, as far as known; local_ranks 0: not known */
};

/* What is to be done, from `-n` (0: not given) and the environment. A launcher that started several
 * processes and gives them no way to meet is refused, with the flag that mends it. */
struct loom__boot_plan {
	enum loom__boot_how how;
	uint32_t rank, ranks;
	const char *root; /* LOOM__BOOT_ROOT */
};
int loom__boot_plan(uint32_t wanted, struct loom__boot_plan *plan, struct loom_error *err);

/* Makes this process a rank: 0. In the parent of forked ranks: returns LOOM__BOOT_PARENT when all have
 * ended, with the exit status of the worst in *status. `say` gets a line for each rank that died. */
#define LOOM__BOOT_PARENT 1
typedef void loom__boot_say(void *arg, const char *text);
int loom__boot_begin(const struct loom__boot_plan *plan, loom__boot_say *say, void *arg,
		     struct loom__boot *boot, int *status, struct loom_error *err);
/* The rank has ended with `status`, which the others learn. `text`: why, for the hub to say; NULL: nothing,
 * or nothing of its own. */
void loom__boot_end(struct loom__boot *boot, int status, const char *text);

/* Ranks as threads of this process, for devices whose time is virtual. Starts all but the first, which is the calling
 * thread; each calls run() with its number and ends with what that gives. When one has ended, exchanges give the others
 * LOOM_EDIED. */
struct loom__threads;
typedef int loom__rank_fn(void *arg, const struct loom_ranks *ranks, struct loom_error *err);
int loom__threads_begin(uint32_t ranks, loom__rank_fn *run, void *arg, struct loom__threads **threads,
			struct loom_error *err);
const struct loom_ranks *loom__threads_first(const struct loom__threads *t);
/* Rank 0 has ended with `code`, 0 or an error in *err. Waits for the others; gives the first error that was not another
 * rank's end, in *err. */
int loom__threads_end(struct loom__threads *t, int code, struct loom_error *err);

/* Which of two exit statuses says more about what went wrong. */
int loom__boot_worse(int a, int b);

/* ---- between the files of this folder ----------------------------------------------------------- */

/* Frames between rank and hub: frame.h. */
int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes);
int loom__read_all(int fd, void *to, uint64_t bytes); /* 0, or -1 and errno: ECONNRESET at the end */

/* A member of the job as the hub sees it. */
struct loom__member {
	int fd;     /* -1: gone */
	int pid;    /* 0: on another host */
	int ended;  /* has said DONE, or has died */
	int died;
	int status;
	int given;  /* waits for the exchange in progress */
	char *data;
	uint64_t bytes;
	char text[sizeof(((struct loom_error *)0)->text)]; /* why, in words of its own; it may be for lack of memory */
};
/* Serves n ranks until all have ended; gives the exit status. `listener` (-1: none) takes those of other
 * hosts. `on`: room for one more than n. */
int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, int listener, loom__boot_say *say,
		  void *arg);

int loom__tcp_listen(const char *root, struct loom_error *err);  /* fd or a negative error */
int loom__tcp_connect(const char *root, uint32_t rank, struct loom_error *err);

int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err);
void loom__pmix_end(struct loom__boot *boot, int status);

#endif
