/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and connects the ranks of one job, in one of three ways. First, this command forks them (run -n N). Second, a
 * launcher with PMIx starts them (mpirun, srun). Third, each rank is started by hand with GPULOOM_RANK, GPULOOM_RANKS
 * and GPULOOM_ROOT=host:port. Without PMIx, the parent process of rank 0 is the hub, which forwards messages and
 * detects dead ranks. */
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
	int fd;         /* the connection to the hub; -1: none */
	uint32_t turn;  /* number of exchanges so far */
	/* number of the rank among the ranks of this host; number of ranks of this host (0: not known) */
	uint32_t local_rank, local_ranks;
};

#define LOOM__BOOT_RANKS 1024u /* maximum number of ranks of one job */

/* The value of GPULOOM_ROOT: the address on which rank 0 accepts connections. */
struct loom__root {
	const char *text;
	char host[256], port[8];
};

/* Chooses the way to start from `wanted`, the value of -n (0: not given), and the environment. If a launcher has
 * started several processes that cannot be connected, returns an error that names the option which fixes it. */
struct loom__boot_plan {
	enum loom__boot_how how;
	uint32_t rank, ranks;
	struct loom__root root; /* for LOOM__BOOT_ROOT */
	unsigned char token[16]; /* the secret that all ranks of the job share */
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
int loom__boot_begin(const struct loom__boot_plan *plan, loom__boot_say *say, void *arg,
		     struct loom__boot *boot, int *status, struct loom_error *err);
/* Ends this rank with `status`, and reports the end to the hub. `text` is the reason, which the hub prints, or NULL. */
void loom__boot_end(struct loom__boot *boot, int status, const char *text);

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

/* root.c: parses HOST:PORT or [ADDRESS]:PORT. */
int loom__root_read(const char *text, struct loom__root *root, struct loom_error *err);

/* token.c: reads 32 hexadecimal digits from GPULOOM_TOKEN or from the file GPULOOM_TOKEN_FILE. */
int loom__token_read(unsigned char token[16], struct loom_error *err);
/* Returns 1 if two tokens are equal. Takes the same time for all tokens, so that the time reveals nothing about
 * them. */
int loom__token_is(const unsigned char a[16], const unsigned char b[16]);

/* link.c: a connection between the hub and a rank. The hub never blocks on a connection; a rank does. */
struct loom__link {
	int fd; /* -1: none */
	struct loom__frame_reader in;
	struct loom__frame_head head; /* head of the outgoing frame */
	const char *body;	      /* body of the outgoing frame: `text`, or memory of the caller */
	uint64_t out, sent;	      /* bytes of the outgoing frame with its head (0: none), and bytes already sent */
	char text[LOOM__TEXT_MOST + 1];
};
/* Reads available bytes of one frame. Returns 1 when the frame is complete, else 0. If the connection has failed,
 * returns -1 with an errno: ECONNRESET if the peer closed it, EPROTO after an invalid message, ENOMEM. */
int loom__link_read(struct loom__link *l, struct loom__frame *frame);
/* Start to send one frame. They return like loom__link_flush(). `text` is copied. `body` must stay valid until all is
 * sent. */
int loom__link_tell(struct loom__link *l, uint32_t kind, const char *text);
int loom__link_give(struct loom__link *l, uint32_t kind, const void *body, uint64_t bytes);
/* Sends as much as possible without blocking. Returns 0 when all is sent, 1 when bytes are left, or -1 with an
 * errno. */
int loom__link_flush(struct loom__link *l);
int loom__link_is_busy(const struct loom__link *l); /* returns 1 in the middle of a frame, incoming or outgoing */
void loom__link_close(struct loom__link *l);

/* Sends one frame, and blocks until all is sent. Returns 0, or -1 with an errno. */
int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes);

/* listener.c: accepts connections of ranks on other hosts. A new connection must send its rank and the token of the job
 * within a time limit. */
#define LOOM__LISTENER_SOCKETS 8u
#define LOOM__LISTENER_PENDING 16u
#define LOOM__LISTENER_FDS (LOOM__LISTENER_SOCKETS + LOOM__LISTENER_PENDING)
struct loom__listener {
	const unsigned char *token;
	uint32_t ranks, listeners, refused;
	int listener[LOOM__LISTENER_SOCKETS];
	struct loom__pending {
		struct loom__link link;
		uint64_t since;
	} pending[LOOM__LISTENER_PENDING];
};
/* Called when `rank` has connected. Takes over fd and returns NULL, or returns the reason to reject the rank. */
typedef const char *loom__listener_join(void *arg, uint32_t rank, int fd);
/* The hub calls prepare() before poll() and serve() after it. `now` is in ns on a clock that stops while this process
 * is stopped. */
void loom__listener_prepare(const struct loom__listener *d, uint64_t now, struct pollfd on[LOOM__LISTENER_FDS]);
void loom__listener_serve(struct loom__listener *d, const struct pollfd on[LOOM__LISTENER_FDS], uint64_t now,
			  loom__listener_join *join, void *arg);
void loom__listener_close(struct loom__listener *d);

/* The state of a rank in the hub. */
struct loom__member {
	struct loom__link link;
	int pid;    /* 0: the rank is on another host; -1: the process has been reaped */
	int ended;  /* 1: the rank has sent DONE or has died */
	int died;
	int status;
	int given;  /* 1: the rank waits for the exchange in progress */
	uint64_t busy_since; /* time on the hub's clock at which the incomplete frame began */
	const char *data;    /* the rank's contribution to the exchange, of `bytes` bytes */
	uint64_t bytes;
	/* The error message of the rank. It is an array, because memory may be short when the message arrives. */
	char text[sizeof(((struct loom_error *)0)->text)];
};
#define LOOM__HUB_ACCEPTS (LOOM__FRAME_BIT(LOOM__FRAME_GIVE) | LOOM__FRAME_BIT(LOOM__FRAME_DONE))
/* Blocks or unblocks (SIG_BLOCK, SIG_UNBLOCK) the signals that end a job. They are blocked while the ranks are forked,
 * until loom__hub_run() has installed its handlers. If they were not blocked, a handler of the command could take a
 * signal, and no rank would receive it. */
void loom__hub_signals(int how);
/* Serves n ranks until all have ended, and returns the exit status of the job. `listener` accepts ranks of other hosts;
 * it may be NULL. The hub closes the listener when all ranks have joined. `on` has room for n + LOOM__LISTENER_FDS. */
int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, struct loom__listener *listener,
		  loom__boot_say *say, void *arg);

/* tcp.c: listens on all addresses that the host name has. Returns 0 or a negative error. */
int loom__tcp_listen(const struct loom__root *root, struct loom__listener *listener, struct loom_error *err);
/* Connects this rank to rank 0. Returns a descriptor or a negative error. */
int loom__tcp_connect(const struct loom__boot_plan *plan, struct loom_error *err);
/* The time in seconds after which a connection is closed because its peer does not answer (power failure, unplugged
 * cable). loom__tcp_keep() sets it. */
#define LOOM__TCP_SECONDS 20
void loom__tcp_keep(int fd);

int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err);
void loom__pmix_end(struct loom__boot *boot, int status);

#endif
