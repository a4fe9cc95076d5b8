/* SPDX-License-Identifier: Apache-2.0 */
/* Composition: one program text from the selected policies' device code and the task functions, in
 * which every LOOM_CALL is a direct call. Shared by the back ends for GPUs, which compile these files
 * into themselves because plug-ins link to nothing of gpuloom. Needs no GPU and no compiler. */
#ifndef GPULOOM_COMPOSE_H
#define GPULOOM_COMPOSE_H

#include <gpuloom/device.h>

#include "lib/text.h"


struct compose_target {
	const char *who;     /* for messages: "cuda:0" */
	const char *dialect; /* text of cuda.dev.h or hip.dev.h */
	const char *kernel;  /* text around the worker's loop; NULL: that of GPUs, kernel.dev.h */
	const char *defines; /* lines in front of all; NULL: none */
	uint32_t lanes;      /* threads per worker */
	uint32_t per_block;  /* workers per thread block */
	uint32_t blocks;     /* that must fit on a multiprocessor at once */
	uint32_t watch;      /* threads that a block can have besides its workers': a wave; 0: it cannot */
	uint32_t launched;   /* 1: each step of the workload is a launch; 0: the kernel is persistent */
	uint32_t nesting;    /* tasks run inside each other: each takes stack of every thread */
};

/* Names in the program: the kernel, which holds the worker's loop, and the launch record in constant memory. */
#define COMPOSE_KERNEL "loom_gpu_work"
#define COMPOSE_LAUNCH "loom_gpu"

extern const char *const compose_cuda; /* cuda.dev.h */
extern const char *const compose_hip;  /* hip.dev.h */

/* A policy of the program wants those threads. */
int compose_watches(const struct loom_program *program);
/* The program for LOOM_ENTRY_WORK. LOOM_ENOTSUP when a policy or a task has no device code. */
int compose_work(const struct loom_host *host, const struct compose_target *target,
		 const struct loom_program *program, struct loom__text *out, struct loom_error *err);
/* What the bytes of IR are. */
enum compose_format {
	COMPOSE_PTX = 1,
	COMPOSE_LTO = 2,    /* NVVM's */
	COMPOSE_OBJECT = 4, /* shared, for a CPU */
	COMPOSE_OTHER = 8
};
enum compose_format compose_format(const struct loom_program_ir *ir);
/* The task function stands in IR. */
int compose_is_ir(const struct loom_program *program, uint32_t tag);
/* Each task function that stands in IR does so in one of these formats, too: LOOM_ENOTSUP with what there is.
 * `wanted`: in words; NULL: the device takes none. */
int compose_check_ir(const struct loom_host *host, const char *who, const struct loom_program *program, int formats,
		     const char *wanted, struct loom_error *err);

/* The section of the kind that a compiler's message is about, if it is that the conf selects none of it; else NULL. */
const char *compose_lacks(const char *message);
/* The embedding program's sources, and the tags of their task functions. */
void compose_sources(const struct loom_program *program, struct loom__text *out);
/* The program for LOOM_ENTRY_PROBE. */
int compose_probe(const struct loom_host *host, const struct compose_target *target,
		  struct loom__text *out, struct loom_error *err);

/* The headers that the program includes, under each name that an #include uses. */
struct compose_header {
	const char *name, *text;
};
const struct compose_header *compose_headers(size_t *n);

#endif
