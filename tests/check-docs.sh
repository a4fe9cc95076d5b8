# SPDX-License-Identifier: Apache-2.0
# Tests that the documentation agrees with the code.
. tests/lib.sh
tools/man "$B" >"$tmp/gpuloom.1" && grep -q '^\.SS gpuloom validate' "$tmp/gpuloom.1" || fail 'the man page'
! command -v man >/dev/null || { man -l "$tmp/gpuloom.1" >"$tmp/man" 2>"$tmp/err" && [ ! -s "$tmp/err" ]; } ||
	fail 'the man page is no troff'
# Each folder of plug-ins has a README that says what the plug-ins model.
for folder in plugins/*/ plugins/workloads/*/; do
	case $folder in plugins/workloads/ | *[_/]common/ | */collective/) continue ;; esac
	[ -s "$folder/README.md" ] ||
		fail "no README in $folder"
done
for page in README.md CONTRIBUTING.md tests/README.md docs/*.md docs/kinds/*.md plugins/*/README.md plugins/*_common/*/README.md \
	plugins/workloads/*/README.md examples/*/README.md; do
	[ -e "$page" ] || continue
	grep -o '](\([^)#]*\)' "$page" | cut -c3- | grep -v '://' | while read -r link; do
		[ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: dead link $link"
	done
done >"$tmp/dead"
[ ! -s "$tmp/dead" ] || { fail 'dead links'; cat "$tmp/dead"; }
# A picture has a background of its own, so it is readable on light and dark pages.
for picture in docs/pictures/*.svg; do
	grep -Eq '<rect[^>]*class="paper"|<rect width="(100%|[0-9]+)" height="(100%|[0-9]+)" fill="#ffffff"' "$picture" ||
		fail "$picture has no background"
done
# Pictures of reports are drawn by this version. If not: tools/pictures
"$G" report tests/data/compare.json --plot forest -o "$tmp/now.svg" || fail 'a report'
style() { sed -n '/^<style>/,/^<\/style>/p' "$1"; }
for picture in $(grep -l '<g class="plot">' docs/pictures/*.svg); do
	[ "$(style "$picture")" = "$(style "$tmp/now.svg")" ] || fail "$picture is of another version: run tools/pictures"
done
grep -q '>seconds against static, less is better<' docs/pictures/compare.svg || fail 'the picture of a comparison is of another version'
# Each test is in the table of tests/README.md.
for test in $(cd tests && ls test_*.c check-*.sh | sed 's/\.[a-z]*$//'); do
	grep -o '`\(test_\|check-\)[a-z_*-]*`' tests/README.md | tr -d '\140' | while read -r row; do
		case $test in $row) echo found ;; esac
	done | grep -q found || fail "tests/README.md does not say what $test tests"
done
# Pages are short. The bounds are here and nowhere else. Counted are the words of README.md, CONTRIBUTING.md, docs/*.md and
# docs/kinds/*.md, with tables and examples, but without what a tool writes (between `<!-- pages: ... -->` lines, and the
# pages of bench/keep and tools/papers).
all=45000 readme=1000
words() { # FILE...
	for page; do
		awk '/^<!-- pages: end/ { skip = 0; next } /^<!-- pages:/ { skip = 1 }
			!skip { for (i = 1; i <= NF; i++) n += $i ~ /[A-Za-z0-9]/ } END { print n + 0 }' "$page"
	done | awk '{ n += $1 } END { print n + 0 }'
}
count=$(words README.md)
[ "$count" -gt 500 ] && [ "$count" -le "$readme" ] || fail "README.md has $count words; at most $readme"
count=$(words README.md CONTRIBUTING.md $(ls docs/*.md docs/kinds/*.md | grep -vE '^docs/(measurements|papers)\.md$'))
[ "$count" -gt "$readme" ] && [ "$count" -le "$all" ] ||
	fail "the pages have $count words that are written by hand; at most $all: delete what another page or a command says"
# A page begins with what the reader can do after it. Those of bench/keep and tools/papers are tables.
for page in docs/*.md docs/kinds/*.md; do
	case $page in docs/measurements.md | docs/papers.md) continue ;; esac
	sed -n '2,${ /./{ p; q; }; }' "$page" | grep -q '^After ' ||
		fail "$page: the first sentence does not say what the reader can do after it: After this page you can ..."
done
printf 'one two\n<!-- pages: x -->\nthree | four\n<!-- pages: end -->\n| five | -- |\n' >"$tmp/page.md"
[ "$(words "$tmp/page.md")" = 3 ] || fail 'the count of words'
# A conf rejects text behind the header of a section, so no example has such text.
! grep -nE '^ *\[[a-z.0-9-]+\][[:blank:]]+;' README.md docs/*.md docs/kinds/*.md plugins/*/README.md || fail 'a comment behind [...]'
# Comments, messages and pages use the words of docs/glossary.md.
command -v python3 >/dev/null || skip 'python3 is not installed'
# A link to a part of a page names an anchor or a heading of this page. GitHub forms the names of headings.
python3 - <<'END' >"$tmp/dead" || { fail 'links to headings that do not exist'; cat "$tmp/dead"; }
import glob, os, re, sys

def anchors(path):
    found, fence = {}, False
    for line in open(path, encoding="utf-8"):
        fence ^= line.startswith("```")
        yield from re.findall(r'<a (?:id|name)="([^"]+)"', line)
        m = re.match(r"#+ (.*)", line)
        if m and not fence:
            name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", m.group(1)).strip().lower()).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
            yield name + ("-%d" % found[name] if found[name] else "")

dead = 0
for page in sorted(glob.glob("*.md") + [p for d in ("docs", "plugins", "examples", "tests") for p in glob.glob(d + "/**/*.md", recursive=True)]):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]*)\)", open(page, encoding="utf-8").read()):
        path = os.path.join(os.path.dirname(page), target) if target else page
        if "://" not in target and path.endswith(".md") and anchor not in anchors(path):
            print("%s: no heading #%s in %s" % (page, anchor, path))
            dead = 1
sys.exit(dead)
END
# README says which ratio of the sizes of an allreduce is the median, the best and the worst one.
python3 - <<'END' || fail 'README.md: the median, best and worst ratio of an allreduce'
import re, statistics
rows = re.findall(r'id="comm2_\d+_to_fastest"></a>[^|]*\| ([\d.]+)', open("docs/measurements.md").read())
cited = re.findall(r"\[([\d.]+)\]\(docs/measurements\.md#comm2_\d+_to_fastest\)", open("README.md").read())
values = sorted(map(float, rows))
assert list(map(float, cited)) == [statistics.median_low(values), values[0], values[-1]], (cited, rows)
END
python3 tests/words.py || fail 'words that docs/glossary.md replaces'
finish
