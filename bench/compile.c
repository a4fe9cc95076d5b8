/* SPDX-License-Identifier: Apache-2.0 */
/* What the first use of a selection costs on an NVIDIA GPU: composing its program and compiling it. Needs NVRTC, no
 * GPU. Each compilation is one in a new process, as a command's first is, with NVRTC's own cache off; selections in
 * turn, ROUNDS times; medians.
 *   BUILD/bench/compile [-n ROUNDS] [-a ARCH] [-k FOLDER] [-s SUBSTRING] [-f FILE] [-o JSON] [-- NVRTC OPTION...]; uses the plug-ins of BUILD
 * -k keeps each program's text, PTX and machine code; -f compiles such a text, perhaps changed; options go behind those of device_cuda. */
#include <cjson/cJSON.h>
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests/compose_pick.h"
#include "device_cuda/driver.h"
#include "device_cuda/ptxas.h"

#define ROUNDS_MAX 99
#define CASES_MAX 64
#define TARGET_S 1.0

/* Seconds of one compilation; CPU of all threads. */
struct figures {
	double load, whole, user, system, optimiser, assembler, faults;
};
struct answer {
	struct figures f;
	struct resources r;
	size_t instructions, bytes;
};

static struct one {
	char label[64];
	struct text text;
	struct figures of[ROUNDS_MAX];
	struct answer last;
} cases[CASES_MAX];
static size_t count;

static const char *arch = "sm_90", *keep, *only = "";
static char times[] = "/tmp/gpuloom-compile-XXXXXX";

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(int ok, const struct loom_error *err)
{
	if (ok)
		return;
	fprintf(stderr, "compile: %s\n", err->text);
	exit(1);
}

/* ---- the selections ---- */

static const struct loom_layout full = {
	.size = sizeof(full), .devices = 1, .workers = 2112, .device = compose_shapes};

/* What a policy with these options makes constant. */
static void add_constants(struct selection *s, enum loom_kind kind, const char *settings)
{
	const struct loom_plugin *p = s->policy[kind];
	const struct loom_policy_ops *ops = p->ops;
	const struct loom_sched_ops *sched = p->ops;
	const struct loom_workload_ops *workload = p->ops;
	size_t at = strlen(s->constants), room = sizeof(s->constants) - at;
	struct loom_error err = {0};
	char copy[80];
	if (kind == LOOM_WORKLOAD && !LOOM_HAS(workload, constants))
		return;
	void *self = NULL, *opts = fake_alloc(&fake_host, p->opts_size);
	snprintf(copy, sizeof(copy), "%s", settings);
	fake_options(p, opts, copy);
	must(ops->create(&fake_host, opts, &self, &err) == 0, &err);
	if (kind == LOOM_SCHED)
		must(sched->constants(self, &full, s->constants + at, room, &err) == 0, &err);
	else
		must(workload->constants(self, &full, s->constants + at, room, &err) == 0, &err);
	ops->destroy(self);
	fake_free(&fake_host, opts);
	s->program.constants = s->constants;
}

static void add(const char *sched, const char *settings, const char *term, const char *workload)
{
	/* 16 blocks a multiprocessor, and so 128 registers: what device_cuda promises on an H200. */
	struct compose_target target = {
		.who = "cuda:0", .dialect = compose_cuda, .lanes = 32, .per_block = 1, .blocks = 16, .watch = 32};
	struct selection s = {0};
	struct loom_error err = {0};
	struct one *o = &cases[count];
	char name[64];
	snprintf(o->label, sizeof(o->label), "%s %s%s %s", workload, sched, *settings ? " lane" : "", term);
	if (!strstr(o->label, only))
		return;
	snprintf(name, sizeof(name), "sched_%s", sched);
	pick(&s, name);
	snprintf(name, sizeof(name), "term_%s", term);
	pick(&s, name);
	snprintf(name, sizeof(name), "workload_%s", workload);
	pick(&s, name);
	add_constants(&s, LOOM_SCHED, settings);
	add_constants(&s, LOOM_WORKLOAD, "");
	must(compose_work(&fake_host, &target, &s.program, &o->text, &err) == 0, &err);
	count++;
}

/* ---- one compilation ---- */

