# SPDX-License-Identifier: Apache-2.0
# One non-recursive Makefile builds all parts. `make help` lists the targets; CONTRIBUTING.md describes the folders.
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.SECONDARY: # make keeps the objects of tests

VERSION := 0.1.0
SAN ?=
# A comma in a path would end an argument of make's functions, so SAN=address,undefined builds in address+undefined.
comma := ,
B := build$(if $(SAN),/$(subst $(comma),+,$(SAN)))
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif

CSTD := -std=gnu11
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
OPT  ?= -O2 -g
# The public headers. $B/include has links to them, under the names that they have when installed.
PUBLIC := core/include comm/include $(wildcard plugins/device_*/include)
PUBLIC_HEADERS := $(foreach d,$(PUBLIC),$(wildcard $d/gpuloom/*.h $d/gpuloom/dev/*.h))
CPPFLAGS += $(PUBLIC:%=-I%) -Icore -Ilab -I. -D_GNU_SOURCE -DLOOM_VERSION_TEXT='"$(VERSION)"'
# A hot function that crosses a cache line is up to 4 % slower, so functions are aligned.
CFLAGS += $(CSTD) $(OPT) $(WARN) -fPIC -fvisibility=hidden -fno-common -falign-functions=64 -pthread
LDFLAGS += -pthread -Wl,-z,defs -Wl,--as-needed -Wl,--build-id=sha1
PERTURB ?=
ifneq ($(PERTURB),)
B := $B/perturbed
CPPFLAGS += -DLOOM_PERTURB
endif
ifneq ($(SAN),)
CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer -O1
LDFLAGS += -fsanitize=$(SAN)
endif
# make prints short lines; V=1 shows the commands.
V ?=
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-7s %s\n' $1 $2)

CORE_LIBS := -liniparser -lcjson -lz -lm -ldl

# ---- core/ with lib/ is the library; lab/ and conform/ are the rest of the command --------------------------------
# Only libgpuloom.so has this file, by which it loads the libraries that other programs link to.
BORROWED := core/base/borrowed.c
LIB_SRC := $(sort $(filter-out $(BORROWED),$(wildcard core/*/*.c comm/*.c)) lib/text.c)
LAB_SRC := $(sort $(filter-out lab/cli/%,$(wildcard lab/*/*.c lab/*/*/*.c)) $(wildcard conform/*.c rig/*.c) explore/rewrite.c lib/child.c lib/replace.c plugins/device_common/explore/fiber.c)
CLI_SRC := $(sort $(wildcard lab/cli/*.c lab/cli/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$B/obj/%.o)
LAB_OBJ := $(LAB_SRC:%.c=$B/obj/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$B/obj/%.o)

all: $B/gpuloom $B/libgpuloom.so $B/include $B/explore/libexplore.a
$B/include: $(PUBLIC_HEADERS) Makefile
	@rm -rf $@ && mkdir -p $@/gpuloom/dev
	@for d in $(PUBLIC); do for f in $$(cd $$d && find gpuloom -name '*.h'); do ln -sf "$(CURDIR)/$$d/$$f" $@/$$f || exit 1; done; done

# The mandatory dependencies are checked once per build folder.
ALL_FLAGS := $(CPPFLAGS) $(CFLAGS) # the flags without those that single targets add, for the check below
REQUIRED := iniparser/iniparser.h cjson/cJSON.h numa.h zlib.h
$B/required: Makefile
	@mkdir -p $(@D)
	@command -v $(firstword $(CC)) >/dev/null || \
	  { echo "not found: $(firstword $(CC)), the compiler; 'tools/deps build' installs what the build needs" >&2; exit 1; }
	@echo | $(CC) $(ALL_FLAGS) -x c -E - >/dev/null # wrong flags are a different error
	@for header in $(REQUIRED); do \
	  echo "#include <$$header>" | $(CC) $(ALL_FLAGS) -x c -E - >/dev/null 2>&1 || missing="$$missing $$header"; \
	done; [ -z "$$missing" ] || { echo "not found:$$missing; 'tools/deps build' installs what the build needs" >&2; exit 1; }
	@touch $@
$B/obj/%.o: %.c Makefile | $B/required
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c $< -o $@

# These facts of the build go into results. The file is written only if a fact has changed, to avoid rebuilds.
# A source archive has no repository, and its revision is in SOURCES (tools/dist). REVISION=TEXT replaces the revision.
REVISION ?= $(if $(wildcard .git),$(shell git --no-optional-locks describe --always --dirty --abbrev=12 2>/dev/null),$(firstword $(file <SOURCES)))
REVISION := $(REVISION)
$B/build-facts.h: FORCE
	@mkdir -p $(@D)
	@printf '#define LOOM_BUILD_FLAGS "%s"\n#define LOOM_BUILD_REVISION "%s"\n' \
	  '$(CSTD) $(OPT)$(if $(SAN), -fsanitize=$(SAN))$(if $(PERTURB), -DLOOM_PERTURB)' '$(REVISION)' >$@.new
	$(unless_same)
# The installed command finds its plug-ins by a relative path, so that the installed tree can be moved.
$B/layout.h: FORCE
	@mkdir -p $(@D)
	@printf '#define LOOM_LIBDIR_FROM_BINDIR "%s"\n' \
	  "$$(realpath -m --relative-to='$(PREFIX)/bin' '$(LIBDIR)')" >$@.new
	$(unless_same)
unless_same = @cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:
.PHONY: FORCE
BUILD_FACTS := $(addprefix $B/obj/lab/,facts/facts.o facts/environment.o compare/document.o)
$(BUILD_FACTS): $B/build-facts.h
$(BUILD_FACTS): CPPFLAGS += -I$B
$B/obj/core/plugin/search.o $B/obj/lab/cli/explore/explore_kernel.o: $B/layout.h
$B/obj/core/plugin/search.o $B/obj/lab/cli/explore/explore_kernel.o: CPPFLAGS += -include $B/layout.h
# GCC vectorises the loops of a sum of CPUs at -O3 only. Then a sum takes a third of the time.
$B/obj/comm/comm.o: CFLAGS += $(if $(SAN),,-O3)

# Embedded files are not headers, so the compiler does not report them as dependencies.
$B/obj/lab/cli/plugin/templates.o: $(wildcard conform/templates/*)

$B/libgpuloom.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$Qrm -f $@ && ar rcs $@ $^

$B/lab.a: $(LAB_OBJ)
	$(call say,AR,$@)
	$Qrm -f $@ && ar rcs $@ $^

soname = $(shell readelf -d "$$($(CC) -print-file-name=lib$1.so)" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
$B/obj/$(BORROWED:.c=.o): CPPFLAGS += -DLOOM_CJSON_SONAME='"$(call soname,cjson)"' \
  -DLOOM_INIPARSER_SONAME='"$(call soname,iniparser)"'
$B/libgpuloom.so: $(LIB_OBJ) $B/obj/$(BORROWED:.c=.o)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) -Wl,-soname,libgpuloom.so.0 $^ -lm -ldl -o $@
	$Qln -sf libgpuloom.so $B/libgpuloom.so.0

$B/gpuloom: $(CLI_OBJ) $B/lab.a $B/libgpuloom.a
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) $^ $(CORE_LIBS) -o $@

# ---- explore/: what `gpuloom explore KERNEL.cu` compiles kernels with ----------------------------------------------------
# A model of this size has room for 320 threads. Kernels are not built with the sanitizers of this build.
EXPLORE_SIZES := -DRACE_FIBERS=320 -DRACE_BLOCKS=24 -DRACE_WORDS=2048 -DRACE_CELLS=262144 -DLOOM__EXPLORE_MAX=320
EXPLORE_OBJ := $(patsubst %.c,$B/obj/kernels/%.o,$(filter-out explore/rewrite.c,$(wildcard explore/*.c)) rig/explore.c \
  plugins/device_common/explore/race.c plugins/device_common/explore/fiber.c)
$(EXPLORE_OBJ): $B/obj/kernels/%.o: %.c Makefile | $B/required
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CSTD) -O2 -g $(WARN) $(EXPLORE_SIZES) -Iexplore/include/gpuloom/explore -MMD -MP -c $< -o $@
$B/explore/libexplore.a: $(EXPLORE_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$Q$(AR) rcs $@ $^
	@ln -sfn '$(CURDIR)/explore/include' $(@D)/include

# ---- plug-ins: plugins/*/plugin.mk and plugins/workloads/*/plugin.mk ----------------------------------------------------
# The lines about what is left out are printed with `all`, because targets such as `run` install packages first.
PLUGIN_MK := $(wildcard plugins/*/plugin.mk plugins/workloads/*/plugin.mk)
PLUGIN_DIR := $B/plugins/
include plugins/sdk.mk
define absent_rules
$B/plugins/$1.absent: FORCE
	@mkdir -p $$(@D) && rm -f $$(@:.absent=.so)
	@printf '%s\n' '$($1_WHY)' '$($1_MEND)' >$$@
all: $B/plugins/$1.absent
endef
$(foreach p,$(ABSENT),$(eval $(call absent_rules,$p)))

# ---- tests: tests/test_*.c is one program each; tests/plugins: deliberately faulty .so ----
TEST_SRC := $(sort $(wildcard tests/test_*.c))
# The tests with the machine model (docs/races.md) have functions of a sanitizer's runtime, so no sanitizer runs them.
RACES := $B/tests/test_races $B/tests/test_races_gpu $B/tests/test_races_net
RACES_DEVICE := $(patsubst %.dev.h,$B/obj/tests/races-%.o,$(notdir $(wildcard plugins/barrier/barrier_*.dev.h)) \
  sync_backoff.dev.h sync_poll.dev.h)
RACES_OBJ := $(RACES:$B/%=$B/obj/%.o) $(RACES_DEVICE)
ifneq ($(SAN),)
TEST_SRC := $(filter-out tests/test_races%,$(TEST_SRC))
endif
TESTS := $(TEST_SRC:tests/%.c=$B/tests/%)
BAD := $(shell sed -n 's/^#[a-z]* defined \(BAD_[a-z_]*\).*/\1/p' tests/plugins/bad.c)
FIXTURE_SRC := $(sort $(wildcard tests/plugins/workload_*.c))
FIXTURES := $(FIXTURE_SRC:tests/plugins/%.c=$B/tests/plugins/%.so) $(BAD:BAD_%=$B/tests/plugins/bad_%.so)

# The test interposes functions, to count what libraries open.
TEST_LIBS_test_embed := -rdynamic
TEST_LIBS_test_embed_gpu := -rdynamic
$(RACES_OBJ): CFLAGS += -fsanitize=thread -Wno-unknown-pragmas # which inserts calls of race.c at plain accesses
$(RACES_DEVICE): $B/obj/tests/races-%.o: tests/races_device.c Makefile | $B/required
	@mkdir -p $(@D)
	$(call say,CC,$*)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -DRACES_NAME=$* -DRACES_$(firstword $(subst _, ,$*)) \
	  '-DRACES_FILE="../plugins/$(firstword $(subst _, ,$*))/$*.dev.h"' -MMD -MP -c $< -o $@
$(RACES): $B/obj/plugins/device_common/explore/race.o
$B/tests/test_races_gpu: $(RACES_DEVICE)
$B/tests/%: $B/obj/tests/%.o $B/obj/tests/support.o $B/lab.a $B/libgpuloom.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(CORE_LIBS) -lcunit $(TEST_LIBS_$*) -o $@

$B/tests/plugins/bad_%.so: tests/plugins/bad.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -DBAD_$* -MMD -MP -MF $@.d -shared $(LDFLAGS) $< -o $@
$B/tests/plugins/%.so: tests/plugins/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -MF $@.d -shared $(LDFLAGS) $< -o $@

# `gpuloom validate` must find each of these faults (tests/check-validate.sh). Each plug-in is a template of new-plugin
# with one fault. The template marks the lines of a fault with the fault's name.
TEMPLATES := $(wildcard conform/templates/*.in)
BROKEN := $(patsubst %,$B/tests/broken/%.so,$(sort $(shell sed -n 's/^%+\{0,1\}\([a-z_]*\)%.*/\1/p' $(TEMPLATES))))
$B/tests/broken/%.so: tests/broken/plant.awk $(TEMPLATES) $(PUBLIC_HEADERS)
	@mkdir -p $(@D)
	$(call say,CC,$*)
	$Qfor f in $(filter conform/templates/$(firstword $(subst _, ,$*)).%,$^); do \
	  awk -v fault=$* -f $< $$f >$(@D)/$*.$$(basename $$f .in | cut -d. -f2-) || exit 1; done
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -I$(@D) -shared $(LDFLAGS) $(PLANTED) $(@D)/$*.c -o $@
# Only a deterministic schedule or ThreadSanitizer finds these faults.
$B/tests/broken/term_once.so: PLANTED := -DLOOM_PERTURB
# These use ThreadSanitizer only, since sanitizers cannot be combined. clang does not link its library into a plug-in.
$(filter %_weak.so,$(BROKEN)): PLANTED := -fno-sanitize=all -fsanitize=thread -Wl,-z,undefs

# limit ends tests that make no progress. Its limit is longer under a sanitizer and under a perturbed schedule. deny runs
# commands without some system calls.
$B/tests/limit $B/tests/deny: $B/tests/%: tests/%.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CSTD) $(WARN) -O2 -D_GNU_SOURCE -DLIMIT_SCALE=$(if $(SAN)$(PERTURB),8,1) $< -o $@

tests: all $(TESTS) $B/tests/limit $B/tests/deny $B/tests/soak_two $B/tests/faults.so $(FIXTURES) $(BROKEN)

-include $(EXPLORE_OBJ:.o=.d) $(LIB_OBJ:.o=.d) $B/obj/$(BORROWED:.c=.d) $(LAB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(PLUGIN_OBJ:.o=.d) $(TEST_SRC:%.c=$B/obj/%.d) $B/obj/tests/support.d $(RACES_OBJ:.o=.d) $B/obj/plugins/device_common/explore/race.d
-include $(FIXTURES:=.d)

.PHONY: all tests

# ---- benchmarks: bench-NAME writes build/bench/NAME*.json, and ends with a line for each figure:
#      bar NAME VALUE >=|<= TARGET ok|short
# BENCH='--blocks 60 --per-block best' goes to every comparison. docs/compare.md
BENCH ?=
define compare
	@mkdir -p $B/bench
	$B/gpuloom compare $2 --json $B/bench/$1.json $(BENCH) >$B/bench/$1.txt
	@grep -v '^bar ' $B/bench/$1.txt
endef
bars = @grep -h '^bar ' $(1:%=$B/bench/%.txt)

bench-tasks: all ## cost of schedulers, and speed-up of a second worker; OTHER=FOLDER: against another build
ifdef OTHER
	bench/tasks-two $B $(OTHER) $(BENCH)
else
	$(call compare,tasks-loop,conf/memset.ini --set run.warmup=3 --set device.cpu.workers=1 --set scheduler.use=static \
	  --vary run.workload=memset_loop$(comma)memset \
	  --bar 'memset_static_to_loop: seconds(memset_loop) / seconds(memset) >= 0.9')
	$(call compare,tasks-contains,conf/contains.ini --set run.warmup=2 --set device.cpu.workers=1 \
	  --vary 'run.devices=cpu:0$(comma)cpu:0 cpu:1' \
	  --bar 'contains_two_workers: seconds(cpu:0) / seconds(cpu:0 cpu:1) >= 1.9')
	$(call bars,tasks-loop tasks-contains)
	$(MAKE) bench-peers
endif

bench-aa: tests ## false and missed differences of compare on a loaded machine: two hours and a half, resumable
	bench/aa.py $B $(BENCH)

.PHONY: bench-tasks bench-aa

# ---- targets for users ------------------------------------------------------------------------------
help: ## this list
	@echo "gpuloom $(VERSION): targets"
	@for which in -v -e; do \
	  sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | grep $$which 'make bench'; \
	done | expand -t 24
	@echo "  make SAN=address|undefined|thread check    the tests under a sanitizer, in build/SAN/: 3 to 5 times as long"
	@echo "  make PERTURB=1 check                       the tests with a perturbed schedule"
	@echo "  make B=/path                               build there, in place of build/"
	@echo "  make CUDA=0 HIP=0 FABRIC=0 PMIX=0  without these; =1 insists on one"
	@echo "  make CC=clang V=1                          another compiler; the commands shown"

# Without -j the build would use one core.
on_all_cores = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
run: ## install what is missing, build, run the main job
	tools/deps build
	$(MAKE) $(on_all_cores) all
	$B/gpuloom run conf/contains.ini

check: ## install what is missing, build, run the tests (a quarter of an hour on two quiet cores)
	tools/deps build check
	$(MAKE) $(on_all_cores) tests
	$(MAKE) check-built
check-rest: ## the tests that check leaves out (ten minutes)
	tools/deps build check
	$(MAKE) $(on_all_cores) tests
	$(MAKE) check-built ALL=--rest
check-all: ## all tests, in full, with models and mutants (half an hour)
	tools/deps build check
	$(MAKE) $(on_all_cores) tests
	$(MAKE) check-built ALL=--all

check-built: tests
	tests/run-all $(ALL) $B

# Sanitizer builds run these programs, which have several threads. Small queues make rare paths common.
CONCURRENT := $(filter $B/tests/test_device_cpu $B/tests/test_transport $B/tests/test_workloads \
  $B/tests/test_sched% $B/tests/test_stall $B/tests/test_eventcount $B/tests/test_embed $B/tests/test_sync% $B/tests/test_term%,$(TESTS))

# The library is preloaded, so a sanitizer would interpose the same functions.
$B/tests/faults.so: tests/faults/shim.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -shared $< -ldl -o $@
check-outside: tests ## build all plug-ins outside of the tree, with the installed files alone
	tests/run-all $B tests/check-outside.sh
.PHONY: check-outside
check-faults: ## calls that fail, each judged: a sample, or all with FAULTS=all (a quarter of an hour)
	tools/deps build check
	$(MAKE) all $B/tests/limit $B/tests/faults.so
	FAULTS=$(FAULTS) sh tests/check-faults.sh $B
.PHONY: check-faults

check-concurrent: all $B/tests/limit $(CONCURRENT) ## run the concurrent tests alone, for SAN=thread
	tests/run-all $B $(CONCURRENT) tests/check-matrix.sh tests/check-sync.sh tests/check-barrier.sh tests/check-sim.sh

# Packaging tools set INSTALL on the command line, so this variable has another name.
INSTALLER = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' VERSION='$(VERSION)' PLUGINS='$(PLUGINS)' \
  ABSENT='$(ABSENT)' tools/install
install: all ## install under PREFIX (/usr/local), libraries in LIBDIR (PREFIX/lib); honours DESTDIR
	$Q$(INSTALLER) install $B
uninstall: ## remove what install put there, given the same PREFIX, LIBDIR and DESTDIR
	$Q$(INSTALLER) uninstall $B

dist: ## the source archive, in build: the same tree gives the same bytes
	@tools/dist $B
deb: ## Debian packages, in build/deb
	tools/deps build deb
	tools/deb $B/deb
check-deb: $B/tests/limit ## the same, and installs them into a fresh Debian (as root)
	tools/deps build deb
	tools/deb $B/deb
	tests/deb-chroot $B/deb || [ $$? -eq 77 ] # prints the reason of a failure
.PHONY: dist deb check-deb

format: ## clang-format all sources in place
	tools/deps lint
	clang-format -i $$(git ls-files '*.c' '*.h')

lint: ## cppcheck over the core and the plug-ins
	tools/deps build lint
	@# One configuration, for in others our macros are unknown; what it misreads is left out.
	cppcheck -j2 --quiet --std=c11 --enable=warning,portability --max-configs=1 --error-exitcode=1 \
	  --suppress=missingIncludeSystem --suppress=invalidPointerCast --suppress=nullPointerRedundantCheck \
	  --suppress=duplicateAssignExpression --suppress=leakReturnValNotUsed --suppress=uninitvar:conform/workload.c \
	  --suppress=uninitvar:lab/report/plot/plot_runs.c --suppress=uninitvar:plugins/sync_wic/wic_space.c \
	  --suppress=syntaxError:core/config/value.c -D__x86_64__ -D__GNUC__ \
	  $(addprefix -I,$(PUBLIC)) -Icore -Ilab -I. $(addprefix -I,$(wildcard plugins/* plugins/*_common/* plugins/workloads/*)) core comm lab conform plugins

clean: ## remove what was built
	rm -rf build

.PHONY: help run check check-rest check-all check-built install uninstall format lint clean

# ---- networks: libfabric and PMIx, if installed -------------------------------------------
# No -lpmix: the client library is loaded at run time.
$(if $(PMIX_FOUND),,$(eval LEFT_OUT += $$(info left out: launchers with PMIx: $(PMIX_WHY); $(PMIX_MEND))))
$B/obj/lab/ranks/pmix.o: CPPFLAGS += $(if $(PMIX_FOUND),-DLOOM_PMIX $(PMIX_CFLAGS))
$B/bench/trigger_floor: bench/trigger_floor.c bench/times.h Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(FABRIC_CFLAGS) $< $(FABRIC_LIBS) -o $@
bench-trigger: all $B/bench/trigger_floor ## triggered messages against the lower bounds of their providers
	bench/trigger $B $(BENCH_TRIGGER)
.PHONY: bench-trigger

# ---- synchronisation: waiting consumers ----------------------------------------------------------------
SYNC_BENCH := $(addprefix $B/bench/sync_,beside release floor)
$(SYNC_BENCH) $B/bench/tasks_idle: $B/bench/%: bench/%.c bench/times.h $(wildcard tests/*.h) $B/obj/tests/support.o $B/lab.a $B/libgpuloom.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $< $(filter %.o %.a,$^) $(CORE_LIBS) -lcunit -o $@
bench-sync: all $(SYNC_BENCH) ## consumers that are interrupted against those that poll, sleep and park
	@mkdir -p $B/bench
	python3 bench/sync.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/sync.txt
.PHONY: bench-sync

# ---- service requests ----------------------------------------------------------------------------------
$B/bench/qos_%: bench/qos_%.c bench/times.h Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -pthread $< -o $@
bench-qos: all $B/bench/qos_victim $B/bench/qos_direct ## cost of service requests for a victim, under every policy
	python3 bench/qos.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/qos.txt
.PHONY: bench-qos

# ---- work stealing -------------------------------------------------------------------------------------
# Each peer is built if its package is installed; bench/tasks-peers reports missing ones.
PEERS := $B/bench/peers
PEER_COMMON := $(PEERS)/peer.o $(PEERS)/uts_trees.o
$(PEERS)/peer.o: bench/peers/peer.c bench/peers/peer.h bench/times.h plugins/workloads/tasks/uts_trees.h
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS) $(CSTD) -O2 $(WARN) -c $< -o $@
$(PEERS)/uts_trees.o: plugins/workloads/tasks/uts_trees.c plugins/workloads/tasks/uts_trees.h
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS) $(CSTD) -O2 $(WARN) -c $< -o $@
peer = $Qrm -f $@; $1 -O2 -Wall -Wextra $2 $(filter %.c %.cpp %.o,$^) $3 -lm -o $@ 2>$@.log || echo "  left out: $@: $$(head -n 1 $@.log)"
$(PEERS)/seq: bench/peers/peer_seq.c $(PEER_COMMON)
	$(call peer,$(CC))
$(PEERS)/gomp: bench/peers/peer_omp.c $(PEER_COMMON)
	$(call peer,gcc,-fopenmp)
$(PEERS)/libomp: bench/peers/peer_omp.c $(PEER_COMMON)
	$(call peer,clang,-fopenmp=libomp $(addprefix -L,$(lastword $(sort $(wildcard /usr/lib/llvm-*/lib)))))
