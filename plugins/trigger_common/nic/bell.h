/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that workers on CPUs call, which find the NIC of their process (bell.c). GPUs do not compile this
 * header. */
#ifndef NIC_BELL_H
#define NIC_BELL_H

struct nic_bell;

/* The calling worker takes a step of the engine in place of the NIC's thread, which can then sleep. Returns 0 if the
 * NIC is in another process. */
int nic_help(const struct nic_bell *bell);

/* Tells the NIC's thread that the calling worker takes no more steps, so the thread must take them. */
void nic_leave(struct nic_bell *bell);

/* Returns the descriptor that wakes the NIC's thread from poll(), or -1. */
int nic_bell_fd(const struct nic_bell *bell);

#endif
