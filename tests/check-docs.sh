# SPDX-License-Identifier: Apache-2.0
# Tests that the documentation agrees with the code.
. tests/lib.sh
tools/ops --check || fail 'the table of mandatory ops'
tools/man "$B" >"$tmp/gpuloom.1" && grep -q '^\.SS gpuloom validate' "$tmp/gpuloom.1" || fail 'the man page'
! command -v man >/dev/null || { man -l "$tmp/gpuloom.1" >"$tmp/man" 2>"$tmp/err" && [ ! -s "$tmp/err" ]; } ||
	fail 'the man page is no troff'
# Each folder of plug-ins has a README that says what the plug-ins model.
for folder in plugins/*/ plugins/workloads/*/; do
	[ "$folder" = plugins/shared/ ] || [ "$folder" = plugins/workloads/ ] || [ -s "$folder/README.md" ] ||
		fail "no README in $folder"
done
for page in README.md CONTRIBUTING.md tests/README.md docs/*.md plugins/*/README.md plugins/shared/*/README.md \
	plugins/workloads/*/README.md examples/*/README.md; do
	[ -e "$page" ] || continue
	grep -o '](\([^)#]*\)' "$page" | cut -c3- | grep -v '://' | while read -r link; do
		[ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: dead link $link"
	done
done >"$tmp/dead"
[ ! -s "$tmp/dead" ] || { fail 'dead links'; cat "$tmp/dead"; }
# Each test is in the table of tests/README.md.
for test in $(cd tests && ls test_*.c check-*.sh | sed 's/\.[a-z]*$//'); do
	grep -o '`\(test_\|check-\)[a-z_*-]*`' tests/README.md | tr -d '\140' | while read -r row; do
		case $test in $row) echo found ;; esac
	done | grep -q found || fail "tests/README.md does not say what $test tests"
done
# Comments, messages and pages use the words of docs/glossary.md.
command -v python3 >/dev/null || skip 'python3 is not installed'
python3 tests/words.py || fail 'words that docs/glossary.md replaces'
finish
