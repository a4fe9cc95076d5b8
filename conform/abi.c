/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1: the plug-in as a file and a descriptor, without an instance. */
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/probe.h"
#include "conform/footprint.h"
#include "conform/tests.h"

int loom__test_abi_load(struct loom__trial *t)
{
	struct loom_manifest manifest;
	struct loom_error err;
	if (loom__plugin_load(t->path, LOOM_KIND_NONE, &t->plugin, &err))
		return loom__fault(t, "%s", err.text);
	if (loom__manifest_read(t->path, &manifest, &err))
		return loom__fault(t, "it has no manifest, so gpuloom list must run its code: %s", err.text);
	if (strchr(t->plugin->summary, '\n') || strlen(t->plugin->summary) >= sizeof(manifest.summary))
		return loom__fault(t, "its summary is not one line of at most %zu characters",
				   sizeof(manifest.summary) - 1);
	return 0;
}

/* ---- the file's dynamic symbols ------------------------------------------------------------- */

struct file {
	char *at;
	size_t bytes;
	const Elf64_Shdr *section;
	unsigned sections;
};

static int read_file(struct loom__trial *t, struct file *f)
{
	struct loom_error err;
	if (loom__read_file(t->path, (size_t)1 << 30, &f->at, &f->bytes, &err))
		return loom__skip(t, "%s", err.text);
	const Elf64_Ehdr *head = (const void *)f->at;
	if (f->bytes < sizeof(*head) || head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shoff > f->bytes ||
	    head->e_shnum * sizeof(Elf64_Shdr) > f->bytes - head->e_shoff)
		return loom__skip(t, "the file has no table of sections");
	f->section = (const void *)(f->at + head->e_shoff);
	f->sections = head->e_shnum;
	return 0;
}

static const Elf64_Shdr *section(const struct file *f, unsigned type)
{
	for (unsigned i = 0; i < f->sections; i++)
		if (f->section[i].sh_type == type && f->section[i].sh_offset <= f->bytes &&
		    f->section[i].sh_size <= f->bytes - f->section[i].sh_offset && f->section[i].sh_link < f->sections)
			return &f->section[i];
	return NULL;
}

static const char *string(const struct file *f, const Elf64_Shdr *of, uint64_t at)
{
	const Elf64_Shdr *s = &f->section[of->sh_link];
	if (s->sh_offset > f->bytes || s->sh_size > f->bytes - s->sh_offset || at >= s->sh_size ||
	    !memchr(f->at + s->sh_offset + at, 0, s->sh_size - at))
		return "";
	return f->at + s->sh_offset + at;
}

/* True for names that linkers and instrumented builds add. */
static int is_foreign(const char *name)
{
	static const char *const own[] = {"_init", "_fini",       "_edata",
					  "_end",  "__bss_start", "loom_cpu_yield_hook" /* defined by LOOM_PERTURB */};
	for (size_t i = 0; i < LOOM__COUNT(own); i++)
		if (!strcmp(own[i], name))
			return 1;
	return !strncmp(name, "__asan", 6) || !strncmp(name, "__odr_asan", 10) || !strncmp(name, "__tsan", 6) ||
	       !strncmp(name, "__ubsan", 7) || !strncmp(name, "__gcov", 6);
}

int loom__test_abi_exports(struct loom__trial *t)
{
	struct file f = {0};
	int verdict = read_file(t, &f);
	const Elf64_Shdr *s = verdict ? NULL : section(&f, SHT_DYNSYM);
	for (size_t i = 0; s && !verdict && i < s->sh_size / sizeof(Elf64_Sym); i++) {
		const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(f.at + s->sh_offset) + i;
		const char *name = string(&f, s, symbol->st_name);
		if (symbol->st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && *name &&
		    strcmp(name, "loom_plugin_entry") && !is_foreign(name))
			verdict = loom__fault(t,
					      "it exports '%s' in addition to loom_plugin_entry; compile with "
					      "-fvisibility=hidden",
					      name);
	}
	free(f.at);
	return verdict;
}

