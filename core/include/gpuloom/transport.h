/* SPDX-License-Identifier: Apache-2.0 */
/* Transports: the memory that devices share (MGWS thesis, 4.7 and 5.3). */
#ifndef GPULOOM_TRANSPORT_H
#define GPULOOM_TRANSPORT_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The opened devices of the stack, as a transport uses them. */
struct loom_devices {
	size_t size;
	uint32_t count;
	uint32_t reserved;
	const struct loom_layout *layout;
	const struct loom_device_ops *const *ops; /* [count] */
	void *const *self;                        /* [count] */
};

/* One segment that the core wants. */
struct loom_segment_want {
	uint64_t bytes; /* a multiple of 64 */
	int32_t owner;  /* the device whose workers own it; -1: the stack as a whole */
	/* LOOM_MEMORY_HOST: the host reads and writes it while workers run. LOOM_MEMORY_PRIVATE: only the owner's workers
	 * use it, so it should be in that device's own memory. */
	uint32_t flags;
};

/* All ops are called by one thread of the core. Mandatory: create, destroy, segments, release. */
struct loom_transport_ops {
	size_t size;
	int (*create)(const struct loom_host *host, const void *opts, void **self,
		      struct loom_error *err);
	void (*destroy)(void *self);
	/* Makes all wanted segments, zeroed, 64-byte aligned, and maps them into every device; where devices are non-coherent, those
	 * with an owner may be LOOM_MEMORY_PRIVATE. Several may share one memory. May be called again (first the probe). */
	int (*segments)(void *self, const struct loom_devices *devices,
			const struct loom_segment_want *want, uint32_t n, struct loom_segment *out,
			struct loom_error *err);
	/* Unmaps and frees what one call of segments() gave. */
	void (*release)(void *self, const struct loom_devices *devices, const struct loom_segment *segment,
			uint32_t n);
	/* Called first. 1: treat these devices as non-coherent (loom_layout.noncoherent) in any case. The core also does so
	 * where a device's link to the CPUs has no atomic read-modify-writes, and where additions get lost in its
	 * probe; then it calls segments() again. NULL: 0. */
	int (*noncoherent)(void *self, const struct loom_devices *devices);
};

#ifdef __cplusplus
}
#endif
#endif
