/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time that control groups leave to this process. */
#ifndef GPULOOM_CPU_LIMITS_H
#define GPULOOM_CPU_LIMITS_H

/* In CPUs, as in 1.5; 0: no limit, or none that can be read. */
double limits_cpus(void);

#endif