/* NVRTC's own times: a line per phase, "... , phase name , ..., time, unit". */
static void read_times(struct figures *f)
{
	char line[600];
	FILE *file = fopen(times, "r");
	f->optimiser = f->assembler = 0;
	while (file && fgets(line, sizeof(line), file)) {
		char *cell[12] = {0}, *at = line;
		size_t n = 0;
		for (char *c; n < COUNT(cell) && (c = strsep(&at, ",")) != NULL; n++)
			cell[n] = c;
		for (size_t i = 0; i + 1 < n; i++) {
			double *to = strstr(cell[i], "Optimizer") ? &f->optimiser :
				     strstr(cell[i], "PTX") ? &f->assembler : NULL;
			if (!to)
				continue;
			for (size_t k = i + 1; k < n; k++)
				if (strtod(cell[k], NULL) > 0) {
					*to += strtod(cell[k], NULL) * 1e-3;
					break;
				}
			break;
		}
	}
	if (file)
		fclose(file);
	unlink(times);
}

/* In an ELF file's sections of code; an instruction has 16 bytes. */
static size_t count_instructions(const char *elf)
{
	const Elf64_Ehdr *head = (const void *)elf;
	const Elf64_Shdr *section = (const void *)(elf + head->e_shoff);
	const char *names = elf + section[head->e_shstrndx].sh_offset;
	size_t n = 0;
	for (int i = 0; i < head->e_shnum; i++)
		if (!strncmp(names + section[i].sh_name, ".text.", 6))
			n += section[i].sh_size / 16;
	return n;
}

static void write_file(const struct one *o, const char *suffix, const void *at, size_t bytes)
{
	char path[400];
	snprintf(path, sizeof(path), "%s/%s.%s", keep, o->label, suffix);
	for (char *p = path; *p; p++)
		*p = *p == ' ' ? '-' : *p;
	FILE *f = fopen(path, "w");
	if (f) {
		fwrite(at, 1, bytes, f);
		fclose(f);
	}
}

static void compile(const struct one *o, struct answer *a, char *const *extra, int extras)
{
	char arch_is[40], time_is[80];
	struct rtc nvrtc;
	struct compiled out;
	struct rusage used;
	struct loom_error err = {0};
	const char *option[40] = {arch_is, time_is};
	snprintf(arch_is, sizeof(arch_is), "-arch=%s", arch);
	snprintf(time_is, sizeof(time_is), "-time=%s", times);
	double begin = now();
	must(rtc_open(&fake_host, "compile", &cuda_compiler, NULL, &nvrtc, &err) == 0, &err);
	a->f.load = now() - begin;
	int n = 2 + cuda_compiler_options(&nvrtc, 0, option + 2);
	for (int i = 0; i < extras && n < (int)COUNT(option); i++)
		option[n++] = extra[i];
	must(rtc_run(&fake_host, "compile", &nvrtc, o->text.at, option, n, keep ? RTC_CODE_AND_ASSEMBLY : RTC_CODE,
		     &out, &err) == 0, &err);
	a->f.whole = now() - begin;
	getrusage(RUSAGE_SELF, &used);
	a->f.user = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
	a->f.system = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec * 1e-6;
	a->f.faults = (double)used.ru_minflt;
	read_times(&a->f);
	resources_read(out.log, COMPOSE_KERNEL, &a->r);
	a->instructions = count_instructions(out.code);
	a->bytes = out.bytes;
	if (keep) {
		write_file(o, "cu", o->text.at, strlen(o->text.at));
		write_file(o, "ptx", out.assembly, strlen(out.assembly));
		write_file(o, "log", out.log, strlen(out.log));
		write_file(o, "cubin", out.code, out.bytes);
	}
	compiled_free(&fake_host, &out);
}

static void compile_apart(struct one *o, struct figures *f, char *const *extra, int extras)
{
	int pipe_of[2], status = 0;
	if (pipe(pipe_of) != 0)
		exit(1);
	pid_t child = fork();
	if (child == 0) {
		struct answer a = {0};
		compile(o, &a, extra, extras);
		_exit(write(pipe_of[1], &a, sizeof(a)) != sizeof(a));
	}
	close(pipe_of[1]);
	ssize_t got = read(pipe_of[0], &o->last, sizeof(o->last));
	close(pipe_of[0]);
	if (child < 0 || waitpid(child, &status, 0) < 0 || status || got != sizeof(o->last)) {
		fprintf(stderr, "compile: %s: failed\n", o->label);
		exit(1);
	}
	*f = o->last.f;
}

