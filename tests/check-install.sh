# SPDX-License-Identifier: Apache-2.0
# An installed tree works without the source: the command, an embedding program, an out-of-tree plug-in.
. tests/lib.sh
plain_build 'the plain build is installed'
make -s install DESTDIR= PREFIX="$tmp/usr" >"$tmp/out" || fail 'make install'
grep -q "^installed: $tmp/usr/bin/gpuloom, " "$tmp/out" || fail 'make install does not say what went where'
# The tree is installed in every packager's layout: libraries elsewhere, a relative DESTDIR, blanks in PREFIX.
mkdir "$tmp/b" && cp -a "$B/obj" "$B/plugins" "$B/build-facts.h" "$tmp/b/" || fail 'a copy of the build'
layout() { # FOLDER OPTION...: installs, checks that plug-ins and files are found there, and uninstalls
	at=$1
	shift
	before=$(git status --short 2>/dev/null)
	make -s install B="$tmp/b" "$@" >"$tmp/out" 2>&1 || { fail "make install $*"; cat "$tmp/out"; }
	expect 0 "^device +cpu .* $at/.*/gpuloom/plugins/device_cpu.so" "$at/bin/gpuloom" list -v
	for f in gpuloom/conf/wic.ini gpuloom/conf/qos/storm.ini gpuloom/python/gpuloom/foreign.py man/man1/gpuloom.1 \
		bash-completion/completions/gpuloom \
		doc/gpuloom/LICENSE doc/gpuloom/docs/options.md \
		doc/gpuloom/docs/plugins.md \
		doc/gpuloom/examples/embed/collatz.c; do
		[ -s "$at/share/$f" ] || fail "make install $*: no share/$f"
	done
	expect 0 'sort --threads' "$at/bin/gpuloom" report tests/data/foreign/hyperfine.json
	"$at/bin/gpuloom" new-plugin term fresh --dir "$tmp/fresh" >/dev/null 2>&1 &&
		env -u PKG_CONFIG_PATH make -s -C "$tmp/fresh" >"$tmp/out" 2>&1 ||
		{ fail "new-plugin of $at"; cat "$tmp/out"; }
	rm -rf "$tmp/fresh"
	[ "$before" = "$(git status --short 2>/dev/null)" ] || fail "make install $*: files in the sources"
	make -s uninstall B="$tmp/b" "$@" >/dev/null || fail "make uninstall $*"
	[ -z "$(find "$at" ! -type d)" ] && [ ! -e "$at/share/gpuloom" ] || fail "make uninstall $*: left files"
}
# Links of the installed pages, among them links to plug-ins, have targets.
doc=$tmp/usr/share/doc/gpuloom
find "$doc" -name '*.md' | while read -r page; do
	grep -o '](\([^)#]*\)' "$page" | cut -c3- | grep -v '://' | while read -r link; do
		[ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: dead link $link"
	done
done >"$tmp/dead"
[ ! -s "$tmp/dead" ] || { fail 'docs_F10: dead links in installed pages'; cat "$tmp/dead"; }
for f in docs/kinds/sched.md docs/limits.md plugins/sched_mgws/README.md plugins/device_common/gpu/README.md examples/slurm/README.md; do
	[ -s "$doc/$f" ] || fail "docs_F10: no $f"
done
grep -q '](\.\./plugins/sched_mgws/README.md)' "$doc/docs/scheduling.md" ||
	fail 'docs_F10: a link that leads somewhere is lost'
layout "$tmp/x/usr" DESTDIR="$tmp/x" PREFIX=/usr LIBDIR=/usr/lib/x86_64-linux-gnu
rel=$(realpath --relative-to=. "$tmp/stage")
layout "$tmp/stage/opt" DESTDIR="$rel" PREFIX=/opt
layout "$tmp/a b/c d" DESTDIR= PREFIX="$tmp/a b/c d"
export PKG_CONFIG_PATH="$tmp/usr/lib/pkgconfig" PATH="$tmp/usr/bin:$PATH"
[ "$(pkg-config --variable=plugindir gpuloom)" = "$tmp/usr/lib/gpuloom/plugins" ] || fail plugindir
# A CMake project in strict C11 finds the package, also after the tree was moved. Another series of versions is refused.
if command -v cmake >/dev/null; then
	mkdir "$tmp/cmake" && cat >"$tmp/cmake/CMakeLists.txt" <<-'END'
	cmake_minimum_required(VERSION 3.16)
	project(user C)
	set(CMAKE_C_STANDARD 11)
	set(CMAKE_C_EXTENSIONS OFF)
	find_package(gpuloom ${WANTED} REQUIRED)
	add_executable(user user.c)
	target_compile_options(user PRIVATE -Wall -Wextra -Wpedantic -Werror)
	target_link_libraries(user PRIVATE gpuloom::gpuloom)
	add_library(own MODULE own.c)
	target_link_libraries(own PRIVATE gpuloom::plugin)
	END
	printf '#include <gpuloom/gpuloom.h>\n#include <stdio.h>\nint main(void) { puts(loom_version()); return 0; }\n' \
		>"$tmp/cmake/user.c"
	echo '#include <gpuloom/sched.h>' >"$tmp/cmake/own.c"
	cp -a "$tmp/usr" "$tmp/moved"
	for at in usr moved; do
		cmake -S "$tmp/cmake" -B "$tmp/$at-built" -DWANTED=0.1 -DCMAKE_PREFIX_PATH="$tmp/$at" >"$tmp/out" 2>&1 &&
			cmake --build "$tmp/$at-built" >"$tmp/out" 2>&1 || { fail "CMake package in $at"; cat "$tmp/out"; }
		expect 0 "^$("$tmp/usr/bin/gpuloom" --version | cut -d' ' -f2)\$" "$tmp/$at-built/user"
	done
	cmake -S "$tmp/cmake" -B "$tmp/other" -DWANTED=9.0 -DCMAKE_PREFIX_PATH="$tmp/usr" >/dev/null 2>&1 &&
		fail 'the CMake package accepts version 9.0'
	rm -rf "$tmp/moved"
else
	echo 'there is no cmake: the CMake package is not tested'
fi
# The man page has no mistakes, and the sections that a reader looks for.
man=$tmp/usr/share/man/man1/gpuloom.1
for part in FILES EXAMPLES; do
	grep -q "^[.]SH $part" "$man" || fail "the man page has no $part"
done
! command -v man >/dev/null || [ -z "$(MANWIDTH=80 man --warnings -l "$man" 2>&1 >/dev/null)" ] || fail 'man warns of the man page'
# The installed confs are found by name in any folder.
(failures=0; cd / && expect 0 'verified' gpuloom run conf/uts.ini --samples 1 --set workload.uts.tree=custom \
	--set workload.uts.depth=4
	expect 0 '^thesis/figure-26 ' gpuloom list confs
	exit $failures) || fail 'docs_F12: installed confs'
cp -r examples "$tmp/examples"
cd "$tmp/examples" || exit 1
make -s -C embed || fail 'examples/embed does not build'
# The examples with kernels of their own are only built here. tests/cuda/run.sh runs stream on a GPU.
if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
	make -s -C embed stream norm NVCC="$nvcc" || fail 'examples/embed/*.cu do not build'
fi
make -s -C plugin-term-ring || fail 'examples/plugin-term-ring does not build'
# The workload sums up vectors over ranks. It is built with the installed headers alone.
make -s -C workload-average || fail 'examples/workload-average does not build'
for with in peer:auto peer:ring gputn:ring; do
	[ -e "$tmp/usr/lib/gpuloom/plugins/trigger_${with%:*}.so" ] || continue
	expect 0 '3 samples, each verified' sh -c 'cd workload-average && gpuloom run -n 3 workload_average.ini --set trigger.use=$0 \
		--set workload.average.algorithm=$1' ${with%:*} ${with#*:}
done
seq 100000 >"$tmp/numbers"
tr '\n' ' ' <"$tmp/numbers" >"$tmp/line"
words=$(embed/wordcount "$tmp/numbers" "$tmp/line") || fail wordcount
for ranks in 1 2 3; do
	embed/sums $ranks | grep -q '^pi is about 3.14159' || fail "sums $ranks"
done
[ "$words" = 200000 ] ||
	fail "wordcount says $words"
# The lines of docs/embedding.md for MPI, in a program whose ranks meet at a barrier.
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
	page=$OLDPWD/docs/embedding.md
	{
		printf '#include <gpuloom/gpuloom.h>\n#include <mpi.h>\n#include <stdio.h>\n'
		sed -n '/^static int gather/,/^}/p' "$page"
		cat <<-'END'
		int main(int argc, char **argv)
		{
			static const char conf[] = "[run]\ndevices = cpu:0\n[device.cpu]\nworkers = 1\noversubscribe = yes\n[transport]\n"
						   "use = host\n[scheduler]\nuse = mgws\n[termination]\nuse = counter\n[trigger]\nuse = peer\n";
			MPI_Comm comm = MPI_COMM_WORLD;
			struct loom_error err = {0};
			struct loom_config *cfg;
			struct loom_stack *stack = NULL;
			int rank, number;
			MPI_Init(&argc, &argv);
			MPI_Comm_rank(comm, &rank);
			MPI_Comm_size(comm, &number);
			if (loom_config_create(&cfg, &err) || loom_config_load_text(cfg, "built in", conf, &err))
				return puts(err.text), 1;
		END
		sed -n '/^	struct loom_ranks ranks = .*valid until/,/loom_stack_open(/p' "$page"
		cat <<-'END'
			if (!stack || loom_stack_barrier(stack, &err))
				return puts(err.text), 1;
			printf("rank %d of %d\n", rank, number);
			loom_stack_close(stack);
			loom_config_destroy(cfg);
			return MPI_Finalize();
		}
		END
	} >mpi.c
	mpicc -Wall -Werror mpi.c -o mpi $(pkg-config --cflags --libs gpuloom) -Wl,-rpath,"$tmp/usr/lib" ||
		fail 'docs/embedding.md: the lines for MPI do not compile'
	for rank in 0 1; do
		expect 0 "^rank $rank of 2\$" mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 ./mpi
	done
else
	echo 'no mpicc and mpirun here (Debian: libopenmpi-dev, openmpi-bin): that part is left out'
fi

# Task functions as source text are compiled here, for CPUs. The message of a mistake names the file and the line.
steps=$(awk 'BEGIN { for (i = 1; i <= 20000; i++) for (x = i; x != 1; n++) x = x % 2 ? 3 * x + 1 : x / 2; print n }')
cd embed || exit 1
mkdir "$tmp/left"
export TMPDIR="$tmp/left"
expect 0 "^$steps\$" ./collatz 20000
expect 0 '^332833500$' ./batches 1
expect 0 '^333328333350000$' ./batches 100
sed 's/uint64_t first = t->param\[0\]/no_such_type first = t->param[0]/' collatz.dev.h >wrong.dev.h
line=$(grep -n no_such_type wrong.dev.h | cut -d: -f1)
expect 1 "cpu:0: the task functions' source does not compile: wrong.dev.h:$line:.*no_such_type" \
	./collatz 20000 cpu:0 wrong.dev.h
expect 1 'no C compiler can be run .*/no/such/cc' env CC=/no/such/cc ./collatz 20000
expect 1 "cannot read 'none.dev.h': No such file" ./collatz 20000 cpu:0 none.dev.h
# Task functions can be IR, which for a CPU is a shared object. The stack gives the tag. IR for another device is rejected.
expect 0 "^$steps\$" ./collatz 20000 cpu:0 collatz.so
printf '.version 9.0\n.target sm_80\n' >some.ptx
expect 1 "cpu:0: some.ptx: task function 'collatz_range' is PTX: add a shared object of it" ./collatz 20000 cpu:0 \
	some.ptx
expect 0 "^$steps\$" ./collatz 20000 cpu:0 some.ptx collatz.so
sed 's/LOOM_IR_TASK(collatz_range)/LOOM_IR_TASK(other)\nLOOM_FN void other(struct loom_ctx *c, const struct loom_task *t) { (void)c, (void)t; }/;
	s/LOOM_IR_TAG(collatz_range)/LOOM_IR_TAG(other)/' collatz_ir.c >other_ir.c
${CC:-cc} -fPIC -shared -w $(pkg-config --cflags gpuloom) other_ir.c -o other.so || fail 'other_ir.c does not compile'
expect 1 "cpu:0: other.so: it has no task function 'collatz_range' for this version" ./collatz 20000 cpu:0 other.so
# A process may use several objects, and the same objects on a second stack.
for add in 1 10; do
	cat >add.c <<-END
	#include <gpuloom/dev/ir.h>
	LOOM_IR_TASK(add_$add)
	LOOM_FN void add_$add(struct loom_ctx *c, const struct loom_task *t)
	{
		if (c->lane == 0)
			loom_fetch_add_relaxed_sys((uint64_t *)loom_at(c, t->data.ref), (uint64_t)$add);
	}
	END
	${CC:-cc} -fPIC -shared $(pkg-config --cflags gpuloom) add.c -o "add_$add.so" || fail 'add.c does not compile'
done
cat >two.c <<-'END'
	#include <gpuloom/gpuloom.h>
	#include <stdio.h>
	int main(void)
	{
		static const char conf[] = "[run]\ndevices = cpu:0\n[transport]\nuse = host\n[scheduler]\nuse = mgws\n[termination]\nuse = counter\n";
		static const char *const one[] = {"add_1"}, *const ten[] = {"add_10"};
		for (int i = 0; i < 2; i++) {
			struct loom_error err = {0};
			struct loom_config *cfg;
			struct loom_stack *s;
			struct loom_result *result = NULL;
			uint32_t a, b;
			loom_ref ref;
			void *host;
			if (loom_config_create(&cfg, &err) || loom_config_load_text(cfg, "built in", conf, &err) ||
			    loom_stack_open(cfg, NULL, &s, &err) ||
			    loom_stack_ir(s, i ? "add_10.so" : "add_1.so", NULL, 0, i ? ten : one, 1, &a, &err) ||
			    loom_stack_ir(s, i ? "add_1.so" : "add_10.so", NULL, 0, i ? one : ten, 1, &b, &err) ||
			    loom_stack_alloc(s, 8, &ref, &host, &err)) {
				puts(err.text);
				return 1;
			}
			struct loom_task t[] = {{.tag = a, .data = {.ref = ref}}, {.tag = b, .data = {.ref = ref}}};
			if (loom_stack_submit(s, t, 2, &err) || loom_stack_run(s, &result, &err)) {
				puts(err.text);
				return 1;
			}
			printf("%llu\n", (unsigned long long)*(uint64_t *)host);
			loom_result_destroy(result);
			/* IR may come after the first run: the name keeps its tag, and the other task is still there. */
			if (loom_stack_ir(s, "add_1.so", NULL, 0, one, 1, &a, &err) || loom_stack_submit(s, t, 2, &err) ||
			    loom_stack_run(s, NULL, &err))
				puts(err.text);
			printf("%llu\n", (unsigned long long)*(uint64_t *)host);
			loom_stack_close(s);
			loom_config_destroy(cfg);
		}
		return 0;
	}
END
${CC:-cc} two.c -o two $(pkg-config --cflags --libs gpuloom) -Wl,-rpath,"$tmp/usr/lib" || fail 'two.c does not compile'
[ "$(./two)" = "$(printf '11\n22\n11\n22')" ] || fail "two objects on two stacks: $(./two)"
expect 1 "task function 'collatz_range' is registered already, and not as IR" ./collatz 20000 cpu:0 collatz.dev.h collatz.so
head -c 2000 collatz.so >cut.so
expect 1 'cpu:0: cut.so: the object file cannot be loaded: ' ./collatz 20000 cpu:0 cut.so
[ -z "$(ls "$TMPDIR")" ] || fail 'compiling leaves files behind'
unset TMPDIR
cd ..
cd plugin-term-ring || exit 1
expect 0 'term_ring' gpuloom describe ./term_ring.so
expect 0 'verified' gpuloom run "$tmp/usr/share/gpuloom/conf/fib.ini" term_ring.ini --samples 20 \
	--set workload.fib.n=18
expect 0 'verified' gpuloom run "$tmp/usr/share/gpuloom/conf/uts.ini" term_ring.ini --samples 5 \
	--set workload.uts.tree=custom --set device.cpu.workers=3 --set device.cpu.isolation=process
finish
