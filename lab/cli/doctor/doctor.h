/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `gpuloom doctor` about the machine, found by trying. Device plug-ins report on devices. */
#ifndef LOOM_CLI_DOCTOR_H
#define LOOM_CLI_DOCTOR_H

#include "cli/base/options.h"
#include "inspect/probe.h"

void loom__processor_rows(loom__doctor_fn *row, void *arg); /* cores, NUMA, priorities, counters */
void loom__memory_rows(loom__doctor_fn *row, void *arg);    /* locking, huge pages, faults */
void loom__kernel_rows(loom__doctor_fn *row, void *arg);    /* descriptors, queues, pressure */
/* Writes the rows about network fabrics to fd. Runs in a child process, because libraries may hang or crash. */
void loom__fabric_answer(int fd);

/* Reads the first line of a file of /proc or /sys, without its newline. Returns 0, or -1 with "" in `out`. */
int loom__machine_line(char *out, size_t room, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Adds a row for a topic that depends on /proc or /sys, if `folder` is not mounted, and returns 1. */
int loom__machine_unmounted(loom__doctor_fn *row, void *arg, const char *topic, const char *folder);
/* Returns 1 if this process has the capability with this number. */
int loom__machine_capable(unsigned capability);

/* gpuloom doctor --profile: measures the memory costs of a device, and prints them as a conf for simulated devices. */
/* Measures the first of `devices`, a list as in [run] devices. The other devices are its peers. `plugin_path` (may be
 * NULL) and `set` are arguments of the command. Prints the conf on standard output. Returns an exit code. */
int loom__profile(const struct loom__cli *cli, const char *devices, const char *plugin_path,
		  const struct loom__settings *set);

#endif
