# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, in every language that may include it.
. tests/lib.sh
for header in "$B"/include/gpuloom/*.h "$B"/include/gpuloom/dev/*.h; do
	name=${header#"$B"/include/}
	case $name in */cuda.h | */hip.h | */gpu_ir.h | */layer.h) continue ;; esac # dev.h, or a compiler of a vendor, includes these
	echo "#include <$name>" >"$tmp/x.c"
	cp "$tmp/x.c" "$tmp/x.cc"
	cp "$tmp/x.c" "$tmp/x.cu"
	warn="-Wall -Wextra -Werror -I$B/include -fsyntax-only"
	gcc -std=c11 -D_GNU_SOURCE $warn "$tmp/x.c" || fail "$name in C11"
	gcc -std=c17 -D_GNU_SOURCE $warn "$tmp/x.c" || fail "$name in C17"
	# Strict C: the C library hides functions without a feature macro, and undeclared calls are errors.
	for macros in '' -D_POSIX_C_SOURCE=200809L -DLOOM_PERTURB; do
		gcc -std=c11 -pedantic $macros $warn -Werror=implicit-function-declaration "$tmp/x.c" ||
			fail "$name in strict C11 $macros"
	done
	g++ -std=c++11 $warn "$tmp/x.cc" || fail "$name in C++11"
	g++ -std=c++17 -Wpedantic $warn "$tmp/x.cc" || fail "$name in C++17"
	nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
	[ -z "$nvcc" ] ||
		"$nvcc" -std=c++17 -arch=sm_75 "-I$B/include" -ptx "$tmp/x.cu" -o \
		"$tmp/x.ptx" ||
		fail "$name under nvcc"
done
for program in bench/*.cu; do # otherwise these programs are compiled only on a machine with a GPU
	[ -n "$nvcc" ] || break
	# Two programs measure libraries of NVIDIA, whose headers not every machine has (NVCC_APPEND_FLAGS may name their folder).
	library=$(sed -n 's/^#include <\(nvshmem\|nccl_device\)\.h>.*/\1.h/p' "$program")
	echo "#include <${library:-stdint.h}>" >"$tmp/x.cu"
	if ! "$nvcc" -std=c++17 -E "$tmp/x.cu" -o "$tmp/x.ii" 2>/dev/null; then
		echo "$program is left out, as $library is not here"
		continue
	fi
	"$nvcc" -std=c++17 -arch=sm_90 -rdc=true "-I$B/include" -ptx "$program" -o "$tmp/x.ptx" || fail "$program under nvcc"
done
# Structs of device code are in blocks of memory that are compared as bytes, so the structs must have no padding.
gcc -std=gnu11 -D_GNU_SOURCE "-I$B/include" -I. -Iplugins -Wpadded -fsyntax-only plugins/*/*.c plugins/*_common/*/*.c \
	plugins/workloads/*/*.c \
	2>&1 | grep '\.dev\.h:.*-Wpadded' && fail 'padding in a struct of device code'
# clang has other warnings than gcc; the tests compile without warnings under both.
if command -v clang >/dev/null; then
	for test in tests/test_*.c; do
		case $test in *test_compose*) continue ;; esac # these tests need a vendor's headers
		clang -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wshadow "-I$B/include" -Icore -Ilab -I. -Iplugins -fsyntax-only "$test" ||
			fail "clang and $test"
	done
fi
finish
