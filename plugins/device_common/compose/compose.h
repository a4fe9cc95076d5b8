/* SPDX-License-Identifier: Apache-2.0 */
/* Composition makes one program text from the device code of the selected policies and the task functions. Every
 * LOOM_CALL in the program is a direct call. Plug-ins link to no library of gpuloom, so each GPU back end compiles
 * these files into itself. Composition needs no GPU and no compiler. */
#ifndef GPULOOM_COMPOSE_H
#define GPULOOM_COMPOSE_H

#include <gpuloom/device.h>

#include "lib/text.h"

/* What a back end knows about the language of its device. */
struct compose_layer {
	const char *name, *text; /* the device layer: its name in #include, such as "gpuloom/dev/cuda.h", and its text */
	const char *dialect; /* text of keywords, such as cuda.dev.h; "": none */
};

struct compose_target {
	const char *label;   /* name of the device in messages, such as "cuda:0" */
	const struct compose_layer *layer;
	const char *kernel;  /* text with the kernel, which follows the policies; NULL: that of kernel.dev.h */
	const char *defines; /* first lines of the program; NULL: none */
	uint32_t lanes;      /* threads per worker */
	uint32_t per_block;  /* workers per thread block */
	uint32_t blocks;     /* number of blocks that must fit on a multiprocessor */
	uint32_t watch;      /* number of threads in a monitor's wave; 0: a block cannot have such a wave */
	uint32_t launched;   /* 1: each step of the workload is a launch; 0: the kernel is persistent */
	uint32_t nesting;    /* limit on the levels of nested tasks, because each level takes stack of every thread */
};

/* Names in the program of the kernel, and of the launch record in constant memory. */
#define COMPOSE_KERNEL "loom_gpu_work"
#define COMPOSE_LAUNCH "loom_gpu"
/* The kernel of the program for collectives, which has no such record. */
#define COMPOSE_COLLECTIVE "loom_gpu_collective"

/* Returns 1 if a policy of the program needs a monitor's wave in each block. */
int compose_watches(const struct loom_program *program);
/* Composes the program for LOOM_ENTRY_WORK. Returns LOOM_ENOTSUP if a policy or a task function has no device code. */
int compose_work(const struct loom_host *host, const struct compose_target *target, const struct loom_program *program,
		 struct loom__text *out, struct loom_error *err);
enum compose_format {
	COMPOSE_PTX = 1,
	COMPOSE_LTO = 2,    /* LTO-IR of NVIDIA's compiler */
	COMPOSE_OBJECT = 4, /* a shared object for a CPU */
	COMPOSE_OTHER = 8
};
enum compose_format compose_format(const struct loom_program_ir *ir);
/* Returns 1 if the task function with this tag comes as IR. */
int compose_is_ir(const struct loom_program *program, uint32_t tag);
/* Returns LOOM_ENOTSUP if a task function comes as IR in none of `formats`, else 0. formats: bits of enum
 * compose_format. wanted: the formats in words; NULL: the device takes no IR. */
int compose_check_ir(const struct loom_host *host, const char *label, const struct loom_program *program, int formats,
		     const char *wanted, struct loom_error *err);

/* If a compiler's message is about an unselected kind, returns the section of that kind. Else returns NULL. */
const char *compose_lacks(const char *message);
/* Adds the sources of the embedding program, and defines the tags of their task functions. */
void compose_sources(const struct loom_program *program, struct loom__text *out);
/* Composes the program for LOOM_ENTRY_PROBE. */
int compose_probe(const struct loom_host *host, const struct compose_target *target, struct loom__text *out,
		  struct loom_error *err);

/* Composes the kernel for collectives (collective.dev.h), for any number of blocks of target->lanes threads. */
int compose_collective(const struct loom_host *host, const struct compose_target *target, struct loom__text *out,
		       struct loom_error *err);

/* Returns the *n headers of the program, without the device layer of compose_target. A header appears once under each name that an #include uses. */
struct compose_header {
	const char *name, *text;
};
const struct compose_header *compose_headers(size_t *n);

#endif