/* ---- figures ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const struct one *o, int rounds, size_t field)
{
	double v[ROUNDS_MAX];
	for (int i = 0; i < rounds; i++)
		memcpy(&v[i], (const char *)&o->of[i] + field, sizeof(v[i]));
	qsort(v, (size_t)rounds, sizeof(v[0]), by_size);
	return rounds % 2 ? v[rounds / 2] : (v[rounds / 2 - 1] + v[rounds / 2]) / 2;
}

#define MEDIAN(o, field) median(o, rounds, offsetof(struct figures, field))

static void add_file(const char *path)
{
	char part[4096];
	struct one *o = &cases[count++];
	FILE *f = fopen(path, "r");
	struct loom_error err;
	snprintf(err.text, sizeof(err.text), "%s: %s", path, strerror(errno));
	must(f != NULL, &err);
	snprintf(o->label, sizeof(o->label), "%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	o->text.host = &fake_host;
	for (size_t n; (n = fread(part, 1, sizeof(part), f)) > 0;)
		text_bytes(&o->text, part, n);
	fclose(f);
}

static void select_all(void)
{
	static const char *const workloads[] = {"memset", "contains", "fib", "uts"};
	static const char *const terms[] = {"counter", "hcounter", "tree"};
	for (size_t w = 0; w < COUNT(workloads); w++)
		for (size_t t = 0; t < COUNT(terms); t++) {
			add("mgws", "", terms[t], workloads[w]);
			add("mgws", "grain=lane", terms[t], workloads[w]);
			add("static", "", terms[t], workloads[w]);
		}
}

/* Every round's figures, for whoever plots them. */
static void write_json(const char *path, int rounds)
{
	cJSON *all = cJSON_CreateObject();
	for (size_t k = 0; k < count; k++) {
		cJSON *list = cJSON_AddArrayToObject(all, cases[k].label);
		for (int i = 0; i < rounds; i++) {
			const struct figures *f = &cases[k].of[i];
			cJSON *one = cJSON_CreateObject();
			cJSON_AddNumberToObject(one, "whole_s", f->whole);
			cJSON_AddNumberToObject(one, "user_s", f->user);
			cJSON_AddNumberToObject(one, "system_s", f->system);
			cJSON_AddNumberToObject(one, "optimiser_s", f->optimiser);
			cJSON_AddNumberToObject(one, "assembler_s", f->assembler);
			cJSON_AddItemToArray(list, one);
		}
	}
	char *text = cJSON_Print(all);
	FILE *file = text ? fopen(path, "w") : NULL;
	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file) != 0)
		fprintf(stderr, "compile: cannot write %s: %s\n", path, strerror(errno));
	free(text);
	cJSON_Delete(all);
}

int main(int argc, char **argv)
{
	int rounds = 5;
	const char *json = NULL;
	for (int o; (o = getopt(argc, argv, "+n:a:k:s:f:o:")) != -1;) {
		if (o == 'n')
			rounds = atoi(optarg);
		else if (o == 'a')
			arch = optarg;
		else if (o == 'k')
			keep = optarg;
		else if (o == 'f')
			add_file(optarg);
		else if (o == 'o')
			json = optarg;
		else if (o == 's')
			only = optarg;
		else
			return 2;
	}
	rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
	setenv("CUDA_CACHE_DISABLE", "1", 1);
	int fd = mkstemp(times);
	if (fd >= 0)
		close(fd);
	if (!count)
		select_all();
	for (int i = 0; i < rounds; i++)
		for (size_t k = 0; k < count; k++)
			compile_apart(&cases[k], &cases[k].of[i], argv + optind, argc - optind);
	printf("%-28s %6s %6s %6s %6s %9s %9s %7s %9s %6s %5s %12s\n", "seconds, medians", "whole", "load", "user",
	       "system", "optimiser", "assembler", "faults", "registers", "spills", "stack", "instructions");
	double worst = 0;
	const char *worst_is = "";
	for (size_t k = 0; k < count; k++) {
		struct one *o = &cases[k];
		double whole = MEDIAN(o, whole);
		if (whole > worst) {
			worst = whole;
			worst_is = o->label;
		}
		printf("%-28s %6.3f %6.3f %6.3f %6.3f %9.3f %9.3f %7.0f %9u %6u %5u %12zu\n", o->label, whole,
		       MEDIAN(o, load), MEDIAN(o, user), MEDIAN(o, system), MEDIAN(o, optimiser),
		       MEDIAN(o, assembler), MEDIAN(o, faults), o->last.r.registers, o->last.r.spills,
		       o->last.r.stack, o->last.instructions);
		text_free(&o->text);
	}
	if (json)
		write_json(json, rounds);
	printf("the slowest: %s\n", worst_is);
	printf("bar compile_slowest_s %.3f <= %.3f %s\n", worst, TARGET_S, worst <= TARGET_S ? "ok" : "short");
	return 0;
}