$(PEERS)/tbb: bench/peers/peer_tbb.cpp $(PEER_COMMON)
	$(call peer,g++ -std=c++17,,-ltbb)
bench-peers: all $(addprefix $(PEERS)/,seq gomp libomp tbb) $B/bench/tasks_idle ## work stealing against oneTBB and OpenMP
	tools/deps bench
	bench/tasks-peers $B $(BENCH)
$(PEERS)/mpi: bench/peers/peer_mpi.c $(PEER_COMMON)
	$(call peer,mpicc)
bench-ranks: all $(PEERS)/mpi ## ranks that share tasks against workers of one rank and stealing by MPI messages
	tools/deps bench
	python3 bench/ranks.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/ranks.txt
.PHONY: bench-peers bench-ranks
# Task functions of gpuloom in loops of other runtimes.
$B/bench/uneven.o: bench/uneven.c bench/uneven.h bench/times.h $(wildcard tests/*.h)
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
UNEVEN_COMMON := $B/bench/uneven.o $B/obj/tests/support.o $B/lab.a $B/libgpuloom.a
uneven = $Qrm -f $@; $1 -O2 -Wall -Wextra -pthread $2 $^ $(CORE_LIBS) -lcunit $3 -o $@ 2>$@.log || \
  echo "  left out: $@: $$(head -n 1 $@.log)"
$B/bench/uneven_omp: bench/uneven_omp.c $(UNEVEN_COMMON)
	$(call uneven,gcc -std=gnu11,-fopenmp)
$B/bench/uneven_tbb: bench/uneven_tbb.cpp $(UNEVEN_COMMON)
	$(call uneven,g++ -std=c++17,,-ltbb)
$B/bench/gpu_uneven: bench/gpu_uneven.cu $(UNEVEN_COMMON)
	$Q$(or $(NVCC),nvcc) -O3 -std=c++20 -arch=$(or $(ARCH),native) $^ $(CORE_LIBS) -lcunit -o $@
bench-uneven: all $B/bench/uneven_omp $B/bench/uneven_tbb ## uneven tasks against loops of OpenMP and oneTBB with the same bodies
	tools/deps bench
	python3 bench/uneven.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/uneven.txt
bench-predict: all ## times of schedulers that the schedule lab predicts, against measured times
	python3 bench/predict.py $B $(if $(REPEATS),--rounds $(REPEATS)) $(if $(DEVICES),--device $(DEVICES)) | tee $B/bench/predict.txt
.PHONY: bench-uneven bench-predict
# ---- barriers ------------------------------------------------------------------------------------------
BARRIER_PEERS := $(addprefix $(PEERS)/barrier_,pthread gomp libomp std)
$(BARRIER_PEERS): bench/peers/barrier_peer.cpp | $(PEERS)
$(PEERS):
	@mkdir -p $@
$(PEERS)/barrier_pthread:
	$(call peer,g++ -std=c++17,-DPEER_PTHREAD,-pthread)
$(PEERS)/barrier_gomp:
	$(call peer,g++ -std=c++17,-DPEER_OMP -fopenmp)
$(PEERS)/barrier_libomp:
	$(call peer,clang++ -std=c++17,-DPEER_OMP -fopenmp=libomp $(addprefix -L,$(lastword $(sort $(wildcard /usr/lib/llvm-*/lib)))))
