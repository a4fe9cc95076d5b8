/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the memory of the other ranks of this host, into which trigger_peer stores: through files that their processes
 * have open, or through keys of their GPUs' memory. A killed rank leaves no name behind. */
#ifndef TRIGGER_PEER_MAP_H
#define TRIGGER_PEER_MAP_H

#include <gpuloom/plugin.h>
#include <gpuloom/task.h>

#include "trigger_peer.dev.h"

struct peer_map;
/* Collective. on_gpu: the workers of each rank belong to one GPU, device 0. head: start of this rank's block, in one of
 * the segments; `arrivals` words are at arrival_at in it. peer_windows() returns [rank * (peer_segments() + 1) +
 * segment]; the last window of a rank is its arrival words. */
int peer_map_open(const struct loom_host *host, const struct loom_segments *segments, int on_gpu,
		  struct peer_head *head, uint64_t arrival_at, uint32_t arrivals, struct peer_map **map,
		  struct loom_error *err);
void peer_map_close(struct peer_map *m); /* NULL is legal */
const struct peer_window *peer_windows(const struct peer_map *m);
uint32_t peer_segments(const struct peer_map *m);

#endif
