#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The code does not grow unnoticed: tests/size.txt has a bound for each room, in lines. A room above its bound is a failure.
# So is a room that is more than 2 % and 20 lines below it, because others could fill this space without a word.
#   tests/check-size.sh [BUILD]     compares
#   tests/check-size.sh --lower     lowers the bounds to the size of the rooms; it raises none
set -u
bounds=tests/size.txt
if [ -e .git ]; then
	git ls-files -z --cached --others --exclude-standard
else
	find . -path ./build -prune -o -type f -printf '%P\0'
fi | grep -zE '\.(c|h|cu|cuh|cpp)$' | sort -zu | xargs -0 wc -l 2>/dev/null |
	awk -v lower="${1-}" -v bounds="$bounds" '
	# The first input is the output of wc, which ends with a line "total" after each part of a long list of files.
	FNR == NR {
		if ($2 != "total" || NF != 2)
			lines[$2] = $1
		next
	}
	/^#/ || NF == 0 {
		text[++rows] = $0
		next
	}
	{
		room = $1 == "." ? "" : $1
		size = 0
		for (file in lines)
			if (index(file, room) == 1) {
				size += lines[file]
				if (room != "")
					in_room[file] = 1
			}
		if (lower == "--lower") {
			new = size < $2 ? size : $2
			if (new != $2)
				printf "%s: %d -> %d\n", $1, $2, new
		} else if (size > $2) {
			printf "FAILED: %s has %d lines, %d above its bound. Delete as many lines elsewhere in this room; or, if the commit\n" \
				"    says why it has to grow, write %d into %s\n", $1, size, size - $2, size, bounds
			failures++
		} else if (size < $2 * 0.98 && size < $2 - 20) {
			printf "FAILED: %s has %d lines, %d below its bound: tests/check-size.sh --lower\n", $1, size, $2 - size
			failures++
		}
		text[++rows] = sprintf("%-26s %9d %9s", $1, new, $3)
	}
	END {
		if (lower == "--lower") {
			for (i = 1; i <= rows; i++)
				print text[i] >bounds
		} else {
			for (file in lines)
				if (!(file in in_room)) {
					printf "FAILED: %s is in no room of %s\n", file, bounds
					failures++
				}
		}
		exit failures > 0
	}' - "$bounds"