$(PEERS)/barrier_std:
	$(call peer,g++ -std=c++20,,-pthread)
bench-barriers: all $(BARRIER_PEERS) ## barriers on the CPU against pthread, OpenMP and std::barrier
	tools/deps bench
	python3 bench/barriers.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/barriers.txt
.PHONY: bench-barriers
$(PEERS)/ring_simgrid: bench/peers/ring_simgrid.c | $(PEERS)
	$(call peer,gcc,,-lsimgrid)
bench-sim: all $(PEERS)/ring_simgrid ## virtual time: events per second, 1,024 ranks, the network against SimGrid's
	tools/deps bench
	python3 bench/sim.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/sim.txt
.PHONY: bench-sim

# ---- embedding -----------------------------------------------------------------------------------------
# Without oneTBB the file is empty after preprocessing, and the benchmark reports that oneTBB is missing.
$B/bench/embed: bench/embed.c bench/embed_tbb.cpp bench/embed.h bench/times.h $B/libgpuloom.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Qg++ -std=c++17 -O2 -fopenmp -Wall -Wextra -I. -c bench/embed_tbb.cpp -o $@_tbb.o
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $< $@_tbb.o $B/libgpuloom.a $(CORE_LIBS) \
	  $(addprefix -l,$(if $(wildcard /usr/include/oneapi/tbb/task_arena.h),tbb) stdc++ gomp) -o $@
