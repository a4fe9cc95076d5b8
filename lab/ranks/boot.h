/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and connects the ranks of one job. Ranks of one host are forked by this command (run -n N). Their parent
 * process is the hub, which forwards messages and detects dead ranks. Ranks of several hosts are started by a launcher
 * with PMIx (mpirun, srun), which does the same for them. */
#ifndef LOOM_BOOT_H
#define LOOM_BOOT_H

#include <gpuloom/gpuloom.h>
#include <poll.h>

#include "base/base.h"

enum loom__boot_how { LOOM__BOOT_ALONE = 0, LOOM__BOOT_FORK, LOOM__BOOT_PMIX };

struct loom__boot {
	struct loom_ranks ranks; /* for struct loom_stack_params */
	enum loom__boot_how how;
	int fd;        /* the connection to the hub; -1: none */
	uint32_t turn; /* number of exchanges so far */
};

#define LOOM__BOOT_RANKS 1024u /* maximum number of ranks of one job */

/* Chooses the way to start from `wanted`, the value of -n (0: not given), and the environment. If a launcher has
 * started several processes that cannot be connected, returns an error that names the option which fixes it. */
struct loom__boot_plan {
	enum loom__boot_how how;
	uint32_t ranks; /* for LOOM__BOOT_FORK: the number of ranks; else 1 */
};
int loom__boot_plan(uint32_t wanted, struct loom__boot_plan *plan, struct loom_error *err);

/* Returns an error if a launcher has started several processes. Commands call this function if each process would do
 * the whole work. */
int loom__boot_alone(const char *command, struct loom_error *err);

/* Makes this process a rank, and returns 0. If ranks are forked, the parent serves them as the hub, and this function
 * returns LOOM__BOOT_PARENT in the parent when all ranks have ended, with the worst exit status in *status. `say` is
 * called for each rank that died. */
#define LOOM__BOOT_PARENT 1
typedef void loom__boot_say(void *arg, const char *text);
int loom__boot_begin(const struct loom__boot_plan *plan, loom__boot_say *say, void *arg, struct loom__boot *boot,
		     int *status, struct loom_error *err);
/* Ends this rank with `status`, and reports the end to the hub. `text` is the reason, which the hub prints, or NULL.
 * Returns -1 if the hub has ended, so that the caller must print the reason. */
int loom__boot_end(struct loom__boot *boot, int status, const char *text);

/* Ranks that are threads of this process, for devices with virtual time. The calling thread is rank 0;
 * loom__threads_begin() starts a thread for each other rank. Each of these threads calls run(), whose result is the
 * result of the rank. When a rank has ended, exchanges of the other ranks return LOOM_EDIED. */
struct loom__threads;
typedef int loom__rank_fn(void *arg, const struct loom_ranks *ranks, struct loom_error *err);
int loom__threads_begin(uint32_t ranks, loom__rank_fn *run, void *arg, struct loom__threads **threads,
			struct loom_error *err);
const struct loom_ranks *loom__threads_first(const struct loom__threads *t);
/* Ends rank 0 with `code`, which is 0 or the error in *err, and waits for the other ranks. Returns the first error of
 * any rank with its text in *err, or 0. LOOM_EDIED is returned only if no rank has another error. */
int loom__threads_end(struct loom__threads *t, int code, struct loom_error *err);

/* Returns the more informative of two exit statuses. */
int loom__boot_worse(int a, int b);

/* ---- shared by the files of this folder ------------------------------------------------------ */

/* Messages between a rank and the hub. A message is called a frame. It has a head, and a body whose size is in the
 * head. Both sides have the same byte order and type sizes. */
enum loom__frame_kind {
	LOOM__FRAME_GIVE = 1, /* the contribution of a rank to an exchange */
	LOOM__FRAME_ALL,      /* the contributions of all ranks */
	LOOM__FRAME_DONE,     /* the rank ends; body: the reason, as text */
	LOOM__FRAME_END       /* the exchange has failed; body: the reason, as text */
};

struct loom__frame_head {
	uint32_t kind;
	uint32_t value; /* GIVE: number of the exchange; DONE: exit status */
	uint64_t bytes; /* size of the body */
};

#define LOOM__GIVE_MOST (16u << 20) /* limit on the bytes that one rank contributes to an exchange */
#define LOOM__TEXT_MOST 999u        /* limit on the bytes of a text */

/* link.c: a connection between the hub and a rank. The hub never blocks on a connection; a rank does. */
struct loom__link {
	int fd;                       /* -1: none */
	struct loom__frame_head in;   /* head of the incoming frame */
	char *in_body;                /* its body, and a NUL: valid until the next call of loom__link_read() */
	uint64_t have;                /* bytes of the incoming frame so far, head included */
	struct loom__frame_head head; /* head of the outgoing frame */
	const char *body;             /* body of the outgoing frame: `text`, or memory of the caller */
	uint64_t out, sent;           /* bytes of the outgoing frame with its head (0: none), and bytes already sent */
	char text[LOOM__TEXT_MOST + 1];
};
/* Reads available bytes of one frame. Returns 1 when the frame is complete, else 0. If the connection has failed,
 * returns -1 with an errno: ECONNRESET if the peer closed it, EPROTO if the frame is neither GIVE nor DONE or exceeds
 * the limit of its kind, ENOMEM. */
int loom__link_read(struct loom__link *l);
/* Start to send one frame. They return like loom__link_flush(). `text` is copied. `body` must stay valid until all is
 * sent. */
int loom__link_tell(struct loom__link *l, uint32_t kind, const char *text);
int loom__link_give(struct loom__link *l, uint32_t kind, const void *body, uint64_t bytes);
/* Sends as much as possible without blocking. Returns 0 when all is sent, 1 when bytes are left, or -1 with an
 * errno. */
int loom__link_flush(struct loom__link *l);
void loom__link_close(struct loom__link *l);

/* Sends one frame, and blocks until all is sent. Returns 0, or -1 with an errno. */
int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes);

/* The state of a rank in the hub. */
struct loom__member {
	struct loom__link link;
	int pid;   /* -1: the process has been reaped */
	int ended; /* 1: the rank has sent DONE or has died */
	int died;
	int status;
	int given;        /* 1: the rank waits for the exchange in progress */
	const char *data; /* the rank's contribution to the exchange, of `bytes` bytes */
	uint64_t bytes;
	/* The error message of the rank. It is an array, because memory may be short when the message arrives. */
	char text[sizeof(((struct loom_error *)0)->text)];
};
/* Blocks or unblocks (SIG_BLOCK, SIG_UNBLOCK) the signals that end a job. They are blocked while the ranks are forked,
 * until loom__hub_run() has installed its handlers. If they were not blocked, a handler of the command could take a
 * signal, and no rank would receive it. */
void loom__hub_signals(int how);
/* Serves n ranks until all have ended, and returns the exit status of the job. `on` has room for n. */
int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, loom__boot_say *say, void *arg);

/* lost.c. The first function prints that the launcher has ended, once. The second also ends this process: by its signal
 * handlers or, after 3 s, by force. */
void loom__boot_say_lost(uint32_t rank);
void loom__boot_lost(uint32_t rank);

int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err);
void loom__pmix_end(struct loom__boot *boot, int status);

#endif
