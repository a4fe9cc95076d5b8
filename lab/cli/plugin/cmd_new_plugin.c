/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom new-plugin KIND NAME: writes a folder with a plug-in that builds and passes `gpuloom validate`. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/conf/named.h"
#include "cli/base/options.h"
#include "cli/plugin/templates.h"
#include "plugin/registry.h"
#include "facts/must.h"
#include "facts/write.h"

struct new_plugin {
	enum loom_kind kind;
	const char *shorts; /* name without the kind: "mine" */
	char name[64];      /* name with the kind: "term_mine" */
	char macro[64];     /* `name` in capitals: "TERM_MINE" */
	char folder[4200];
	const char *gpuloom;     /* path of this executable */
	char *include, *plugins; /* gpuloom's folders of headers and of plug-ins; NULL: not found */
};

struct request {
	struct loom__words word;
	const char *dir;
};

static const struct loom__option options[] = {
    {"dir", "DIR", "folder to create, instead of ./KIND_NAME", LOOM__AT(struct request, dir, STR)}, {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__new_plugin_usage = {
    .command = "new-plugin",
    .synopsis = "KIND NAME [--dir DIR]",
    .about =
	"Writes a folder with a small working plug-in: source, Makefile, conf, test and README. `make && make check`\n"
	"in this folder builds and tests it.\n\n"
	"KIND is device, transport, sched, term, sync, barrier, trigger, qos or workload, or the name\n"
	"of its section in a conf. NAME consists of a-z, 0-9 and _.\n",
    .options = options,
    .examples = "new-plugin term mine\tmakes ./term_mine/\n"
		"new-plugin workload jobs --dir src\tmakes ./src/\n",
    .page = "docs/plugins.md",
    LOOM__REQUEST(struct request, word, run)};

/* Parses the command line. Returns an exit code. */
static int take(const struct loom__cli *cli, const struct request *r, struct new_plugin *n)
{
	if (r->word.n != 2) {
		loom__say_error(cli, "new-plugin: expected a kind and a name, as in: gpuloom new-plugin term mine");
		return LOOM_EXIT_USAGE;
	}
	n->kind = loom__take_kind(cli, "new-plugin", r->word.at[0]);
	n->shorts = r->word.at[1];
	if (!n->kind)
		return LOOM_EXIT_USAGE;
	const char *prefix = loom__kind_name(n->kind);
	size_t length = strlen(prefix);
	if (!strncmp(n->shorts, prefix, length) && n->shorts[length] == '_')
		n->shorts += length + 1; /* "term_mine" is also accepted */
	length = strlen(n->shorts);
	if (!length || length > 30 || n->shorts[strspn(n->shorts, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		return loom__refuse(cli, LOOM_EXIT_USAGE, "new-plugin: the name '%s' is not 1 to 30 of a-z, 0-9 and _",
				    n->shorts);
	snprintf(n->name, sizeof(n->name), "%s_%s", prefix, n->shorts);
	for (size_t i = 0; i <= strlen(n->name); i++)
		n->macro[i] = (char)toupper((unsigned char)n->name[i]);
	snprintf(n->folder, sizeof(n->folder), "%s", r->dir ? r->dir : n->name);
	return 0;
}

/* Finds the headers and plug-ins of this executable, which is in a build folder or installed. */
static void look_around(struct new_plugin *n)
{
	static const char *const headers[] = {"include", "../include"};
	static const char *const plugins[] = {"plugins", "../lib/gpuloom/plugins"};
	for (size_t i = 0; i < LOOM__COUNT(headers) && !n->include; i++) {
		struct loom__text include = {0}, folder = {0};
		loom__beside(&include, n->gpuloom, headers[i]);
		loom__beside(&folder, n->gpuloom, plugins[i]);
		char *found = include.at ? realpath(include.at, NULL) : NULL;
		loom__text_add(&include, "/gpuloom/plugin.h");
		if (found && include.at && !access(include.at, R_OK)) {
			n->include = found;
			found = NULL;
			n->plugins = folder.at ? realpath(folder.at, NULL) : NULL;
		}
		free(found);
		loom__text_free(&include);
		loom__text_free(&folder);
	}
}

/* ---- filling in ----------------------------------------------------------------------------- */

static void conf(const struct new_plugin *n, struct loom__text *out)
{
	const char *section = loom__kind_section(n->kind);
	if (n->kind == LOOM_WORKLOAD)
		loom__text_add(out, "[run]\nworkload = ./%s.so", n->name);
	else if (n->kind == LOOM_DEVICE)
		loom__text_add(out, "[run]\ndevices = ./%s.so:0", n->name);
	else
		loom__text_add(
		    out, "%s[%s]\nuse = %s./%s.so",
		    n->kind == LOOM_QOS
			? "; The first policy of a pipeline serves the requests; the others take part in decisions.\n"
			: "",
		    section, n->kind == LOOM_QOS ? "monolithic " : "", n->name);
	loom__text_add(out, "\n\n; Its options, with their defaults: gpuloom describe ./%s.so\n[%s.%s]", n->name,
		       section, n->shorts);
}

static void use(const struct new_plugin *n, struct loom__text *out)
{
	if (n->kind == LOOM_WORKLOAD)
		loom__text_add(out, "workload = %s", n->shorts);
	else if (n->kind == LOOM_DEVICE)
		loom__text_add(out, "devices = %s:0", n->shorts);
	else
		loom__text_add(out, "use = %s%s", n->kind == LOOM_QOS ? "monolithic " : "", n->shorts);
}

static void files(const struct new_plugin *n, const struct loom__template *t, struct loom__text *out)
{
	if (t->dev)
		loom__text_add(out,
			       "`%s.dev.h` is the device code, for CPUs and GPUs; `%s.c` is the "
			       "host code.\n",
			       n->name, n->name);
	else
		loom__text_add(out, "`%s.c` is the whole plug-in.\n", n->name);
}

/* Appends a path, escaped for $(wildcard) of make. */
static void make_path(const char *path, struct loom__text *out)
{
	for (; path && *path; path++)
		loom__text_add(out, "%s%c", *path == ' ' ? "\\" : "", *path);
}

static void put_word(const struct new_plugin *n, const struct loom__template *t, const char *word, size_t length,
		     struct loom__text *out)
{
#define IS(text) (length == sizeof(text) - 1 && !strncmp(word, text, length))
	if (IS("NAME"))
		loom__text_add(out, "%s", n->name);
	else if (IS("SHORT"))
		loom__text_add(out, "%s", n->shorts);
	else if (IS("MACRO"))
		loom__text_add(out, "%s", n->macro);
	else if (IS("KIND"))
		loom__text_add(out, "%s", loom__kind_name(n->kind));
	else if (IS("TSAN"))
		loom__text_add(out, "%s", t->dev ? "$(shell $(CC) -print-file-name=libtsan.so)" : "");
	else if (IS("SECTION"))
		loom__text_add(out, "%s", loom__kind_section(n->kind));
	else if (IS("ABOUT"))
		loom__text_add(out, "%s", t->about);
	else if (IS("CONF"))
		conf(n, out);
	else if (IS("USE"))
		use(n, out);
	else if (IS("FILES"))
		files(n, t, out);
	else if (IS("GPULOOM"))
		make_path(n->gpuloom, out);
	else if (IS("INCLUDE"))
		make_path(n->include, out);
	else if (IS("PLUGINS"))
		make_path(n->plugins, out);
#undef IS
}

/* Appends a line of the template with each @WORD@ replaced. Any other @ stays. */
static void fill_line(const struct new_plugin *n, const struct loom__template *t, const char *at, const char *end,
		      struct loom__text *out)
{
	while (at < end) {
		const char *from = memchr(at, '@', (size_t)(end - at));
		const char *to = from ? memchr(from + 1, '@', (size_t)(end - from - 1)) : NULL;
		if (!to) {
			loom__text_put(out, at, (size_t)(end - at));
			return;
		}
		loom__text_put(out, at, (size_t)(from - at));
		size_t length = (size_t)(to - from - 1);
		if (length && strspn(from + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == length) {
			put_word(n, t, from + 1, length, out);
			at = to + 1;
		} else {
			loom__text_put(out, from, 1);
			at = from + 1;
		}
	}
}

/* Appends the template without the lines that start with %, which are faults that tests/broken plants. */
static void fill(const struct new_plugin *n, const struct loom__template *t, const char *at, const char *end,
		 struct loom__text *out)
{
	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		if (*at != '%')
			fill_line(n, t, at, next, out);
		at = next;
	}
}

static int write_one(const struct loom__cli *cli, const struct new_plugin *n, const struct loom__template *t,
		     const struct loom__embedded *source, const char *file)
{
	struct loom__text path = {0}, text = {0};
	struct loom_error err;
	int status = 0;
	loom__text_add(&path, "%s/%s", n->folder, file);
	fill(n, t, source->at, source->end, &text);
	if (loom__write_file(loom__must_text(&path), loom__must_text(&text), text.length, &err)) {
		loom__say_error(cli, "new-plugin: %s", err.text);
		status = LOOM_EXIT_FAILURE;
	}
	loom__text_free(&path);
	loom__text_free(&text);
	return status;
}

static int write_all(const struct loom__cli *cli, const struct new_plugin *n, const struct loom__template *t)
{
	char source[80], dev[80], ini[80];
	snprintf(source, sizeof(source), "%s.c", n->name);
	snprintf(dev, sizeof(dev), "%s.dev.h", n->name);
	snprintf(ini, sizeof(ini), "%s.ini", n->name);
	const struct {
		const struct loom__embedded *from;
		const char *to;
	} list[] = {{t->source, source},
		    {t->dev, dev},
		    {&loom__template_makefile, "Makefile"},
		    {&loom__template_conf, ini},
		    {&loom__template_test, "test.sh"},
		    {&loom__template_readme, "README.md"}};
	int status = 0;
	for (size_t i = 0; i < LOOM__COUNT(list) && !status; i++)
		if (list[i].from)
			status = write_one(cli, n, t, list[i].from, list[i].to);
	return status;
}

static int make(const struct loom__cli *cli, const struct new_plugin *n)
{
	const struct loom__template *t = loom__template_of(n->kind);
	/* mkdir() fails if the folder exists, so an existing folder is never overwritten. */
	if (mkdir(n->folder, 0777))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "new-plugin: cannot make the folder %s: %s", n->folder,
				    strerror(errno));
	int status = write_all(cli, n, t);
	if (!status)
		fprintf(cli->out, "%s: a %s plug-in: %s\n\n  cd %s && make && make check\n", n->folder,
			loom__kind_section(n->kind), t->about, n->folder);
	return status;
}

static int run(struct loom__cli *cli, void *args)
{
	struct new_plugin n = {.kind = LOOM_KIND_NONE, .gpuloom = cli->self};
	int status = take(cli, args, &n);
	if (!status) {
		look_around(&n);
		status = make(cli, &n);
		free(n.include);
		free(n.plugins);
	}
	return status;
}
