/* SPDX-License-Identifier: Apache-2.0 */
/* Task functions that come as shared objects, made with gpuloom/dev/ir.h. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <gpuloom/dev/ir.h>
#include <gpuloom/workload.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../device_common/compose/compose.h"
#include "device_cpu.h"
#include "lib/fd.h"

/* Checks the program headers, because the loader would crash on a truncated file. */
static int is_whole(const struct loom_program_ir *ir)
{
	Elf64_Ehdr head;
	memcpy(&head, ir->data, sizeof(head));
	if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phoff > ir->bytes ||
	    ir->bytes - head.e_phoff < (uint64_t)head.e_phnum * sizeof(Elf64_Phdr))
		return 0;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr part;
		memcpy(&part, (const char *)ir->data + head.e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_offset > ir->bytes || ir->bytes - part.p_offset < part.p_filesz)
			return 0;
	}
	return 1;
}

/* Loads a copy in memory, because each stack stores its own tags in the object. The descriptor of a loaded object stays
 * open. The loader identifies objects by path, so it would take another object with the same descriptor number for this
 * one. */
static void *open_object(const struct loom_program_ir *ir, char *why, size_t room)
{
	char path[64];
	void *so = NULL;
	int fd = loom_fd(memfd_create("gpuloom-ir", MFD_CLOEXEC));
	const char *at = ir->data;
	uint64_t left = ir->bytes;
	while (fd >= 0 && left) {
		ssize_t n = write(fd, at, left);
		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? n : 0;
		left -= n > 0 ? (uint64_t)n : 0;
	}
	snprintf(why, room, "%s", strerror(errno));
	if (fd >= 0 && !left) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		const char *said = so ? NULL : dlerror(), *colon = said ? strstr(said, ": ") : NULL;
		if (said)
			snprintf(why, room, "%s", colon ? colon + 2 : said);
	}
	if (fd >= 0 && !so)
		close(fd);
	return so;
}

static int load_one(struct device *d, const struct loom_program *program, const struct loom_program_ir *ir,
		    struct program *p, struct loom_error *err)
{
	char name[300] = "it is truncated";
	void *so = is_whole(ir) ? open_object(ir, name, sizeof(name)) : NULL;
	if (!so)
		return LOOM_FAIL(d->host, err, LOOM_EPLUGIN, "%s: %s: the object file cannot be loaded: %s", d->name, ir->file,
				 name);
	for (uint32_t i = 0; i < ir->tags; i++) {
		const char *task = program->task[ir->tag[i]].name;
		loom_task_fn *fn = NULL;
		snprintf(name, sizeof(name), LOOM_IR_PREFIX "task_%s", task);
		*(void **)&fn = dlsym(so, name);
		snprintf(name, sizeof(name), LOOM_IR_PREFIX "tag_%s", task);
		uint32_t *tag = dlsym(so, name);
		if (!fn || !tag)
			return LOOM_FAIL(d->host, err, LOOM_EPLUGIN,
					 "%s: %s: it has no task function '%s' for this version of gpuloom "
					 "(LOOM_IR_TASK)",
					 d->name, ir->file, task);
		*tag = ir->tag[i];
		p->task[ir->tag[i]] = fn;
	}
	return 0;
}

int object_load(struct device *d, const struct loom_program *program, struct program *p, struct loom_error *err)
{
	int rc = compose_check_ir(d->host, d->name, program, COMPOSE_OBJECT, "a shared object", err);
	for (uint32_t i = 0; LOOM_HAS(program, ir) && i < program->irs && !rc; i++)
		if (compose_format(&program->ir[i]) == COMPOSE_OBJECT)
			rc = load_one(d, program, &program->ir[i], p, err);
	return rc;
}
