/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the memory of the other ranks of this host, into which trigger_peer stores. Host memory is mapped through files
 * that the processes of these ranks have open, and memory of GPUs through keys. The files have no names, so a killed
 * rank leaves no file behind. */
#ifndef TRIGGER_PEER_MAP_H
#define TRIGGER_PEER_MAP_H

#include <gpuloom/plugin.h>
#include <gpuloom/task.h>

#include "trigger_peer.dev.h"

struct peer_map;
/* A part of this rank's block into which other ranks store. */
struct peer_part {
	uint64_t at, bytes; /* offset in the block, and size, in bytes */
};
/* Collective over the ranks. on_gpu: 1 if the workers of each rank belong to one GPU, device 0. head: start of this
 * rank's block, in one of the segments. parts: [PEER_PARTS].
 *
 * peer_windows() returns an array. In this array each rank has PEER_WINDOWS(peer_segments()) windows: one for each
 * segment, then one for each part. */
int peer_map_open(const struct loom_host *host, const struct loom_segments *segments, int on_gpu,
		  struct peer_head *head, const struct peer_part *parts, struct peer_map **map, struct loom_error *err);
void peer_map_close(struct peer_map *m); /* NULL is legal */
const struct peer_window *peer_windows(const struct peer_map *m);
uint32_t peer_segments(const struct peer_map *m);

#endif
