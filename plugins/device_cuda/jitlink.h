/* SPDX-License-Identifier: Apache-2.0 */
/* nvJitLink links a composed program with task functions that were compiled elsewhere, and optimises both together
 * (LTO). The library is loaded when a program with IR is built. No GPU is needed. */
#ifndef GPULOOM_JITLINK_H
#define GPULOOM_JITLINK_H

#include "../device_common/compose/compose.h"
#include "../device_common/gpu/rtc.h"

enum jitlink_want { JITLINK_CUBIN, JITLINK_PTX };

/* Links a composed program with IR. At the call, program->code has the LTO-IR of the composed program. On return,
 * *program has the wanted code and the logs. After an error *program is freed, and LOOM_EPLUGIN names the file that
 * does not link. registers: limit on the registers of a thread in code that comes as PTX, because such code is not
 * optimised with the program. */
int jitlink_run(const struct loom_host *host, const char *label, const char *arch,
		const struct loom_program_ir *const *ir, uint32_t irs, uint32_t registers, enum jitlink_want want,
		struct compiled *program, struct loom_error *err);

#endif
