/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's reference devices for transports: memory only, with a record of mappings, and refusals on demand. */
#ifndef LOOM_VALIDATE_REFDEVICE_H
#define LOOM_VALIDATE_REFDEVICE_H

#include <gpuloom/transport.h>

#include "conform/trial.h"

enum { LOOM__REF_DEVICES = 4, LOOM__REF_MAPS = 256 };

struct loom__refmap {
	const struct loom_memory *memory;
	char *view; /* the device's address */
	uint64_t bytes;
	int owned;
};

struct loom__refdevice {
	struct loom__trial *t;
	uint32_t id;
	int blind; /* the host cannot access memory without LOOM_MEMORY_HOST */
	struct loom__refmap map[LOOM__REF_MAPS];
	uint32_t maps;
	uint32_t refuse_in; /* the call of mem_alloc or mem_map that fails, from 1; 0: none */
	uint32_t refused;
};

struct loom__refdevices {
	struct loom__refdevice device[LOOM__REF_DEVICES];
	const struct loom_device_ops *ops[LOOM__REF_DEVICES];
	void *self[LOOM__REF_DEVICES];
	struct loom_device_shape shape[LOOM__REF_DEVICES];
	struct loom_layout layout;
	struct loom_devices table;
};
/* `blind`: a set bit d hides the memory of device d from the host. */
void loom__refdevices_init(struct loom__refdevices *r, struct loom__trial *t, uint32_t n,
			   uint32_t blind);
/* Returns device d's address of a memory, or NULL when d has not mapped it. */
char *loom__refdevice_view(const struct loom__refdevices *r, uint32_t d,
			   const struct loom_memory *m);
uint32_t loom__refdevices_maps(const struct loom__refdevices *r);

#endif
