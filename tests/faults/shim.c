/* SPDX-License-Identifier: Apache-2.0 */
/* tests/faults/walk.py preloads this library, which fails the n-th call of one class, over all processes of a run.
 *
 *   FAULT_PAGE   a file of zeros, at least as large as struct page, for counts and the failed call
 *   FAULT        CLASS,N,HOW[,on][,own][,trace]; without it calls are only counted
 *     HOW    the number of an errno, or "short": the call reads or writes half of the requested bytes
 *     on     every call from the N-th on fails, as with a kernel that lacks the call
 *     own    only calls by gpuloom and its plug-ins count, not those by libraries
 *     trace  the failed call's stack goes to stderr
 *   With N = 0 nothing fails, and the page has a hash of the stack of each call. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* walk.py has the same list. */
enum class {
	MALLOC,
	MMAP,
	MEMFD,
	THREAD,
	EVENTFD,
	EPOLL,
	FUTEX,
	USERFAULTFD,
	IOCTL,
	SYSCALL,
	OPEN,
	READ,
	WRITE,
	FORK,
	SOCKET,
	POLL,
	WAIT,
	PRCTL,
	FTRUNCATE,
	RENAME,
	CLASSES
};
static const char *const names[] = {
    "malloc", "mmap", "memfd", "thread", "eventfd", "epoll", "futex", "userfaultfd", "ioctl",     "syscall",
    "open",   "read", "write", "fork",   "socket",  "poll",  "wait",  "prctl",       "ftruncate", "rename",
};

enum { STACKS = 65536 };
struct page {
	_Atomic uint64_t count[CLASSES];
	_Atomic uint64_t failed;
	char where[240];        /* the stack of the first failed call */
	_Atomic uint64_t paths; /* used bytes of `path`, which has the NUL-terminated names of created files */
	char path[32768];
	_Atomic uint64_t died; /* the number of processes that a signal has ended */
	char within[64];       /* the file whose code raised the first signal or called exit() */
	_Atomic uint64_t open; /* the largest number of descriptors that a process had at its end */
	char open_name[8][64];
	uint32_t stack[STACKS]; /* with N = 0, stack[n - 1] is a hash of the stack of call n */
};

static struct page *page;
static int chosen = -1, how, cut, on, own, trace, over;
static uint64_t target;
enum { DESCRIPTORS = 1024 };
static char inherited[DESCRIPTORS], of_libfabric[DESCRIPTORS];

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static int word(const char **s, const char *w)
{
	size_t n = strlen(w);
	if (strncmp(*s, w, n) || ((*s)[n] && (*s)[n] != ','))
		return 0;
	*s += n;
	return 1;
}

/* Returns the name of the file that contains an address, such as "libfabric.so.1". */
static const char *file_of(void *at)
{
	Dl_info info;
	const char *slash;
	if (!dladdr(at, &info) || !info.dli_fname)
		return "?";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static void note_death(const char *file)
{
	if (!atomic_fetch_add(&page->died, 1))
		strncpy(page->within, file, sizeof(page->within) - 1);
}

/* Records in `within` the first file on the stack that is neither the C library nor this library. */
static void on_death(int number)
{
	void *stack[64];
	int n = backtrace(stack, 64), i = 1;
	(void)number; /* under SA_RESETHAND the signal is raised again after the return */
	if (trace)
		backtrace_symbols_fd(stack, n, 2);
	for (const char *file; i < n; i++) {
		file = file_of(stack[i]);
		if (strncmp(file, "libc.so", 7) && strncmp(file, "ld-linux", 8) && strncmp(file, "faults.so", 9) &&
		    *file != '?')
			break;
	}
	note_death(i < n ? file_of(stack[i]) : "?");
}

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("FAULT_PAGE"), *what = getenv("FAULT");
	int fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC) : -1;
	void *stack[4];
	if (fd < 0)
		return;
	long at = syscall(SYS_mmap, NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	syscall(SYS_close, fd);
	if (at < 0 && at > -4096)
		return;
	backtrace(stack, 4); /* backtrace() loads a library, which must not happen within a failed call */
	for (int c = 0; what && c < CLASSES; c++) {
		if (!word(&what, names[c]))
			continue;
		chosen = c;
		what++;
		target = strtoull(what, (char **)&what, 10);
		what++;
		if (!(cut = word(&what, "short")))
			how = (int)strtol(what, (char **)&what, 10);
		while (*what++) {
			on |= word(&what, "on");
			own |= word(&what, "own");
			trace |= word(&what, "trace");
		}
		break;
	}
	for (int i = 0; i < DESCRIPTORS; i++)
		inherited[i] = syscall(SYS_fcntl, i, F_GETFD) >= 0;
	page = (struct page *)at;
	struct sigaction act = {.sa_handler = on_death, .sa_flags = SA_RESETHAND | SA_NODEFER};
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		sigaction(fatal[i], &act, NULL);
}

