#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rejects words in comments, messages, help texts and pages if docs/glossary.md has a term of the field for them.
   tests/words.py [FILE...]: prints FILE:LINE, the word, and the term or reason; exit status 1 if any."""

import re
import subprocess
import sys

WORDS = [
    (r"\bwho(ever|m)?\b", "the subject is a thread, worker, rank or function: name it"),
    (r"\b(no|some|any|every)body\b", "the subject is a thread, worker, rank or function: name it"),
    (r"\bthe one that\b", "name it"),
    (r"\b(is|are|be|keep|keeps|kept) apart\b|\bapart devices\b", "non-coherent; separate"),
    (r"\bpostmasters?\b", "proxy worker"),
    (r"\bwish(es)?\b", "steal request; setting"),
    (r"\bbedside\b|\bdoor\b", "doorbell"),
    (r"\banew\b", "again"),
    (r"\bin vain\b", "without success"),
    (r"\bbesides\b", "also; beside, in addition to"),
    (r"\bthe begin\b|\bbegin of\b", "the beginning, the start"),
    (r"\bmend(s|ed|ing)?\b", "fix"),
    (r"\b(a|each|one|two|first|last|next|every) looks?\b|\blook(s|ed|ing)? (at|again|once)\b",
     "poll, load, check, read"),
    (r"\bheeds?\b|\bheeded\b", "obey; respect"),
    (r"\bdeaf\b", "interrupts unavailable"),
    (r"\bhall\b", "barrier state"),
    (r"\bdesk\b", "mailbox"),
    (r"\brobbed\b", "stolen from"),
    (r"\bsprints?\b", "fast path"),
    (r"\b(un)?stow(s|ed|ing)?\b", "overflow, refill"),
    (r"\btally\b|\btallies\b", "counters, statistics"),
    (r"\b(the|keeps?|its) books\b", "queue metadata; statistics"),
    (r"\brouse[sd]?\b", "wake, notify"),
    (r"\bdozing\b", "sleeping"),
    (r"\bcrew\b|\bcrowds?\b", "team, group of ranks; oversubscribed"),
    (r"\blies (in|at|on|near|there|where)\b|\blie (in|at|on|near|there|where)\b", "is in, is at"),
    (r"\b(is|are|was|be) told\b", "is notified; is reported; is set"),
    (r"\bhears?\b|\bheard\b", "is notified; acknowledged"),
    (r"\bfar (worker|rank|device|queue|victim|memory|block)s?\b", "remote"),
    (r"\bnear (worker|rank|device|queue|victim|memory|block|copy)s?\b", "local"),
    (r"\bthat night\b|\bnext row\b|\brows? above\b", "each row stands alone"),
]
PATTERNS = [(re.compile(p, re.I), why) for p, why in WORDS]
ALLOWED = re.compile(r"who (am|is) i\b|\bwhoami\b|WHO\b", 0)


def pieces(path, text):
    """Yields (line, text) of the prose in a file: comments and strings of code, and all of a page except code."""
    if path.endswith(".md"):
        fence = False
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("```"):
                fence = not fence
            elif not fence and not line.startswith("    "):
                yield number, re.sub(r"`[^`]*`", "", line)
    elif re.search(r"\.(c|h|cu|in|pml|cpp|def)$", path):
        for m in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', text, re.S):
            number = text.count("\n", 0, m.start()) + 1
            before = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
            if m.group(0)[0] == '"' and re.match(r"\s*#\s*include", before):
                continue
            for k, line in enumerate(m.group(0).split("\n")):
                yield number + k, re.sub(r"`[^`]*`|\w+\(\)", "", line)
    elif re.search(r"\.(ini)$", path):
        for number, line in enumerate(text.split("\n"), 1):
            if ";" in line:
                yield number, line[line.index(";"):]
    else:
        if path.endswith(".py"):
            for m in re.finditer(r'"""(.*?)"""', text, re.S):
                for k, line in enumerate(m.group(1).split("\n")):
                    yield text.count("\n", 0, m.start()) + 1 + k, line
        for number, line in enumerate(text.split("\n"), 1):
            m = re.search(r"(?:^|\s)#(?!!)\s.*", line)
            if m:
                yield number, m.group(0)


files = sys.argv[1:] or [f for f in subprocess.run(["git", "ls-files"], capture_output=True, text=True,
                                                   check=True).stdout.split()
                         if re.search(r"\.(c|h|cu|in|pml|cpp|def|md|ini|sh|py|mk|awk)$|Makefile$", f)
                         and not re.match(r"tests/data/|tests/words\.py|CHANGELOG\.md", f)]
found = 0
for path in files:
    try:
        text = open(path, encoding="utf-8").read()
    except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError):
        continue
    for number, line in pieces(path, text):
        for pattern, why in PATTERNS:
            for m in pattern.finditer(line):
                found += 1
                print("%s:%d: '%s': %s" % (path, number, m.group(0), why))
if found:
    print("%d words that docs/glossary.md replaces" % found, file=sys.stderr)
sys.exit(found > 0)
