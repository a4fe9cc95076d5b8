/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, laid out one after the other in memories of devices and of the host. The transports share this code, and
 * differ in where they place a segment. */
#ifndef GPULOOM_SEGMENTS_H
#define GPULOOM_SEGMENTS_H

#include <gpuloom/transport.h>

/* The option `atomics` of a transport, whose value loom_transport_ops.noncoherent() uses. */
enum { ATOMICS_AUTO, ATOMICS_NO };
static const char *const segments_atomics[] = {"auto", "no", NULL};
#define SEGMENTS_ATOMICS_ROW(S)                                                                                        \
	LOOM_OPT(S, atomics, LOOM_OPT_ENUM, "auto",                                                                    \
		 "Whether devices may change the same word. auto: yes, unless a link between a device and the CPUs " \
		 "of the stack has no atomic read-modify-writes, or the coherence probe finds that adds or swaps of " \
		 "two devices are lost. no: devices are non-coherent, and tasks move between them through mailboxes, " \
		 "whose words have one writer.",                                               \
		 .choices = segments_atomics)

struct segments_batch;

/* The first member of a transport's struct. */
struct segments {
	const struct loom_host *host;
	const char *label; /* name of the transport in messages */
	uint32_t atomics;
	/* Returns the number of the device in whose memory the segment is placed, or devices->count for host memory. It
	 * is not called for segments with LOOM_MEMORY_PRIVATE or LOOM_MEMORY_HOST. */
	uint32_t (*home)(const struct segments *s, const struct loom_devices *devices,
			 const struct loom_segment_want *want);
	struct segments_batch *batches; /* list with one entry per call of segments_make() */
};

/* Ops of a transport. Segments of different owners share no page. So there is no false sharing between owners, and the
 * pages of a device are on its NUMA node. */
int segments_make(void *self, const struct loom_devices *devices, const struct loom_segment_want *want, uint32_t n,
		  struct loom_segment *out, struct loom_error *err);
void segments_release(void *self, const struct loom_devices *devices, const struct loom_segment *segment, uint32_t n);
int segments_noncoherent(void *self, const struct loom_devices *devices);
void segments_destroy(void *self);

#endif