static int is_own(void *caller)
{
	Dl_info info;
	if (!dladdr(caller, &info) || !info.dli_fname)
		return 0;
	const char *base = strrchr(info.dli_fname, '/');
	base = base ? base + 1 : info.dli_fname;
	return strstr(info.dli_fname, "/plugins/") || !strncmp(base, "gpuloom", 7) || !strncmp(base, "libgpuloom", 10);
}

static void note(enum class c, uint64_t n, void *caller)
{
	Dl_info info;
	if (trace) {
		void *stack[40];
		backtrace_symbols_fd(stack, backtrace(stack, 40), 2);
	}
	if (atomic_fetch_add(&page->failed, 1))
		return;
	if (!dladdr(caller, &info))
		info = (Dl_info){.dli_fname = "?"};
	snprintf(page->where, sizeof(page->where), "%s %llu: %s+0x%lx %s", names[c], (unsigned long long)n,
		 info.dli_fname, (unsigned long)((char *)caller - (char *)info.dli_fbase),
		 info.dli_sname ? info.dli_sname : "");
}

static uint32_t stack_of(void)
{
	void *at[10]; /* three frames of this library, then the caller and callers further up */
	uint32_t hash = 2166136261u;
	static _Thread_local int inside;
	if (inside++)
		return 0;
	for (int n = backtrace(at, 10), i = 3; i < n; i++)
		hash = (hash ^ (uint32_t)((uintptr_t)at[i] >> 1)) * 16777619u;
	inside = 0;
	return hash;
}

/* Counts a call. Returns 1 if the call must fail. */
static int due(enum class c, void *caller)
{
	if (!page || over || (chosen >= 0 && (int)c != chosen) || (own && !is_own(caller)))
		return 0;
	uint64_t n = atomic_fetch_add(&page->count[c], 1) + 1;
	if ((int)c == chosen && !target && n <= STACKS)
		page->stack[n - 1] = stack_of();
	if ((int)c != chosen || !(n == target || (on && n > target)))
		return 0;
	int number = errno;
	note(c, n, caller);
	errno = cut ? number : how;
	return 1;
}
#define CALLER   __builtin_return_address(0)
#define FAILS(c) (due((c), CALLER) && !cut)

static void made(const char *prefix, const char *path)
{
	if (!page || over)
		return;
	size_t n = strlen(prefix) + strlen(path) + 1;
	uint64_t at = atomic_fetch_add(&page->paths, n);
	if (at + n <= sizeof(page->path))
		snprintf(page->path + at, n, "%s%s", prefix, path);
}

/* Declares `next`, the function that this library replaces. */
#define NEXT(f)                                                                                                        \
	static __typeof__(f) *next;                                                                                    \
	if (!next)                                                                                                     \
	next = (__typeof__(f) *)dlsym(RTLD_NEXT, #f)

static int in_the_middle; /* 1 after a call of exit(), when open descriptors are no leak */

/* Returns whether a worker ("cpu:0.w1") still exists. Memory that a worker may use is not freed. */
static int stragglers(void)
{
	char room[2048], path[300], name[17];
	int found = 0, fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY);
	long n = fd < 0 ? 0 : syscall(SYS_getdents64, fd, room, sizeof(room));
	for (long at = 0; at < n; at += ((struct dirent64 *)(void *)(room + at))->d_reclen) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 ((struct dirent64 *)(void *)(room + at))->d_name);
		int comm = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
		long got = comm < 0 ? 0 : syscall(SYS_read, comm, name, sizeof(name) - 1);
		name[got > 0 ? got : 0] = 0;
		found |= strstr(name, ".w") != NULL;
		if (comm >= 0)
			syscall(SYS_close, comm);
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	return found;
}

/* Counts the descriptors of a process that returns from main(). */
__attribute__((destructor)) static void end(void)
{
	char path[64], name[sizeof(page->open_name) / sizeof(*page->open_name)][64] = {{0}};
	uint64_t n = 0;
	over = 1; /* calls after this point are not made by the program */
	if (!page || in_the_middle || stragglers())
		return;
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		if (inherited[fd])
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		char *at = name[n < 8 ? n : 7];
		if (readlink(path, at, 48) <= 0)
			continue;
		n++;
		if (of_libfabric[fd] && !strncmp(at, "socket:", 7))
			strcat(at, " libfabric");
	}
	uint64_t most = atomic_load(&page->open);
	while (n > most && !atomic_compare_exchange_weak(&page->open, &most, n))
		;
	if (n > most)
		memcpy(page->open_name, name, sizeof(name));
}

/* Records in `within` a call of exit() by any file but the command gpuloom, because a library must not end the process.
 */
