/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, laid one after the other into memories of devices and of the host: what the transports have in common.
 * They differ in the choice of a segment's home. */
#ifndef GPULOOM_SEGMENTS_H
#define GPULOOM_SEGMENTS_H

#include <gpuloom/transport.h>

/* For loom_transport_ops.noncoherent, as an option of a transport. */
enum { ATOMICS_AUTO, ATOMICS_NO };
static const char *const segments_atomics[] = {"auto", "no", NULL};
#define SEGMENTS_ATOMICS_ROW(S)                                                                            \
	LOOM_OPT(S, atomics, LOOM_OPT_ENUM, "auto", \
			 "Whether devices may change the same word. auto: yes, unless a link between a device and " \
			 "the CPUs of the stack has no atomic read-modify-writes, or the coherence probe finds that " \
			 "additions or swaps of two devices get lost. no: devices are non-coherent: tasks go between " \
			 "them through mailboxes, whose words have one writer.", .choices = segments_atomics)

struct segments_batch;

/* First member of a transport's own. */
struct segments {
	const struct loom_host *host;
	const char *who; /* for messages */
	uint32_t atomics;
	int node, huge; /* of host memory, as in struct hostmem_want */
	/* Whose memory the segment lies in: the device's number, or devices->count for the host's. Segments with
	 * LOOM_MEMORY_PRIVATE and LOOM_MEMORY_HOST are not asked about. */
	uint32_t (*home)(const struct segments *s, const struct loom_devices *devices,
			 const struct loom_segment_want *want);
	struct segments_batch *batches; /* what each call of segments_make() made */
};

/* Transport ops. Segments of different owners share no page: no false sharing, and a device's pages lie on its node
 * whoever comes before it. */
int segments_make(void *self, const struct loom_devices *devices, const struct loom_segment_want *want, uint32_t n,
		  struct loom_segment *out, struct loom_error *err);
void segments_release(void *self, const struct loom_devices *devices, const struct loom_segment *segment,
		      uint32_t n);
int segments_noncoherent(void *self, const struct loom_devices *devices);
void segments_destroy(void *self);

#endif
