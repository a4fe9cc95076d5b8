/* SPDX-License-Identifier: Apache-2.0 */
/* The largest number of segments that a rank of the job has. */
#ifndef LOOM_SHARED_SEGMENT_COUNT_H
#define LOOM_SHARED_SEGMENT_COUNT_H

#include <gpuloom/device.h>
#include <gpuloom/task.h>

/* Collective over the ranks. own: number of segments of this rank. Sets *most to the largest number of any rank.
 * Returns 0 or an error. */
static inline int segment_count_most(const struct loom_host *host, uint32_t own, uint32_t *most, struct loom_error *err)
{
	uint32_t *counts = host->alloc(host, host->ranks * sizeof(*counts));
	int rc = counts ? host->allgather(host, &own, counts, sizeof(own), err) :
			  LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	*most = own;
	for (uint32_t r = 0; !rc && r < host->ranks; r++) {
		if (counts[r] > LOOM_MAX_SEGMENTS)
			rc = LOOM_FAIL(host, err, LOOM_EINVAL, "rank %u has %u segments, more than the "
				"limit", r, counts[r]);
		*most = counts[r] > *most ? counts[r] : *most;
	}
	host->free(host, counts);
	return rc;
}

#endif