EXPORT void exit(int status)
{
	NEXT(exit);
	in_the_middle = 1;
	if (page && !atomic_load(&page->died) && strncmp(file_of(CALLER), "gpuloom", 7))
		strncpy(page->within, file_of(CALLER), sizeof(page->within) - 1);
	next(status);
	abort();
}

/* ---- memory ---------------------------------------------------------------------------------- */

EXPORT void *malloc(size_t n)
{
	return FAILS(MALLOC) ? NULL : __libc_malloc(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
	return FAILS(MALLOC) ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t n)
{
	return n && FAILS(MALLOC) ? NULL : __libc_realloc(p, n);
}

EXPORT void *aligned_alloc(size_t align, size_t n)
{
	return FAILS(MALLOC) ? NULL : __libc_memalign(align, n);
}

EXPORT void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n)
{
	return FAILS(MALLOC) ? NULL : __libc_memalign(align, n);
}

EXPORT int posix_memalign(void **p, size_t align, size_t n)
{
	if (FAILS(MALLOC))
		return ENOMEM;
	*p = __libc_memalign(align, n);
	return *p ? 0 : ENOMEM;
}

/* This library defines strndup() itself, so that the recorded caller is not the C library. */
EXPORT char *strndup(const char *s, size_t n)
{
	size_t length = strnlen(s, n);
	char *copy = FAILS(MALLOC) ? NULL : __libc_malloc(length + 1);
	if (!copy)
		return NULL;
	memcpy(copy, s, length);
	copy[length] = 0;
	return copy;
}

#undef strdup
EXPORT char *strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = FAILS(MALLOC) ? NULL : __libc_malloc(n);
	return copy ? memcpy(copy, s, n) : NULL;
}

EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	NEXT(mmap);
	return FAILS(MMAP) ? MAP_FAILED : next(at, n, prot, flags, fd, offset);
}

EXPORT void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
	NEXT(mmap);
	return FAILS(MMAP) ? MAP_FAILED : next(at, n, prot, flags, fd, offset);
}

/* ---- calls that fail as a whole -------------------------------------------------------------- */

#define WHOLE(class, result, name, params, args)                                                                       \
	EXPORT result name params                                                                                      \
	{                                                                                                              \
		NEXT(name);                                                                                            \
		return FAILS(class) ? (result)-1 : next args;                                                          \
	}
WHOLE(MEMFD, int, memfd_create, (const char *a, unsigned b), (a, b))
WHOLE(EVENTFD, int, eventfd, (unsigned a, int b), (a, b))
WHOLE(EPOLL, int, epoll_create1, (int a), (a))
WHOLE(EPOLL, int, epoll_create, (int a), (a))
WHOLE(EPOLL, int, epoll_ctl, (int a, int b, int c, struct epoll_event *d), (a, b, c, d))
WHOLE(EPOLL, int, epoll_wait, (int a, struct epoll_event *b, int c, int d), (a, b, c, d))
WHOLE(FORK, pid_t, fork, (void), ())
/* Marks sockets of libfabric, because its provider tcp does not close a connection whose peer dies during the set-up.
 */
static int socket_of(int fd, void *caller)
{
	if (fd >= 0 && fd < DESCRIPTORS)
		of_libfabric[fd] = !strncmp(file_of(caller), "libfabric", 9);
	return fd;
}

EXPORT int socket(int a, int b, int c)
{
	NEXT(socket);
	return FAILS(SOCKET) ? -1 : socket_of(next(a, b, c), CALLER);
}

EXPORT int accept(int a, struct sockaddr *b, socklen_t *c)
{
	NEXT(accept);
	return socket_of(next(a, b, c), CALLER);
}

WHOLE(SOCKET, int, socketpair, (int a, int b, int c, int d[2]), (a, b, c, d))
WHOLE(SOCKET, int, bind, (int a, const struct sockaddr *b, socklen_t c), (a, b, c))
WHOLE(SOCKET, int, connect, (int a, const struct sockaddr *b, socklen_t c), (a, b, c))
WHOLE(SOCKET, int, listen, (int a, int b), (a, b))
WHOLE(SOCKET, int, accept4, (int a, struct sockaddr *b, socklen_t *c, int d), (a, b, c, d))
WHOLE(SOCKET, ssize_t, send, (int a, const void *b, size_t c, int d), (a, b, c, d))
WHOLE(SOCKET, ssize_t, recv, (int a, void *b, size_t c, int d), (a, b, c, d))
WHOLE(SOCKET, ssize_t, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c))
WHOLE(SOCKET, ssize_t, recvmsg, (int a, struct msghdr *b, int c), (a, b, c))
WHOLE(POLL, int, poll, (struct pollfd * a, nfds_t b, int c), (a, b, c))
WHOLE(POLL, int, ppoll, (struct pollfd * a, nfds_t b, const struct timespec *c, const sigset_t *d), (a, b, c, d))
WHOLE(WAIT, pid_t, waitpid, (pid_t a, int *b, int c), (a, b, c))
WHOLE(WAIT, int, waitid, (idtype_t a, id_t b, siginfo_t *c, int d), (a, b, c, d))
WHOLE(FTRUNCATE, int, ftruncate, (int a, off_t b), (a, b))
WHOLE(FTRUNCATE, int, ftruncate64, (int a, off64_t b), (a, b))
WHOLE(RENAME, int, rename, (const char *a, const char *b), (a, b))
WHOLE(RENAME, int, fsync, (int a), (a))
WHOLE(OPEN, int, pipe2, (int a[2], int b), (a, b))

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	NEXT(pthread_create);
	return FAILS(THREAD) ? how : next(t, a, fn, arg);
}

