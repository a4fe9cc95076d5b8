/* SPDX-License-Identifier: Apache-2.0 */
/* Transports. They provide the memory that devices share (MGWS thesis, 4.7 and 5.3). */
#ifndef GPULOOM_TRANSPORT_H
#define GPULOOM_TRANSPORT_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The devices of the stack, after they were opened. */
struct loom_devices {
	size_t size;
	uint32_t count;
	uint32_t reserved;
	const struct loom_layout *layout;
	const struct loom_device_ops *const *ops; /* [count]; table of each device */
	void *const *self;                        /* [count]; instance of each device */
};

/* A segment that the core requests. */
struct loom_segment_want {
	uint64_t bytes; /* size in bytes, a multiple of 64 */
	int32_t owner;  /* index of the device whose workers own it; -1: the whole stack */
	/* LOOM_MEMORY_HOST: the host can access it while workers run. LOOM_MEMORY_PRIVATE: only workers of the owner
	 * use it, so it should be in the memory of that device. */
	uint32_t flags;
};

/* One thread of the core calls all ops. create, destroy, segments and release are mandatory. */
struct loom_transport_ops {
	size_t size;
	/* Make an instance from filled options, which are valid until destroy(), and free it. */
	int (*create)(const struct loom_host *host, const void *opts, void **self,
		      struct loom_error *err);
	void (*destroy)(void *self);
	/* Makes all requested segments, zeroed and aligned to 64 bytes, and maps them into every device. If devices are
	 * non-coherent, the segment of a device may be LOOM_MEMORY_PRIVATE. Several segments may share one memory. The
	 * core may call this several times; the first call is for the probe. */
	int (*segments)(void *self, const struct loom_devices *devices,
			const struct loom_segment_want *want, uint32_t n, struct loom_segment *out,
			struct loom_error *err);
	/* Unmaps and frees the segments of one call of segments(). */
	void (*release)(void *self, const struct loom_devices *devices, const struct loom_segment *segment,
			uint32_t n);
	/* The core calls this first. Returns 1 if the devices must be treated as non-coherent. The core also treats
	 * them so if a link to the CPUs has no atomic read-modify-writes, or if its probe loses additions. After such a
	 * probe, it calls segments() again. NULL: 0. */
	int (*noncoherent)(void *self, const struct loom_devices *devices);
};

#ifdef __cplusplus
}
#endif
#endif
