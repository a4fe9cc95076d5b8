/* SPDX-License-Identifier: Apache-2.0 */
/* Puts segments one after the other into a memory that is yet to be made; for both transports. */
#ifndef GPULOOM_LAYOUT_H
#define GPULOOM_LAYOUT_H

#include <gpuloom/transport.h>

struct layout {
	uint64_t bytes; /* so far */
	int32_t owner;  /* of the last segment */
};

/* Segments of different owners share no page: no false sharing, and a device's pages lie on its
 * node whoever comes before it. */
void layout_add(struct layout *layout, const struct loom_segment_want *want,
		const struct loom_memory *memory, struct loom_segment *out);

/* For loom_transport_ops.apart, as an option of a transport. */
enum { LAYOUT_AUTO, LAYOUT_NO };
static const char *const layout_atomics[] = {"auto", "no", NULL};
#define LAYOUT_ATOMICS_ROW(S)                                                                              \
	LOOM_OPT(S, atomics, LOOM_OPT_ENUM, "auto",                                                        \
		 "Whether devices may change the same word. auto: yes, unless a link between a device "    \
		 "and the CPUs of the stack has no atomic read-modify-writes, or the coherence probe "     \
		 "finds that additions of two devices get lost. no: they are kept apart in any case: "     \
		 "tasks go from device to device by mail, in words that one side writes and the other "    \
		 "reads.",                                                                                 \
		 .choices = layout_atomics)

#endif
