/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the other ranks of this host, mapped: what trigger_peer stores into. Through the files that their
 * processes hold open, or the keys of their GPUs' memory: no name is left behind by a rank that is killed. */
#ifndef TRIGGER_PEER_MAP_H
#define TRIGGER_PEER_MAP_H

#include <gpuloom/plugin.h>
#include <gpuloom/task.h>

#include "trigger_peer.dev.h"

struct peer_map;
/* Collective. `on_gpu`: workers are those of one GPU, device 0, and so must be those of all ranks. `head` is where this rank's block begins, and lies in one of the segments; `arrivals` of its words stand
 * at arrival_at in it. peer_windows() is [rank * (peer_segments() + 1) + segment], the last of a rank its arrival
 * words. */
int peer_map_open(const struct loom_host *host, const struct loom_segments *segments, int on_gpu, struct peer_head *head,
		  uint64_t arrival_at, uint32_t arrivals, struct peer_map **map, struct loom_error *err);
void peer_map_close(struct peer_map *m); /* NULL is legal */
const struct peer_window *peer_windows(const struct peer_map *m);
uint32_t peer_segments(const struct peer_map *m);

#endif
