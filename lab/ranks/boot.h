/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks: starts and connects the processes of one job. There are three ways. This command forks them (run -n N). A
 * launcher with PMIx starts them (mpirun, srun). Or each is started with GPULOOM_RANK, GPULOOM_RANKS and
 * GPULOOM_ROOT=host:port. Without PMIx a hub, the parent of rank 0, forwards messages and detects dead ranks. */
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
	uint32_t local_rank, local_ranks; /* on this host; local_ranks 0: unknown */
};

#define LOOM__BOOT_RANKS 1024u /* maximum number of processes of one job */

/* GPULOOM_ROOT: the address on which rank 0 listens. */
struct loom__root {
	const char *text;
	char host[256], port[8];
};

/* Chooses the way to start from `-n` (0: not given) and the environment. Rejects a launcher that started several
 * processes without a way to connect them, and names the option that fixes it. */
struct loom__boot_plan {
	enum loom__boot_how how;
	uint32_t rank, ranks;
	struct loom__root root; /* for LOOM__BOOT_ROOT */
	unsigned char token[16]; /* the secret that all ranks of the job share */
};
int loom__boot_plan(uint32_t wanted, struct loom__boot_plan *plan, struct loom_error *err);

/* For commands that several processes would each run as a whole: rejects a launcher that started several. */
int loom__boot_alone(const char *command, struct loom_error *err);

/* Makes this process a rank, and returns 0. In the parent of forked ranks, returns LOOM__BOOT_PARENT when all have
 * ended, with the worst exit status in *status. Calls `say` for each rank that died. */
#define LOOM__BOOT_PARENT 1
typedef void loom__boot_say(void *arg, const char *text);
int loom__boot_begin(const struct loom__boot_plan *plan, loom__boot_say *say, void *arg,
		     struct loom__boot *boot, int *status, struct loom_error *err);
/* Reports the end of this rank with `status` to the others. `text`: the reason, which the hub prints, or NULL. */
void loom__boot_end(struct loom__boot *boot, int status, const char *text);

/* Ranks as threads of this process, for devices with virtual time. Starts all ranks but the first, which is the calling
 * thread. Each calls run() and ends with its result; exchanges of the others then return LOOM_EDIED. */
struct loom__threads;
typedef int loom__rank_fn(void *arg, const struct loom_ranks *ranks, struct loom_error *err);
int loom__threads_begin(uint32_t ranks, loom__rank_fn *run, void *arg, struct loom__threads **threads,
			struct loom_error *err);
const struct loom_ranks *loom__threads_first(const struct loom__threads *t);
/* Ends rank 0 with `code`, 0 or an error in *err, and waits for the other ranks. Returns the first error, in *err, that
 * is more than the end of another rank. */
int loom__threads_end(struct loom__threads *t, int code, struct loom_error *err);

/* Returns the more informative of two exit statuses. */
int loom__boot_worse(int a, int b);

/* ---- shared by the files of this folder ------------------------------------------------------ */

/* root.c: parses HOST:PORT or [ADDRESS]:PORT. */
int loom__root_read(const char *text, struct loom__root *root, struct loom_error *err);

/* token.c: reads 32 hexadecimal digits from GPULOOM_TOKEN or the file GPULOOM_TOKEN_FILE. */
int loom__token_read(unsigned char token[16], struct loom_error *err);
/* Compares two tokens in constant time. */
int loom__token_is(const unsigned char a[16], const unsigned char b[16]);

/* link.c: a connection. The hub never blocks on it; a rank does. */
struct loom__link {
	int fd; /* -1: none */
	struct loom__frame_reader in;
	struct loom__frame_head head; /* head of the outgoing frame */
	const char *body;	      /* the unsent part of the body: `text`, or the caller's memory */
	uint64_t out, sent;	      /* out: size of the frame with its head; sent: bytes sent */
	char text[LOOM__TEXT_MOST + 1];
};
/* Reads available bytes of one frame. Returns 1 when the frame is complete and 0 when not. Returns -1 with an errno
 * when the connection failed: ECONNRESET at the end, EPROTO after an invalid message, ENOMEM. */
int loom__link_read(struct loom__link *l, struct loom__frame *frame);
/* Starts to send one frame, and returns like loom__link_flush(). `text` is copied; `body` must stay until all is
 * sent. */
int loom__link_tell(struct loom__link *l, uint32_t kind, const char *text);
int loom__link_give(struct loom__link *l, uint32_t kind, const void *body, uint64_t bytes);
/* Sends as much as possible. Returns 0 when all is sent, 1 when not, or -1 with an errno. */
int loom__link_flush(struct loom__link *l);
int loom__link_is_busy(const struct loom__link *l); /* returns 1 in the middle of a frame, incoming or outgoing */
void loom__link_close(struct loom__link *l);

/* Blocks. Returns 0, or -1 with an errno; ECONNRESET: the connection has ended. */
int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes);

/* listener.c: accepts ranks of other hosts. A new one must send its rank and the job's token in time. */
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
/* To be called before and after poll(). `now` is from a clock that stops while this process is stopped. */
void loom__listener_prepare(const struct loom__listener *d, uint64_t now, struct pollfd on[LOOM__LISTENER_FDS]);
void loom__listener_serve(struct loom__listener *d, const struct pollfd on[LOOM__LISTENER_FDS], uint64_t now,
			  loom__listener_join *join, void *arg);
void loom__listener_close(struct loom__listener *d);

/* A rank as seen by the hub. */
struct loom__member {
	struct loom__link link;
	int pid;    /* 0: the rank is on another host */
	int ended;  /* the rank has sent DONE or has died */
	int died;
	int status;
	int given;  /* the rank waits for the exchange in progress */
	uint64_t busy_since; /* the time at which an incomplete frame began */
	const char *data;    /* the rank's contribution to the exchange */
	uint64_t bytes;
	/* The rank's own error message, in a buffer, because memory may be short. */
	char text[sizeof(((struct loom_error *)0)->text)];
};
#define LOOM__HUB_ACCEPTS (LOOM__FRAME_BIT(LOOM__FRAME_GIVE) | LOOM__FRAME_BIT(LOOM__FRAME_DONE))
/* Serves n ranks until all have ended, and returns the exit status. `listener` (may be NULL) accepts ranks of other
 * hosts, and is closed when all have joined. `on` has space for n + LOOM__LISTENER_FDS. */
int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, struct loom__listener *listener,
		  loom__boot_say *say, void *arg);

/* tcp.c: listens on all addresses of the name. Returns 0 or a negative error. */
int loom__tcp_listen(const struct loom__root *root, struct loom__listener *listener, struct loom_error *err);
/* returns a descriptor or a negative error */
int loom__tcp_connect(const struct loom__boot_plan *plan, struct loom_error *err);
/* The time in seconds until a lost peer (power, cable) is detected. */
#define LOOM__TCP_SECONDS 20
void loom__tcp_keep(int fd);

int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err);
void loom__pmix_end(struct loom__boot *boot, int status);

#endif
