/* SPDX-License-Identifier: Apache-2.0 */
/* An external program as a workload. The host splits the command and stores it in the stack's block. Worker 0 starts
 * the program and waits for it, and the host reads its output. The block is shared memory, because with process
 * isolation worker 0 is in another process. */
#ifndef GPULOOM_EXEC_H
#define GPULOOM_EXEC_H

#include <gpuloom/workload.h>
#include <sched.h>

#define EXEC_ARGS 1000
#define EXEC_TEXT 32768
#define EXEC_CPUS 8192
#define EXEC_OUT 65536 /* number of bytes kept from the end of the program's output */
#define EXEC_ERR 1024

struct options {
	const char *command;
	const char *cores;
	const char *metrics;
	const char *expect;
	uint64_t timeout;
	uint32_t expect_exit;
	uint8_t shell;
};

struct instance {
	const struct loom_host *host;
	const struct options *options;
	struct request *request; /* copied into the block before each sample */
};

/* The program to start. It stays constant during a sample. */
struct request {
	uint64_t timeout_ns; /* longest time of one execution; 0: no limit */
	uint32_t args;
	char path[4096];
	char text[EXEC_TEXT]; /* `args` arguments, each with a NUL at its end */
	_Alignas(cpu_set_t) unsigned char cpus[EXEC_CPUS / 8];
};

/* The result of one sample. */
struct answer {
	uint32_t started, late;
	int32_t failed; /* errno of the first step that failed, which `step` names; 0: none failed */
	char step[32];
	int32_t status; /* status from child_wait() */
	uint64_t wall_ns, user_us, system_us, peak_bytes;
	uint64_t out_total, err_total;
	char out[EXEC_OUT], err[EXEC_ERR];
};

struct block {
	struct request request;
	struct answer answer;
};

/* command.c */
/* Both fill `r` from the options. command_split() sets arguments, folder and cores, for which the options are enough.
 * command_read() also searches the program, and reads the default cores. */
int command_split(const struct instance *x, struct request *r, struct loom_error *err);
int command_read(const struct instance *x, struct request *r, struct loom_error *err);

/* process.c: the device half. Worker 0 runs the program, other workers return. */
void exec_kernel(struct loom_ctx *c);

/* output.c. output_check() checks the syntax of the options `metrics` and `expect`. output_add() adds the metrics of
 * the last JSON line to the report, and compares them with `expect`. */
int output_check(const struct instance *x, struct loom_error *err);
int output_add(const struct instance *x, const struct answer *a, struct loom_report *report,
		struct loom_error *err);
/* Stores the last bytes of a stream in `out`, as a string of at most `room` bytes with its NUL. `bytes` is the ring
 * buffer of `size` bytes that process.c filled. `total` is the number of bytes of the whole stream. */
void tail_text(char *out, size_t room, const char *bytes, size_t size, uint64_t total);

#endif
