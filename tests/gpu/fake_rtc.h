/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the run-time compiler of a vendor. It compiles a composed program for threads of the host (threads.h),
 * with $CXX or c++, into a shared object. test_compose and test_compose_hip compile all programs with the real
 * compiler. */
#ifndef LOOM_TEST_FAKE_RTC_H
#define LOOM_TEST_FAKE_RTC_H

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the vendors' headers give these functions other types */
#define FAKE_RTC_FAILED 6                             /* the error code of both vendors for an invalid program */

struct fake_program {
	char *text, *log, *code;
	size_t log_bytes, code_bytes;
};

#if defined(__SANITIZE_THREAD__)
#define FAKE_RTC_SANITIZER "-fsanitize=thread "
#elif defined(__SANITIZE_ADDRESS__)
#define FAKE_RTC_SANITIZER "-fsanitize=address "
#else
#define FAKE_RTC_SANITIZER ""
#endif
/* Without optimisation, because compiling takes longer than running. With it, gcc 12.2 also compiles `v + fetch_add(p,
 * v)` to twice the old value. */
#define FAKE_RTC_COMMAND                                                                                               \
	"cd %s && ${CXX:-c++} -std=gnu++20 -O0 -fPIC -shared -w -fno-strict-aliasing -fno-exceptions "                 \
	"-fno-rtti " FAKE_RTC_SANITIZER                                                                                \
	"-I%s/tests/gpu -I%s/core/include -I%s/comm/include -I%s/plugins/device_common/include "                       \
	"-I%s/plugins/device_common/compose -I. -o code program.cc >log 2>&1" /* -I. is for tests/keep-cxx */

/* Replaces the first occurrence of `from`, if there is one. */
static char *replaced(char *text, const char *from, const char *to)
{
	char *at = strstr(text, from), *made = NULL;
	if (!at || asprintf(&made, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) < 0)
		return text;
	free(text);
	return made;
}

/* Returns the content of a file, with a NUL behind it, and removes the file. */
static char *taken(const char *folder, const char *name, size_t *bytes)
{
	char path[200], *made = calloc(1, 1);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "re");
	if (file && !fseek(file, 0, SEEK_END)) {
		*bytes = (size_t)ftell(file);
		made = realloc(made, *bytes + 1);
		rewind(file);
		if (fread(made, 1, *bytes, file) != *bytes)
			exit(99);
		made[*bytes] = 0;
		fclose(file);
	}
	unlink(path);
	return made;
}

API int FAKE_RTC(CreateProgram)(void **program, const char *text, const char *name, int headers, const char **header,
				const char **header_name)
{
	struct fake_program *p = calloc(1, sizeof(*p));
	p->text = replaced(strdup(text), FAKE_RTC_LAYER, "\"threads.h\"");
	p->text = replaced(p->text, "#define LOOM_LANES ", "#define LOOM_GPU_LANES ");
	p->text = replaced(p->text, "\"kernel.dev.h\"", "\"threads_kernel.h\"");
	p->text = replaced(p->text, "\"collective.dev.h\"", "\"threads_kernel.h\"");
	*program = p;
	return 0;
}

API int FAKE_RTC(CompileProgram)(struct fake_program *p, int options, const char **option)
{
	char folder[] = "/tmp/fake-rtc-XXXXXX", path[64], command[4096];
	if (!mkdtemp(folder))
		exit(99);
	snprintf(path, sizeof(path), "%s/program.cc", folder);
	FILE *file = fopen(path, "we");
	if (!file || fputs(p->text, file) < 0 || fclose(file))
		exit(99);
	const char *top = FAKE_RTC_TOP;
	snprintf(command, sizeof(command), FAKE_RTC_COMMAND, folder, top, top, top, top, top);
	int failed = system(command);
	unlink(path);
	p->log = taken(folder, "log", &p->log_bytes);
	p->code = taken(folder, "code", &p->code_bytes);
	rmdir(folder);
	return failed ? FAKE_RTC_FAILED : 0;
}

API int FAKE_RTC(DestroyProgram)(struct fake_program **program)
{
	free((*program)->text);
	free((*program)->log);
	free((*program)->code);
	free(*program);
	return 0;
}

API int FAKE_RTC(Version)(int *major, int *minor)
{
	*major = 13;
	*minor = 0;
	return 0;
}

API const char *FAKE_RTC(GetErrorString)(int rc)
{
	return rc ? "requested of the fake compiler" : "success";
}

/* FAKE_RTC_OUTPUT(Name, part) defines the functions that return an output of the compiler and its size. */
#define FAKE_RTC_OUTPUT(name, part)                                                                                    \
	API int FAKE_RTC(name##Size)(const struct fake_program *p, size_t *bytes)                                      \
	{                                                                                                              \
		*bytes = p->part##_bytes;                                                                              \
		return 0;                                                                                              \
	}                                                                                                              \
	API int FAKE_RTC(name)(const struct fake_program *p, char *to)                                                 \
	{                                                                                                              \
		memcpy(to, p->part, p->part##_bytes);                                                                  \
		return 0;                                                                                              \
	}

FAKE_RTC_OUTPUT(GetProgramLog, log)

#endif
