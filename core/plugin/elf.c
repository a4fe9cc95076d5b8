/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the manifest from a plug-in's ELF file. The file is not trusted: every offset and size is checked against the
 * size of the file before its use, sums cannot wrap, and loops are bounded. The file is not mapped, because a mapped
 * file that another program shortens would raise SIGBUS. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/identity.h"

enum { MOST_NOTES = 4096 };

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OUR_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define OUR_MACHINE EM_PPC64
#else
#define OUR_MACHINE EM_NONE /* only dlopen() checks the machine */
#endif

struct file {
	const char *path; /* for messages */
	int fd;
	uint64_t size;
	unsigned notes; /* number of notes read so far */
	int number;     /* errno of a failed read, or 0; after a failure, later results are invalid */
};

static int inside(const struct file *f, uint64_t offset, uint64_t length)
{
	return offset <= f->size && length <= f->size - offset;
}

static int get(struct file *f, uint64_t offset, void *to, size_t n)
{
	char *at = to;
	if (!inside(f, offset, n))
		return 0;
	while (n) {
		ssize_t got = pread(f->fd, at, n, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			f->number = errno;
		if (got <= 0)
			return 0;
		at += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 1;
}

static int unreadable(const struct file *f, int number, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: cannot be read: %s%s", f->path, strerror(number),
			  number == EACCES ? "; check its permissions" : "");
}

static int cut_short(const struct file *f, struct loom_error *err)
{
	return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: the file is cut short or damaged; build or copy it again", f->path);
}

static uint64_t round_up4(uint32_t n)
{
	return ((uint64_t)n + 3) & ~(uint64_t)3;
}

/* Returns 1 and fills *out if the notes in the range contain the manifest. The range must be inside the file. */
static int search_notes(struct file *f, uint64_t offset, uint64_t length, struct loom_manifest *out)
{
	uint64_t end = offset + length;
	while (end - offset >= sizeof(Elf64_Nhdr) && f->notes++ < MOST_NOTES) {
		Elf64_Nhdr note;
		char owner[8];
		if (!get(f, offset, &note, sizeof(note)))
			return 0;
		offset += sizeof(note);
		uint64_t name = round_up4(note.n_namesz), desc = round_up4(note.n_descsz);
		if (name > end - offset || desc > end - offset - name)
			return 0;
		/* The manifest of a later minor version may be longer, but begins with the same fields. */
		if (note.n_type == LOOM_NOTE_TYPE && note.n_namesz == sizeof(owner) &&
		    get(f, offset, owner, sizeof(owner)) && !memcmp(owner, "gpuloom", 8) &&
		    note.n_descsz >= sizeof(*out))
			return get(f, offset + name, out, sizeof(*out));
		offset += name + desc;
	}
	return 0;
}

/* Searches note segments for the manifest. Checks first that all segments are inside the file, because dlopen() would
 * map pages that do not exist. */
static int read_segments(struct file *f, const Elf64_Ehdr *h, int *found, struct loom_manifest *out,
			 struct loom_error *err)
{
	for (unsigned i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		if (h->e_phoff > f->size || !get(f, h->e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)))
			return cut_short(f, err);
		if ((p.p_type == PT_LOAD || p.p_type == PT_DYNAMIC || p.p_type == PT_NOTE) &&
		    !inside(f, p.p_offset, p.p_filesz))
			return cut_short(f, err);
		if (p.p_type == PT_NOTE && !*found)
			*found = search_notes(f, p.p_offset, p.p_filesz, out);
	}
	return 0;
}

static int read_header(struct file *f, Elf64_Ehdr *h, struct loom_error *err)
{
	if (!get(f, 0, h, sizeof(*h)) || memcmp(h->e_ident, ELFMAG, SELFMAG))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: not an ELF file, so it is not a plug-in; name a shared "
				"object (.so)", f->path);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    (OUR_MACHINE != EM_NONE && h->e_machine != OUR_MACHINE))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: made for another kind of machine (ELF class %u, machine "
				"%u; this is %u); build it for this one", f->path, h->e_ident[EI_CLASS],
				h->e_machine, OUR_MACHINE);
	if (h->e_type != ET_DYN)
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: not a shared object; link it with -shared", f->path);
	/* The section headers may be stripped. If they exist, they are at the end of the file, so a truncated file
	 * lacks some of them. */
	if (h->e_phentsize != sizeof(Elf64_Phdr) ||
	    (h->e_shoff && !inside(f, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))))
		return cut_short(f, err);
	return 0;
}

int loom__elf_read(const char *path, int *found, struct loom_manifest *out, struct loom_error *err)
{
	struct file f = {.path = loom__shown(path)};
	struct stat st;
	Elf64_Ehdr h;
	*found = 0;
	memset(out, 0, sizeof(*out));
	/* If the path is a FIFO, open() must not block. If it is a terminal, the terminal must not become the
	 * controlling terminal of this process. */
	f.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f.fd < 0)
		return errno == ENOENT || errno == ENOTDIR
			   ? LOOM__FAIL(err, LOOM_ENOENT, "%s: no such plug-in file; check the path", f.path)
			   : unreadable(&f, errno, err);
	int rc;
	if (fstat(f.fd, &st) || !S_ISREG(st.st_mode)) {
		rc = LOOM__FAIL(err, LOOM_EPLUGIN, "%s: %s, not a plug-in; name a shared object (.so)", f.path,
				S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
	} else {
		f.size = (uint64_t)st.st_size;
		rc = read_header(&f, &h, err);
		rc = rc ? rc : read_segments(&f, &h, found, out, err);
		if (f.number)
			rc = unreadable(&f, f.number, err);
	}
	close(f.fd);
	loom__manifest_clean(out);
	return rc;
}