EXPORT int prctl(int option, ...)
{
	NEXT(prctl);
	va_list v;
	va_start(v, option);
	unsigned long a = va_arg(v, unsigned long), b = va_arg(v, unsigned long);
	unsigned long c = va_arg(v, unsigned long), d = va_arg(v, unsigned long);
	va_end(v);
	return FAILS(PRCTL) ? -1 : next(option, a, b, c, d);
}

int ioctl(int fd, unsigned long request, ...);
EXPORT int ioctl(int fd, unsigned long request, ...)
{
	NEXT(ioctl);
	va_list v;
	va_start(v, request);
	void *arg = va_arg(v, void *);
	va_end(v);
	return FAILS(IOCTL) ? -1 : next(fd, request, arg);
}

EXPORT long syscall(long number, ...)
{
	NEXT(syscall);
	va_list v;
	va_start(v, number);
	long a = va_arg(v, long), b = va_arg(v, long), c = va_arg(v, long);
	long d = va_arg(v, long), e = va_arg(v, long), f = va_arg(v, long);
	va_end(v);
	enum class class = number == SYS_futex ? FUTEX : number == SYS_userfaultfd ? USERFAULTFD : SYSCALL;
	if (!next) /* the call came before the C library was initialised */
		next = (__typeof__(syscall) *)dlsym(RTLD_NEXT, "syscall");
	return FAILS(class) ? -1 : next(number, a, b, c, d, e, f);
}

/* ---- files ----------------------------------------------------------------------------------- */

#define OPEN(name, path, ...)                                                                                          \
	{                                                                                                              \
		NEXT(name);                                                                                            \
		va_list v;                                                                                             \
		va_start(v, flags);                                                                                    \
		int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(v, int) : 0;                                       \
		va_end(v);                                                                                             \
		if (FAILS(OPEN))                                                                                       \
			return -1;                                                                                     \
		int fd = next(__VA_ARGS__, flags, mode);                                                               \
		if (fd >= 0 && flags & O_CREAT)                                                                        \
			made("", path);                                                                                \
		return fd;                                                                                             \
	}
EXPORT int open(const char *path, int flags, ...) OPEN(open, path, path) EXPORT
    int open64(const char *path, int flags, ...) OPEN(open64, path, path) EXPORT
    int openat(int at, const char *path, int flags, ...) OPEN(openat, path, at, path)

	EXPORT int shm_open(const char *name, int flags, mode_t mode)
{
	NEXT(shm_open);
	if (FAILS(OPEN))
		return -1;
	int fd = next(name, flags, mode);
	if (fd >= 0 && flags & O_CREAT)
		made(name[0] == '/' ? "/dev/shm" : "/dev/shm/", name);
	return fd;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	NEXT(fopen);
	return FAILS(OPEN) ? NULL : next(path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	NEXT(fopen64);
	return FAILS(OPEN) ? NULL : next(path, mode);
}

EXPORT char *mkdtemp(char *path)
{
	NEXT(mkdtemp);
	char *name = FAILS(OPEN) ? NULL : next(path);
	if (name)
		made("", name);
	return name;
}

#define PART(class, name, data, params, whole, half)                                                                   \
	EXPORT ssize_t name params                                                                                     \
	{                                                                                                              \
		NEXT(name);                                                                                            \
		if (!due(class, CALLER))                                                                               \
			return next whole;                                                                             \
		return cut ? next half : -1;                                                                           \
	}
#define HALF(n) ((n) > 1 ? (n) / 2 : (n))
PART(READ, read, void, (int fd, void *to, size_t n), (fd, to, n), (fd, to, HALF(n)))
PART(READ, pread, void, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), (fd, to, HALF(n), at))
PART(READ, pread64, void, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), (fd, to, HALF(n), at))
PART(WRITE, write, const void, (int fd, const void *from, size_t n), (fd, from, n), (fd, from, HALF(n)))
PART(WRITE, pwrite, const void, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at),
     (fd, from, HALF(n), at))
PART(WRITE, pwrite64, const void, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at),
     (fd, from, HALF(n), at))
