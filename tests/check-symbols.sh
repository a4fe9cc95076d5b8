# SPDX-License-Identifier: Apache-2.0
# A plug-in exports one symbol; the library exports what the public headers declare, no more.
. tests/lib.sh
case $B in *address* | *thread* | *undefined*) skip 'sanitizers add symbols' ;; esac
for so in "$B"/plugins/*.so; do
	names=$(nm -D --defined-only "$so" | awk '{print $3}')
	[ "$names" = loom_plugin_entry ] || fail "$so exports: $names"
done
nm -D --defined-only "$B/libgpuloom.so" | awk '{print $3}' | sort >"$tmp/exported"
grep -ho 'loom_[a-z_]*(' core/include/gpuloom/gpuloom.h core/include/gpuloom/error.h | tr -d '(' | sort -u >"$tmp/declared"
comm -23 "$tmp/exported" "$tmp/declared" >"$tmp/extra"
[ ! -s "$tmp/extra" ] || fail "the library also exports: $(tr '\n' ' ' <"$tmp/extra")"
grep -h '^LOOM_EXPORT' -A1 core/include/gpuloom/gpuloom.h core/include/gpuloom/error.h | grep -o 'loom_[a-z_]*(' |
	tr -d '(' | sort -u | while read -r name; do
	grep -qx "$name" "$tmp/exported" || echo "$name"
done >"$tmp/lacking"
[ ! -s "$tmp/lacking" ] || fail "declared, but not exported: $(tr '\n' ' ' <"$tmp/lacking")"
# The core has no vendor's name and no plug-in's.
grep -rniE 'nvidia|cuda|\brocm|\bhip\b|\bamd\b' core --include='*.c' | grep -v 'core/include' >"$tmp/vendors"
[ ! -s "$tmp/vendors" ] || { fail 'the core names vendors'; cat "$tmp/vendors"; }
# In a set-user-id program the environment is of a user that is not trusted.
grep -rnE '(^|[^_a-z])getenv *\(' core plugins rig conform --include='*.[ch]' >"$tmp/getenv"
[ ! -s "$tmp/getenv" ] || { fail 'F7: getenv() where secure_getenv() is due'; cat "$tmp/getenv"; }
finish
