/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the memory of the other ranks of this host, into which trigger_peer stores: through files that their processes
 * have open, or through keys of their GPUs' memory. A killed rank leaves no name behind. */
#ifndef TRIGGER_PEER_MAP_H
#define TRIGGER_PEER_MAP_H

#include <gpuloom/plugin.h>
#include <gpuloom/task.h>

#include "trigger_peer.dev.h"

struct peer_map;
/* A part of the block that other ranks store into. */
struct peer_part {
	uint64_t at, bytes; /* offset in the block, and size */
};
/* Collective. on_gpu: the workers of each rank belong to one GPU, device 0. head: start of this rank's block, in one of
 * the segments. peer_windows() returns [rank * PEER_WINDOWS(peer_segments()) + segment]; the last PEER_PARTS windows of a
 * rank are its parts. */
int peer_map_open(const struct loom_host *host, const struct loom_segments *segments, int on_gpu,
		  struct peer_head *head, const struct peer_part *parts, struct peer_map **map, struct loom_error *err);
void peer_map_close(struct peer_map *m); /* NULL is legal */
const struct peer_window *peer_windows(const struct peer_map *m);
uint32_t peer_segments(const struct peer_map *m);

#endif
