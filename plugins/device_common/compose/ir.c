/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of task functions that come as IR, and a check that a device takes them. */
#include "compose.h"

#include <elf.h>
#include <gpuloom/workload.h>
#include <string.h>

enum compose_format compose_format(const struct loom_program_ir *ir)
{
	static const unsigned char lto[] = {0xed, 0x43, 0x4e, 0x7f};
	const unsigned char *at = ir->data;
	uint16_t type = 0;
	if (ir->bytes > sizeof(Elf64_Ehdr) && !memcmp(at, ELFMAG, SELFMAG))
		memcpy(&type, at + offsetof(Elf64_Ehdr, e_type), sizeof(type));
	if (type == ET_DYN)
		return COMPOSE_OBJECT;
	if (ir->bytes > sizeof(lto) && !memcmp(at, lto, sizeof(lto)))
		return COMPOSE_LTO;
	return !memchr(at, 0, ir->bytes) && strstr((const char *)at, ".version") ? COMPOSE_PTX : COMPOSE_OTHER;
}

static const char *format_text(enum compose_format format)
{
	return format == COMPOSE_PTX      ? "PTX"
	       : format == COMPOSE_LTO    ? "LTO-IR"
	       : format == COMPOSE_OBJECT ? "a shared object"
					  : "in an unknown format";
}

static const struct loom_program_ir *find(const struct loom_program *program, uint32_t tag, int formats)
{
	for (uint32_t i = 0; LOOM_HAS(program, ir) && i < program->irs; i++) {
		const struct loom_program_ir *ir = &program->ir[i];
		for (uint32_t k = 0; k < ir->tags; k++)
			if (ir->tag[k] == tag && compose_format(ir) & formats)
				return ir;
	}
	return NULL;
}

int compose_is_ir(const struct loom_program *program, uint32_t tag)
{
	return find(program, tag, ~0) != NULL;
}

int compose_check_ir(const struct loom_host *host, const char *label, const struct loom_program *program, int formats,
		     const char *wanted, struct loom_error *err)
{
	for (uint32_t tag = 0; tag < program->tasks; tag++) {
		const struct loom_program_ir *ir = find(program, tag, ~0);
		if (!ir || find(program, tag, formats))
			continue;
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "%s: %s: task function '%s' is %s: %s%s%s", label, ir->file,
				 program->task[tag].name, format_text(compose_format(ir)),
				 wanted ? "add " : "this device takes source only (loom_stack_source)",
				 wanted ? wanted : "", wanted ? " of it" : "");
	}
	return 0;
}
