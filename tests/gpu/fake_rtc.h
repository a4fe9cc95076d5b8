/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the run-time compiler of a vendor. It lets the real compiler parse and check programs, and forwards
 * its messages. It makes no optimised machine code, because threads run in place of kernels. test_compose and
 * test_compose_hip check the machine code. */
#ifndef LOOM_TEST_FAKE_RTC_H
#define LOOM_TEST_FAKE_RTC_H

static void *fake_rtc(const char *name)
{
	static void *so; /* needs no lock, because one thread compiles at a time */
	const char *file = getenv(FAKE_RTC_FILE);
	void *at;
	if (!so)
		so = dlopen(file ? file : "", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	at = so ? dlsym(so, name) : NULL;
	if (!at)
		fprintf(stderr, FAKE_RTC_FILE "=%s: %s\n", file ? file : "", dlerror());
	return at ? at : (abort(), NULL);
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the vendors' headers give these functions other types */
#define FAKE_RTC_FAILED 6 /* the error code of both vendors for an invalid program */
#define FAKE_RTC_TEXT_(x) #x
#define FAKE_RTC_TEXT(x) FAKE_RTC_TEXT_(x)
#define FAKE_RTC_REAL(type, name, parameters) ((type(*) parameters)fake_rtc(FAKE_RTC_TEXT(FAKE_RTC(name))))
#define FORWARD(type, name, parameters, arguments)                     \
	API type FAKE_RTC(name) parameters                             \
	{                                                              \
		return FAKE_RTC_REAL(type, name, parameters) arguments; \
	}

FORWARD(int, Version, (int *major, int *minor), (major, minor))
FORWARD(const char *, GetErrorString, (int rc), (rc))
FORWARD(int, CreateProgram,
	(void **program, const char *text, const char *name, int headers, const char **header,
	 const char **header_name),
	(program, text, name, headers, header, header_name))
FORWARD(int, DestroyProgram, (void **program), (program))
FORWARD(int, GetProgramLogSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(int, GetProgramLog, (void *program, char *to), (program, to))

API int FAKE_RTC(CompileProgram)(void *program, int options, const char **option)
{
	const char *quick[16];
	int n = 0;
	for (int i = 0; i < options && n < 16; i++)
		if ((quick[n] = fake_quick(option[i])) != NULL)
			n++;
	int rc = FAKE_RTC_REAL(int, CompileProgram, (void *, int, const char **))(program, n, quick);
	if (rc != FAKE_RTC_FAILED)
		return rc;
	/* The compiler fails because it makes no machine code. A real error is also in the log. */
	char log[1 << 16] = "";
	size_t bytes = 0;
	FAKE_RTC(GetProgramLogSize)(program, &bytes);
	if (bytes < sizeof(log))
		FAKE_RTC(GetProgramLog)(program, log);
	return bytes >= sizeof(log) || strstr(log, "error") ? rc : 0;
}

#endif