EMBED_ON = embed_$(if $(EMBED_QUICK),quick_)$(if $(word 2,$(DEVICES)),two_)
EMBED_TARGETS = $(if $(DEVICES),$(foreach n,1 132 all,$(EMBED_ON)launched_$(n)_us '<=' $(if $(word 2,$(DEVICES)),25,20) \
  $(EMBED_ON)resident_$(n)_us '<=' $(if $(word 2,$(DEVICES)),25,8)),\
  embed_run_over_pool '<=' 1 embed_run_us '<=' 5 embed_caller_over_tbb '<=' 1)
bench-embed: all ## cost of a run for an embedding program, against a thread pool and oneTBB; DEVICES='cuda:0 cuda:1': on GPUs
	tools/deps bench
	$(MAKE) $B/bench/embed
	$B/bench/embed $(if $(DEVICES),$(or $(RUNS),1000) '$(DEVICES)',$(RUNS)) >$B/bench/embed.txt
	BENCH_COMMAND="$(if $(EMBED_QUICK),EMBED_QUICK=1 )make bench-embed$(if $(DEVICES), DEVICES='$(DEVICES)')" \
	  python3 bench/figures.py $B $(if $(DEVICES),$(EMBED_ON)gpu,embed) $(EMBED_TARGETS) <$B/bench/embed.txt
