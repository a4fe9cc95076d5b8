/* SPDX-License-Identifier: Apache-2.0 */
/* Loads plug-ins. A fault that can be found without running code of the file is reported before dlopen(). */
#include <dlfcn.h>
#include <errno.h>
#include <gpuloom/gpuloom.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/identity.h"
#include "plugin/registry.h"

typedef const struct loom_plugin *entry_fn(void);

/* Size of the part that every descriptor must have: the fields up to `dev`. */
#define LEAST_SIZE (offsetof(struct loom_plugin, dev) + sizeof(((struct loom_plugin *)0)->dev))

static int check_kind(const char *path, const struct loom_manifest *m, enum loom_kind kind, struct loom_error *err)
{
	if (kind == LOOM_KIND_NONE || m->kind == kind)
		return 0;
	return LOOM__FAIL(err, LOOM_EINVAL, "%s: plug-in '%s' is a %s plug-in where a %s is needed; select it in "
			"section [%s] or choose another", loom__shown(path), m->name, loom__kind_section(m->kind),
			loom__kind_section(kind), loom__kind_section(m->kind));
}

/* Returns the error of a failed dlopen(). `number` is the errno after dlopen(), because the message of dlerror() does
 * not say that memory ran out. */
static int refuse_link(const char *path, int number, struct loom_error *err)
{
	const char *why = dlerror();
	if (number == ENOMEM)
		return LOOM__FAIL(err, LOOM_ENOMEM, "%s: out of memory while it was loaded", loom__shown(path));
	size_t n = strlen(path);
	if (!why)
		why = "no reason given";
	if (!strncmp(why, path, n) && !strncmp(why + n, ": ", 2))
		why += n + 2;
	const char *fix = strstr(why, "undefined symbol") ? "link it with -Wl,-z,defs and every library that it uses"
			  : strstr(why, "cannot open shared object")
			      ? "install that library or put its folder in LD_LIBRARY_PATH"
			      : "build it again for this machine";
	return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: the dynamic linker rejects it: %s; %s", loom__shown(path), why, fix);
}

/* Finds the entry function. The symbol must be in the file itself, because a library that the plug-in links to may
 * export the same symbol. */
static int find_entry(const char *path, void *handle, entry_fn **entry, struct loom_error *err)
{
	struct link_map *own = NULL, *from = NULL;
	Dl_info info;
	void *symbol = dlsym(handle, "loom_plugin_entry");
	if (!symbol)
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: it exports no loom_plugin_entry, so it is no gpuloom "
				"plug-in; declare one with LOOM_PLUGIN_DEFINE or take the file out of the plug-in "
				"folder", loom__shown(path));
	if (dlinfo(handle, RTLD_DI_LINKMAP, &own) || !dladdr1(symbol, &info, (void **)&from, RTLD_DL_LINKMAP) ||
	    own != from)
		return LOOM__FAIL(err, LOOM_EPLUGIN,
				  "%s: its loom_plugin_entry comes from another file, %s; declare the plug-in in the "
				  "file itself and do not link it to another plug-in",
				  loom__shown(path),
				  from && from->l_name[0] ? loom__shown(from->l_name) : "the executable");
	*entry = (entry_fn *)(uintptr_t)symbol;
	return 0;
}

/* Copies the descriptor, up to the size that its member `size` gives. The magic number and ABI are read first, because
 * they define the other fields. */
static int read_descriptor(const char *path, const struct loom_plugin *from, struct loom_plugin *to,
			   struct loom_error *err)
{
	const size_t head = offsetof(struct loom_plugin, size) + sizeof(to->size);
	memset(to, 0, sizeof(*to));
	if (!from)
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: its loom_plugin_entry returned NULL where a descriptor "
				"is needed; declare the plug-in with LOOM_PLUGIN_DEFINE", loom__shown(path));
	memcpy(to, from, head);
	if (to->magic == LOOM_PLUGIN_MAGIC)
		memcpy(to, from, to->size < sizeof(*to) ? to->size : sizeof(*to));
	return 0;
}

