/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in which system calls fail, as in a sandbox: deny ERROR CALL[,CALL...] COMMAND... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name)                                                                                                     \
	{                                                                                                              \
#name, SYS_##name                                                                                      \
	}
static const struct {
	const char *name;
	int number;
} calls[] = {
    CALL(clone3), CALL(eventfd2),          CALL(memfd_create),   CALL(pidfd_open),  CALL(ppoll),
    CALL(prctl),  CALL(sched_setaffinity), CALL(timerfd_create), CALL(userfaultfd), CALL(waitid),
#ifdef SYS_poll /* newer architectures have only ppoll */
    CALL(poll),
#endif
};
static const struct {
	const char *name;
	int number;
} errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}};

int main(int argc, char **argv)
{
	int error = 0;
	for (size_t i = 0; argc > 3 && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (!strcmp(errors[i].name, argv[1]))
			error = errors[i].number;
	if (!error) {
		fprintf(stderr, "usage: deny EPERM|ENOSYS|ENOMEM|EINVAL CALL[,CALL...] COMMAND...\n");
		return 2;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* One filter per call; the kernel applies all. */
	for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
		int number = -1;
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			if (!strcmp(calls[i].name, name))
				number = calls[i].number;
		struct sock_filter f[] = {
		    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		struct sock_fprog program = {sizeof(f) / sizeof(f[0]), f};
		if (number < 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) {
			fprintf(stderr, "deny: cannot deny '%s': %s\n", name,
				number < 0 ? "no such call" : strerror(errno));
			return 77;
		}
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