.PHONY: bench-embed
$B/bench/comm: bench/comm.c $B/libgpuloom.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $< $B/libgpuloom.a $(CORE_LIBS) -ldl -o $@
bench-comm: all $B/bench/comm ## collectives of two ranks on this machine's CPUs; bench/gpu.sh BUILD collectives measures GPUs
	$B/bench/comm $B/plugins cpu
.PHONY: bench-comm
check-models: ## all states of the models of queues, detectors and sleep, and their seeded faults
	tools/deps check
	tests/models/check-models.sh
check-sim: all $B/tests/limit ## random schedules on simulated GPUs, and planted faults: make check-sim RUNS=10000
	tools/deps build check
	RUNS=$(or $(RUNS),1000) sh tests/check-sim.sh $B
.PHONY: check-sim
soak: ## random configurations, stops and kills: make soak TIME=1h SEED=2
	tools/deps build check
	$(MAKE) tests
	python3 tests/soak.py $B --long --time $(or $(TIME),20m) --seed $(or $(SEED),1)
check-kills: all ## kill and stop processes of jobs at random moments: make check-kills KILLS=200
	python3 tests/kills.py $B $(or $(KILLS),200)
check-bystanders: all $B/tests/limit ## how late a program comes to run beside jobs that wait in all ways
	BYSTANDER=all sh tests/check-bystander.sh $B
