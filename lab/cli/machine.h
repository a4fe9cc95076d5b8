/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine and its system offer, found out by trying, in rows for gpuloom doctor. Vendors'
 * devices are not known here: their plug-ins report on them. */
#ifndef LOOM_MACHINE_H
#define LOOM_MACHINE_H

#include "inspect/probe.h"

void loom__processor_rows(loom__doctor_fn *row, void *arg); /* cores, NUMA, priorities, counters */
void loom__memory_rows(loom__doctor_fn *row, void *arg);    /* locking, huge pages, faults */
void loom__kernel_rows(loom__doctor_fn *row, void *arg);    /* descriptors, queues, pressure */
/* In a child: its libraries may hang or crash. Rows go to fd. */
void loom__fabric_answer(int fd);

/* The first line of a small file of /proc or /sys, without newline; 0, or -1 and "". */
int loom__machine_line(char *out, size_t room, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* 1 when this process has the capability of that number. */
int loom__machine_capable(unsigned capability);

#endif
