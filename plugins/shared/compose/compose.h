/* SPDX-License-Identifier: Apache-2.0 */
/* Composition makes one program text of the device code of the selected policies and of the task functions. Every
 * LOOM_CALL in it is a direct call. GPU back ends compile these files into themselves, because plug-ins link to no
 * library of gpuloom. Composition needs no GPU and no compiler. */
#ifndef GPULOOM_COMPOSE_H
#define GPULOOM_COMPOSE_H

#include <gpuloom/device.h>

#include "lib/text.h"

struct compose_target {
	const char *label;   /* name in messages: "cuda:0" */
	const char *dialect; /* text of cuda.dev.h or hip.dev.h */
	const char *kernel;  /* text after the policies, with the entry; NULL: kernel.dev.h */
	const char *defines; /* first lines of the program; NULL: none */
	uint32_t lanes;      /* threads per worker */
	uint32_t per_block;  /* workers per thread block */
	uint32_t blocks;     /* blocks that must fit on a multiprocessor */
	uint32_t watch;      /* threads of a monitor's wave that a block can have; 0: none */
	uint32_t launched;   /* 1: each step of the workload is a launch; 0: the kernel is persistent */
	uint32_t nesting;    /* limit on the levels of nested tasks; a level takes stack of every thread */
};

/* Names in the program: the kernel, and the launch record in constant memory. */
#define COMPOSE_KERNEL "loom_gpu_work"
#define COMPOSE_LAUNCH "loom_gpu"

extern const char *const compose_cuda; /* the text of cuda.dev.h */
extern const char *const compose_hip;  /* the text of hip.dev.h */

/* Returns 1 if a policy of the program needs a monitor's wave. */
int compose_watches(const struct loom_program *program);
/* Makes the program for LOOM_ENTRY_WORK. Returns LOOM_ENOTSUP if a policy or a task has no device code. */
int compose_work(const struct loom_host *host, const struct compose_target *target, const struct loom_program *program,
		 struct loom__text *out, struct loom_error *err);
enum compose_format {
	COMPOSE_PTX = 1,
	COMPOSE_LTO = 2,    /* LTO-IR of NVVM */
	COMPOSE_OBJECT = 4, /* a shared object for a CPU */
	COMPOSE_OTHER = 8
};
enum compose_format compose_format(const struct loom_program_ir *ir);
/* Returns 1 if the task function comes as IR. */
int compose_is_ir(const struct loom_program *program, uint32_t tag);
/* Returns LOOM_ENOTSUP unless each task function that comes as IR has one of these formats. wanted: the formats in
 * words; NULL: the device takes no IR. */
int compose_check_ir(const struct loom_host *host, const char *label, const struct loom_program *program, int formats,
		     const char *wanted, struct loom_error *err);

/* If a compiler's message is about an unselected kind, returns the section of that kind, else NULL. */
const char *compose_lacks(const char *message);
/* Adds the sources of the embedding program, and the tags of their task functions. */
void compose_sources(const struct loom_program *program, struct loom__text *out);
/* Makes the program for LOOM_ENTRY_PROBE. */
int compose_probe(const struct loom_host *host, const struct compose_target *target, struct loom__text *out,
		  struct loom_error *err);

/* Returns the headers of the program, each under every name that an #include uses. */
struct compose_header {
	const char *name, *text;
};
const struct compose_header *compose_headers(size_t *n);

#endif