.PHONY: check-models soak check-kills check-bystanders

# ---- fuzzing of external input ---------------------------------------------------------
# Each tests/fuzz/fuzz_NAME.c is a target, built in a separate folder with sanitizers: FUZZ_ENGINE is libFuzzer, or the
# program that replays files.
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_SAN := address,undefined,float-cast-overflow
FUZZ_ENGINE ?= $B/obj/tests/fuzz/replay.o
FUZZ_FLAGS ?=
$B/fuzz.a $B/target/%: CFLAGS += $(FUZZ_FLAGS)
FUZZ_OBJ := $(FUZZ_TARGETS:%=$B/obj/tests/fuzz/fuzz_%.o)
FUZZ_COMMON := $(addprefix $B/obj/tests/fuzz/,input.o formats.o) $(filter $B/%,$(FUZZ_ENGINE))
$B/fuzz.a: $(LIB_OBJ) $B/obj/lib/child.o $B/obj/lib/replace.o $(filter $B/obj/lab/%,$(LAB_OBJ)) $(filter-out %/main.o %/cmd_config.o %/cmd_validate.o,$(CLI_OBJ))
	$(call say,AR,$@)
	$Qrm -f $@ && ar rcs $@ $^
$B/target/%: $B/obj/tests/fuzz/fuzz_%.o $(FUZZ_COMMON) $B/fuzz.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $B/fuzz.a $(CORE_LIBS) -lz $(filter -%,$(FUZZ_ENGINE)) -o $@
fuzz-targets: $(FUZZ_TARGETS:%=$B/target/%)
-include $(FUZZ_OBJ:.o=.d) $(FUZZ_COMMON:.o=.d)
FUZZ_MAKE = $(MAKE) B=$B/fuzz CC=clang SAN=$(FUZZ_SAN) FUZZ_ENGINE=-fsanitize=fuzzer \
  OPT='-O1 -g' FUZZ_FLAGS='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all'
fuzz: ## random bytes for all that reads files: make fuzz TIME=10m TARGET=conf JOBS=2
	tools/deps build fuzz
	$(FUZZ_MAKE) fuzz-targets
	tests/fuzz/run $B/fuzz $(or $(TIME),10m) $(or $(JOBS),2) $(or $(TARGET),$(FUZZ_TARGETS))
.PHONY: fuzz fuzz-targets
