/* SPDX-License-Identifier: Apache-2.0 */
/* sync_wic on a GPU, which has no faults for us: its workers are parked as wave.dev.h has it. The Monitors of CPUs take what
 * they publish. Device code. */
#define SYNC_OP(op) sync_wic_##op
