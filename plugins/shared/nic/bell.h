/* SPDX-License-Identifier: Apache-2.0 */
/* What workers on CPUs call in the process of their NIC (bell.c). A host header: not part of device code for GPUs. */
#ifndef NIC_BELL_H
#define NIC_BELL_H

struct nic_bell;

/* The calling worker takes a step of the engine in place of the NIC's thread, which then needs no core. 0: the NIC is
 * in another process. */
int nic_help(const struct nic_bell *bell);

/* The worker takes no further steps: the NIC's thread sleeps no longer on its account. */
void nic_leave(struct nic_bell *bell);

/* What wakes the NIC's thread from poll(); -1: none. */
int nic_bell_fd(const struct nic_bell *bell);

#endif
