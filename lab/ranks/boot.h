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

#define LOOM__BOOT_RANKS 1024u /* processes of one job */

/* GPULOOM_ROOT: where rank 0 listens. */
struct loom__root {
	const char *text;
	char host[256], port[8];
};

/* What is to be done, from `-n` (0: not given) and the environment. A launcher that started several
 * processes and gives them no way to meet is refused, with the flag that mends it. */
struct loom__boot_plan {
	enum loom__boot_how how;
	uint32_t rank, ranks;
	struct loom__root root; /* LOOM__BOOT_ROOT ... */
	unsigned char token[16]; /* ... and what all ranks of the job know, and nobody else */
};
int loom__boot_plan(uint32_t wanted, struct loom__boot_plan *plan, struct loom_error *err);

/* For a command that several processes would each run as a whole: refused where a launcher started several. */
int loom__boot_alone(const char *command, struct loom_error *err);

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

/* root.c: HOST:PORT or [ADDRESS]:PORT. */
int loom__root_read(const char *text, struct loom__root *root, struct loom_error *err);

/* token.c: 32 hexadecimal digits, from GPULOOM_TOKEN or the file GPULOOM_TOKEN_FILE. */
int loom__token_read(unsigned char token[16], struct loom_error *err);
/* Takes as long wherever they differ. */
int loom__token_is(const unsigned char a[16], const unsigned char b[16]);

/* link.c: a connection. The hub's never blocks; a rank's does. */
struct loom__link {
	int fd; /* -1: none */
	struct loom__frame_reader in;
	struct loom__frame_head head; /* of what goes out ... */
	const char *body;	      /* ... and the rest: `text`, or the caller's */
	uint64_t out, sent;	      /* bytes of it, the head included */
	char text[LOOM__TEXT_MOST + 1];
};
/* Reads what is there of one frame. 1: it is whole; 0: not yet; -1: the connection is of no more use, errno says why: ECONNRESET
 * at its end, EPROTO after what is no message, ENOMEM. */
int loom__link_read(struct loom__link *l, struct loom__frame *frame);
/* Begins to send a frame. The text is copied; `body` must stay as it is until all is sent. One frame at a time. As
 * loom__link_flush(). */
int loom__link_tell(struct loom__link *l, uint32_t kind, const char *text);
int loom__link_give(struct loom__link *l, uint32_t kind, const void *body, uint64_t bytes);
/* Sends what can be sent: 0: all; 1: not all; -1 and errno. */
int loom__link_flush(struct loom__link *l);
int loom__link_is_busy(const struct loom__link *l); /* in the middle of a frame, in or out */
void loom__link_close(struct loom__link *l);

/* Blocking. 0, or -1 and errno: ECONNRESET at the end. */
int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes);
int loom__read_all(int fd, void *to, uint64_t bytes);

/* door.c: where ranks of other hosts come in. Who has connected has a moment to say which rank it is, and the job's token. */
#define LOOM__DOOR_LISTENERS 8u
#define LOOM__DOOR_STRANGERS 16u
#define LOOM__DOOR_FDS (LOOM__DOOR_LISTENERS + LOOM__DOOR_STRANGERS)
struct loom__door {
	const unsigned char *token;
	uint32_t ranks, listeners, refused;
	int listener[LOOM__DOOR_LISTENERS];
	struct loom__stranger {
		struct loom__link link;
		uint64_t since;
	} stranger[LOOM__DOOR_STRANGERS];
};
/* Rank `rank` has come: takes over fd and returns NULL, or says why not. */
typedef const char *loom__door_join(void *arg, uint32_t rank, int fd);
/* Before and after poll(). `now`: of a clock that stands still while this process does. */
void loom__door_wait(const struct loom__door *d, uint64_t now, struct pollfd on[LOOM__DOOR_FDS]);
void loom__door_serve(struct loom__door *d, const struct pollfd on[LOOM__DOOR_FDS], uint64_t now, loom__door_join *join, void *arg);
void loom__door_shut(struct loom__door *d);

/* A member of the job as the hub sees it. */
struct loom__member {
	struct loom__link link;
	int pid;    /* 0: on another host */
	int ended;  /* has said DONE, or has died */
	int died;
	int status;
	int given;  /* waits for the exchange in progress */
	uint64_t busy_since; /* in the middle of a frame */
	const char *data;    /* what it has given */
	uint64_t bytes;
	char text[sizeof(((struct loom_error *)0)->text)]; /* why, in words of its own; it may be for lack of memory */
};
#define LOOM__HUB_HEARS (LOOM__FRAME_BIT(LOOM__FRAME_GIVE) | LOOM__FRAME_BIT(LOOM__FRAME_DONE))
/* Serves n ranks until all have ended; gives the exit status. `door` (NULL: none) takes those of other hosts, and is shut when
 * all have come. `on`: room for n and LOOM__DOOR_FDS more. */
int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, struct loom__door *door, loom__boot_say *say,
		  void *arg);

/* tcp.c. At all addresses that the name has. 0 or a negative error. */
int loom__tcp_listen(const struct loom__root *root, struct loom__door *door, struct loom_error *err);
int loom__tcp_connect(const struct loom__boot_plan *plan, struct loom_error *err); /* fd or a negative error */
/* A peer that has lost its power or cable is noticed after LOOM__TCP_SECONDS. */
#define LOOM__TCP_SECONDS 20
void loom__tcp_keep(int fd);

int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err);
void loom__pmix_end(struct loom__boot *boot, int status);

#endif
