/* SPDX-License-Identifier: Apache-2.0 */
/* The child process of probing. It runs code of plug-ins, so it may crash or hang. */
#include <gpuloom/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/child.h"
#include "plugin/identity.h"
#include "inspect/probe.h"
#include "stack/host.h"

static int load(const char *path, int fd, const struct loom_plugin **p)
{
	struct loom_error err;
	int rc = loom__plugin_load(path, LOOM_KIND_NONE, p, &err);
	fflush(NULL); /* passes output of the plug-in to the parent; _exit() would drop it */
	if (rc)
		loom__child_answer(fd, err.text, strlen(err.text));
	return -rc;
}

/* Answers "ok\n" and a manifest. The manifest comes from the loaded descriptor, because a file without a manifest
 * section cannot identify itself. */
static int answer_identity(const char *path, int fd)
{
	const struct loom_plugin *p;
	struct loom_manifest identity;
	int rc = load(path, fd, &p);
	if (rc)
		return rc;
	loom__identity_of(p, &identity);
	loom__child_answer(fd, "ok\n", 3);
	loom__child_answer(fd, &identity, sizeof(identity));
	return 0;
}

void loom__answer_row(int fd, const char *topic, const char *state, const char *found, const char *fix)
{
	const char *field[] = {topic, state, found, fix};
	for (size_t i = 0; i < LOOM__COUNT(field); i++)
		loom__child_answer(fd, field[i] ? field[i] : "", field[i] ? strlen(field[i]) + 1 : 1);
}

static void write_row(struct loom_doctor *out, const char *topic, const char *state, const char *found, const char *fix)
{
	loom__answer_row(*(int *)out->ctx, topic, state, found, fix);
}

static int answer_doctor(const char *path, int fd)
{
	const struct loom_plugin *p;
	int rc = load(path, fd, &p);
	if (rc)
		return rc;
	if (p->kind == LOOM_DEVICE) {
		const struct loom_device_ops *ops = p->ops;
		struct loom_doctor out = {sizeof(out), &fd, write_row};
		struct loom__host host;
		loom__host_init(&host, NULL);
		if (LOOM_HAS(ops, doctor))
			ops->doctor(&host.table, &out);
	}
	return 0;
}

void loom__probe_command(int argc, char **argv)
{
	static const struct {
		const char *question;
		int (*answer)(const char *path, int fd);
		int destructors;
	} known[] = {{"identity", answer_identity, 1}, {"doctor", answer_doctor, 0}};
	for (size_t i = 0; argc == 4 && i < LOOM__COUNT(known); i++)
		if (!strcmp(argv[1], known[i].question)) {
			int fd = atoi(argv[2]);
			loom__child_begin(fd);
			int status = known[i].answer(argv[3], fd);
			/* exit() runs the plug-in's destructors, which any process that uses the plug-in will also run.
			 * So the probe also runs the destructors. */
			if (!status && known[i].destructors)
				exit(0);
			_exit(status);
		}
}