int loom__test_abi_links(struct loom__trial *t)
{
	struct file f = {0};
	int verdict = read_file(t, &f);
	const Elf64_Shdr *s = verdict ? NULL : section(&f, SHT_DYNAMIC);
	for (size_t i = 0; s && !verdict && i < s->sh_size / sizeof(Elf64_Dyn); i++) {
		const Elf64_Dyn *d = (const Elf64_Dyn *)(const void *)(f.at + s->sh_offset) + i;
		const char *name = d->d_tag == DT_NEEDED ? string(&f, s, d->d_un.d_val) : "";
		if (strstr(name, "gpuloom"))
			verdict = loom__fault(t, "it is linked to %s; the host table is all that it needs", name);
	}
	free(f.at);
	return verdict;
}

/* ---- loading ------------------------------------------------------------------------------------ */

typedef const struct loom_plugin *entry_fn(void);

static entry_fn *find_entry(void *handle)
{
	return (entry_fn *)(uintptr_t)dlsym(handle, "loom_plugin_entry");
}

/* Loads the libraries that the plug-in is linked to, before the footprint is taken: the plug-in is not responsible for
 * their side effects, and the core restores signal handlers after loading. A library that only the plug-in's own search
 * path finds is loaded with the plug-in. */
static void load_libraries(struct loom__trial *t)
{
	struct file f = {0};
	const Elf64_Shdr *s = read_file(t, &f) ? NULL : section(&f, SHT_DYNAMIC);
	for (size_t i = 0; s && i < s->sh_size / sizeof(Elf64_Dyn); i++) {
		const Elf64_Dyn *d = (const Elf64_Dyn *)(const void *)(f.at + s->sh_offset) + i;
		if (d->d_tag == DT_NEEDED)
			dlopen(string(&f, s, d->d_un.d_val), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	free(f.at);
}

/* Loads the file itself, so that effects of constructors show as well. */
int loom__test_abi_entry_pure(struct loom__trial *t)
{
	struct loom__footprint before;
	struct loom__hush hush;
	char text[300];
	load_libraries(t); /* also makes the allocations that the dynamic linker makes once */
	if (loom__hush_begin(&hush))
		return loom__skip(t, "standard output cannot be redirected");
	loom__footprint_take(&before);
	void *handle = dlopen(t->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	entry_fn *entry = handle ? find_entry(handle) : NULL;
	const struct loom_plugin *p = entry ? entry() : NULL, *again = entry ? entry() : NULL;
	struct loom_plugin copy = p ? *p : (struct loom_plugin){0};
	const char *differs = loom__footprint_settles(&before, 0, text, sizeof(text));
	char printed[200];
	size_t noise = loom__hush_end(&hush, printed, sizeof(printed));
	if (!handle || !entry || !p)
		return loom__fault(t, "loading it gives no descriptor");
	if (noise)
		return loom__fault(t, "it prints when it is loaded or described: '%s'", printed);
	if (differs)
		return loom__fault(t, "loading and describing it has side effects: %s", differs);
	if (p != again || memcmp(&copy, again, sizeof(copy) < p->size ? sizeof(copy) : p->size))
		return loom__fault(t, "loom_plugin_entry() does not always return the same descriptor");
	return 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int check_row(struct loom__trial *t, const struct loom_opt *row)
{
	size_t n = strlen(row->help);
	for (const struct loom_opt *o = t->plugin->opts; o < row; o++)
		if (o->offset < row->offset + row->size && row->offset < o->offset + o->size)
			return loom__fault(t, "the options '%s' and '%s' share a field", o->name, row->name);
	if (row->offset % row->size)
		return loom__fault(t, "the field of option '%s' is not aligned", row->name);
	if (n < 5 || strchr(row->help, '\n'))
		return loom__fault(t, "the help of option '%s' is not a sentence on one line", row->name);
	for (size_t i = 0; row->type == LOOM_OPT_ENUM && row->choices[i]; i++)
		for (size_t j = 0; j < i; j++)
			if (loom__same(row->choices[i], row->choices[j]))
				return loom__fault(t, "option '%s' has the choice '%s' twice", row->name,
						   row->choices[i]);
	return 0;
}

int loom__test_abi_rows(struct loom__trial *t)
{
	int verdict = 0;
	for (const struct loom_opt *row = t->plugin->opts; row && row->name && !verdict; row++)
		verdict = check_row(t, row);
	return verdict;
}
