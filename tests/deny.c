/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a program for which a system call fails with EPERM, as in a sandbox.
 *   deny CALL PROGRAM ARGUMENT... */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned number;
	} call[] = {{"prctl", SYS_prctl}, {"clone3", SYS_clone3}, {"waitid", SYS_waitid}};
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]) && argc > 2; i++) {
		struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
					       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call[i].number, 0, 1),
					       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
					       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
		struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
		if (strcmp(call[i].name, argv[1]))
			continue;
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			break;
		execvp(argv[2], argv + 2);
	}
	perror("deny");
	return 1;
}
