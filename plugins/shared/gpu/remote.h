/* SPDX-License-Identifier: Apache-2.0 */
/* isolation = process: the driver's calls are made by a process of the device's own, so that a kernel that hangs can
 * be ended with it, and GPUs of several processes (or vendors) share one stack. remote.c puts a table of calls in
 * front of the vendor's, each of which asks that process (serve.c) and waits for its answer. */
#ifndef GPULOOM_GPU_REMOTE_H
#define GPULOOM_GPU_REMOTE_H

#include <sys/types.h>

#include "gpu.h"

/* Before any call of the driver: starts the process and puts d->driver behind it. */
int remote_start(struct gpu *d, struct loom_error *err);
/* Ends the process at once, and with it what runs on the GPU: calls fail from now on. */
void remote_kill(struct gpu *d);
/* Its number, for messages. */
int remote_pid(const struct gpu *d);
/* Ends the process, if it has not ended, and takes d->driver back. */
void remote_end(struct gpu *d);

/* ---- between the two files ---- */

enum remote_op {
	REMOTE_OPEN,
	REMOTE_COUNT,
	REMOTE_FIND,
	REMOTE_ATOMICS,
	REMOTE_PEERS,
	REMOTE_ATTACH,
	REMOTE_DETACH,
	REMOTE_TEXT,
	REMOTE_COMPILE,
	/* From here on between enter() and leave(). */
	REMOTE_ALLOC,
	REMOTE_FREE,
	REMOTE_SHARE,
	REMOTE_IMPORT,
	REMOTE_UNSHARE,
	REMOTE_HOST_MAP,
	REMOTE_HOST_UNMAP,
	REMOTE_WRITE,
	REMOTE_READ,
	REMOTE_CLEAR,
	REMOTE_LOAD,
	REMOTE_UNLOAD,
	REMOTE_OCCUPANCY,
	REMOTE_LAUNCH,
	REMOTE_SET_WORD,
	REMOTE_AWAIT_WORD,
	REMOTE_RUNNING
};

/* What find() fills in. */
struct remote_facts {
	char arch[64], bus[32], model[96], defines[96];
	uint64_t memory;
	struct gpu_limits limits;
};

/* What compile() heeds besides the program, where the host knows more than that process. */
struct remote_shape {
	char arch[64];
	uint32_t bound, lanes, per_block, watch;
};

/* A question and its answer, each one packet; either may carry a file descriptor. */
struct remote_ask {
	enum remote_op op;
	int a, b;
	uint32_t blocks, threads, shared;
	uint64_t at, bytes, value; /* value: of a word, or the number of a step */
	struct resources resources;
	struct remote_shape shape;
	struct gpu_kernel kernel; /* its pointers are the other process's */
};
struct remote_answer {
	int rc, value;
	uint64_t at, bytes;
	struct resources resources;
	struct gpu_atomics atomics;
	struct gpu_kernel kernel;
	struct remote_facts facts;
	char version[32];
	char call[96];	/* that failed */
	char text[600]; /* of an error, or of a code */
};

/* 0, or -1 at the end of the connection. `fd` -1: none. */
int remote_send(int socket, const void *packet, size_t bytes, int fd);
int remote_receive(int socket, void *packet, size_t bytes, int *fd);

/* Bytes that both see: of copies, of machine code, and of a program to be compiled: `b` bytes of its text, and behind a
 * NUL for each of `a` files of IR a struct remote_ir, its name and its bytes with a NUL each, from 8 to 8 bytes. */
#define REMOTE_ROOM (64u << 20)
#define REMOTE_ALIGN(n) (((n) + 7) & ~(uint64_t)7)
struct remote_ir {
	uint64_t name, bytes;
};

/* The other process: answers until the connection ends, or the host's process does. */
void remote_serve(struct gpu *d, int socket, pid_t host, char *shared);

#endif
