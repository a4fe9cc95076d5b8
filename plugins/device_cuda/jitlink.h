/* SPDX-License-Identifier: Apache-2.0 */
/* nvJitLink: links a composed program with task functions that were compiled elsewhere, and optimises across them
 * (LTO). Loaded when such a program is built; needs no GPU. */
#ifndef GPULOOM_JITLINK_H
#define GPULOOM_JITLINK_H

#include "../shared/compose/compose.h"
#include "../shared/gpu/rtc.h"

enum jitlink_want { JITLINK_CUBIN, JITLINK_PTX };

/* `registers` per thread are the most that the program can have: what comes as PTX is not optimised with it, and is
 * held to that. *program holds the composed program's LTO-IR in `code`; afterwards what was wanted, and the linker's log behind the
 * compiler's. On an error it is freed: LOOM_EPLUGIN names the file that does not link. */
int jitlink_run(const struct loom_host *host, const char *who, const char *arch,
		const struct loom_program_ir *const *ir, uint32_t irs, uint32_t registers, enum jitlink_want want,
		struct compiled *program, struct loom_error *err);

#endif