static int check_strings(const char *path, const struct loom_plugin *p, struct loom_error *err)
{
	const struct {
		const char *what, *text;
	} must[] = {{"version", p->version}, {"license", p->license}, {"summary", p->summary}};
	for (size_t i = 0; i < LOOM__COUNT(must); i++)
		if (!must[i].text || !must[i].text[0])
			return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: plug-in '%s' has no %s; give LOOM_PLUGIN_DEFINE one",
					  loom__shown(path), p->name, must[i].what);
	return 0;
}

/* `note` is the manifest, or NULL if the file has none. `p` is the result of the entry function. */
static int check_descriptor(const char *path, const struct loom_manifest *note, const struct loom_plugin *p,
			    enum loom_kind kind, struct loom_error *err)
{
	struct loom_plugin self;
	struct loom_manifest identity;
	const char *differs;
	int rc = read_descriptor(path, p, &self, err);
	if (rc)
		return rc;
	loom__identity_of(&self, &identity);
	self.name = identity.name; /* identity.name is cleaned, so messages can show it */
	/* If magic number or ABI differ, loom__identity_judge() reports that. */
	if (note && identity.magic == note->magic && identity.abi == note->abi &&
	    (differs = loom__identity_differs(note, &identity)))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: the manifest of '%s' and the descriptor that it returns "
				"differ in %s; declare the plug-in once, with LOOM_PLUGIN_DEFINE", loom__shown(path),
				note->name, differs);
	rc = loom__identity_judge(path, &identity, err);
	if (!rc && self.size < LEAST_SIZE)
		rc = LOOM__FAIL(err, LOOM_EABI, "%s: the descriptor of plug-in '%s' has %zu bytes, plug-in ABI %u "
				"needs %zu; rebuild it against gpuloom %s's headers", loom__shown(path),
				identity.name, self.size, LOOM_ABI, LEAST_SIZE, loom_version());
	rc = rc ? rc : check_kind(path, &identity, kind, err);
	rc = rc ? rc : check_strings(path, &self, err);
	rc = rc ? rc : loom__offer_check(path, &self, err);
	return rc;
}

/* Calls dlopen(), and restores the signal handlers afterwards. Driver libraries install handlers in their constructors.
 * For example, the handlers of InfiniPath print a backtrace at SIGINT and end the process. Stop requests are blocked
 * while such handlers are installed. */
static void *open_file(const char *path, int *number)
{
	struct sigaction before[NSIG] = {0}, now;
	sigset_t stops, mask;
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stops, &mask);
	for (int s = 1; s < NSIG; s++)
		sigaction(s, NULL, &before[s]);
	/* The handle is never closed, because device run times, thread-local storage and leak reports use it after the
	 * plug-in's end. */
	errno = 0;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	*number = errno; /* saved, because sigaction() fails for some signals and changes errno */
	for (int s = 1; s < NSIG; s++)
		if (!sigaction(s, NULL, &now) && now.sa_handler != before[s].sa_handler)
			sigaction(s, &before[s], NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return handle;
}

static int load(const char *path, enum loom_kind kind, const struct loom_plugin **out, struct loom_error *err)
{
	struct loom_manifest note;
	entry_fn *entry = NULL;
	int noted;
	int rc = loom__elf_read(path, &noted, &note, err);
	if (!rc && noted)
		rc = loom__identity_judge(path, &note, err);
	if (!rc && noted)
		rc = check_kind(path, &note, kind, err);
	if (rc)
		return rc;
	int number;
	void *handle = open_file(path, &number);
	rc = handle ? find_entry(path, handle, &entry, err) : refuse_link(path, number, err);
	if (rc)
		return rc;
	const struct loom_plugin *p = entry();
	rc = check_descriptor(path, noted ? &note : NULL, p, kind, err);
	if (!rc)
		*out = p;
	return rc;
}

int loom__plugin_load(const char *path, enum loom_kind kind, const struct loom_plugin **out, struct loom_error *err)
{
	char *real;
	int rc = loom__plugin_real(path, &real, err);
	rc = rc ? rc : loom__trusted(real, err);
	rc = rc ? rc : load(real, kind, out, err);
	free(real);
	return rc;
}
