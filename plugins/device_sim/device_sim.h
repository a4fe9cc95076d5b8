/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the simulated device share. */
#ifndef GPULOOM_DEVICE_SIM_H
#define GPULOOM_DEVICE_SIM_H

#include <gpuloom/device.h>

#include "simulation.h"

struct options {
	uint32_t workers;
	const char *schedule;
	uint32_t memory; /* 1: weak */
	uint64_t stack, stall, limit;
	uint32_t nesting;
	uint64_t launch_cost, teardown_cost;
#define OPTION_OF_COST(name, ns, text) uint64_t name;
	LOOM_SIM_COSTS(OPTION_OF_COST)
#undef OPTION_OF_COST
};

struct device {
	struct sim_member member;
	const struct loom_host *host;
	const struct options *options;
	char name[24]; /* name in messages: "sim:0" */
	struct simulation *simulation;
	void (*work)(struct loom_ctx *c); /* entry of the composed program; NULL: not built yet */
	uint32_t nudged;                  /* 1: device_wake() was called, by any thread */
	/* State of a launch. */
	uint32_t sample; /* value of simulation.completed when the sample in progress has ended */
	const struct loom_launch *what;
	char *view[LOOM_MAX_SEGMENTS];
	char *own; /* one page with the device's copy of the control words, then the workers' private blocks */
	uint64_t own_bytes;
};

/* program.c */
int device_build(void *self, const struct loom_program *program, struct loom_error *err);

/* memory.c */
int device_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err);
void device_mem_free(void *self, struct loom_memory *memory);
int device_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err);
void device_mem_unmap(void *self, const struct loom_memory *memory);

/* probe.c: the coherence probe, which runs as a sample of one worker. */
void probe_work(struct loom_ctx *c);

/* launch.c */
int device_launch(void *self, const struct loom_launch *what, struct loom_error *err);
int device_ready(void *self, uint64_t timeout_ns, struct loom_error *err);
int device_go(void *self, struct loom_error *err);
int device_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
void device_wake(void *self);
int device_repeat(void *self, char *text, size_t size);
int device_retire(void *self, uint64_t timeout_ns, struct loom_error *err);

#endif
