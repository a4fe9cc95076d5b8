# SPDX-License-Identifier: Apache-2.0
# A plug-in exports one symbol. The library exports what the public headers declare, and no more.
. tests/lib.sh
case $B in *address* | *thread* | *undefined*) skip 'sanitizers add symbols' ;; esac
for so in "$B"/plugins/*.so; do
	names=$(nm -D --defined-only "$so" | awk '{print $3}')
	[ "$names" = loom_plugin_entry ] || fail "$so exports: $names"
done
headers="core/include/gpuloom/gpuloom.h comm/include/gpuloom/comm.h core/include/gpuloom/error.h"
nm -D --defined-only "$B/libgpuloom.so" | awk '{print $3}' | sort >"$tmp/exported"
grep -ho 'loom_[a-z_]*(' $headers | tr -d '(' |
	sort -u >"$tmp/declared"
comm -23 "$tmp/exported" "$tmp/declared" >"$tmp/extra"
[ ! -s "$tmp/extra" ] || fail "the library also exports: $(tr '\n' ' ' <"$tmp/extra")"
grep -h '^LOOM_EXPORT' -A1 $headers | grep -o 'loom_[a-z_]*(' |
	tr -d '(' | sort -u | while read -r name; do
	grep -qx "$name" "$tmp/exported" || echo "$name"
done >"$tmp/lacking"
[ ! -s "$tmp/lacking" ] || fail "declared, but not exported: $(tr '\n' ' ' <"$tmp/lacking")"
# The core contains no name of a vendor or plug-in.
# gpuloom.h says which streams and memory of a program it takes.
grep -rniE 'nvidia|cuda|rocm|hip|amd' core | grep -v '^core/include/gpuloom/gpuloom.h:[0-9]*:/\* ' >"$tmp/vendors"
[ ! -s "$tmp/vendors" ] || { fail 'the core names vendors'; cat "$tmp/vendors"; }
# If a program has functions with these names, they must not replace those of the library, and the library's must not replace
# them.
cat >"$tmp/clash.c" <<'C'
#include <gpuloom/gpuloom.h>
#include <stdio.h>
#include <stdlib.h>
const char *dictionary_get(const void *d, const char *key, const char *none);
int dictionary_set(void *d, const char *key, const char *value);
void *cJSON_CreateObject(void);
char *cJSON_Print(const void *item);
const char *dictionary_get(const void *d, const char *key, const char *none)
{
	return (void)d, (void)key, (void)none, "own";
}
int dictionary_set(void *d, const char *key, const char *value)
{
	return (void)d, (void)key, (void)value, 7;
}
void *cJSON_CreateObject(void)
{
	return NULL;
}
char *cJSON_Print(const void *item)
{
	return (void)item, NULL;
}
int main(void)
{
	struct loom_error err = {0};
	struct loom_config *config = NULL;
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	int rc = loom_config_create(&config, &err);
	rc = rc ? rc : loom_config_load_text(config, "conf", "[run]\ndevices = cpu:0\nworkload = fib\nsamples = 1\n[device.cpu]\n"
		"workers = 1\n[transport]\nuse = host\n[scheduler]\nuse = mgws\n[termination]\nuse = counter\n[workload.fib]\nn = 18\n",
		&err);
	rc = rc ? rc : loom_stack_open(config, NULL, &stack, &err);
	rc = rc ? rc : loom_stack_run(stack, &result, &err);
	char *json = rc ? NULL : loom_result_json(result);
	puts(rc ? err.text : json && json[0] == '{' ? dictionary_get(NULL, "", "") : "no JSON");
	free(json);
	loom_result_destroy(result);
	loom_stack_close(stack);
	loom_config_destroy(config);
	return 0;
}
C
gcc "-I$B/include" "$tmp/clash.c" -L"$B" -lgpuloom -Wl,-rpath,"$B" -o "$tmp/clash" 2>"$tmp/out" ||
	{ fail 'the program does not build'; cat "$tmp/out"; }
expect 0 '^own$' "$tmp/clash"
! readelf -d "$B/libgpuloom.so" | grep -E 'NEEDED.*(cjson|iniparser)' || fail 'F16: the program would lend it functions'
# Code that set-user-id programs may run must not call getenv().
grep -rnE '(^|[^_a-z])getenv *\(' core plugins rig conform --include='*.[ch]' >"$tmp/getenv"
[ ! -s "$tmp/getenv" ] || { fail 'F7: getenv() where secure_getenv() is due'; cat "$tmp/getenv"; }
finish
