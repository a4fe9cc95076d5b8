# SPDX-License-Identifier: Apache-2.0
# spoil.py FILE FUNCTION OLD NEW [SWITCH]: replaces the only place in the function's body that has the tokens of OLD by NEW.
# Blanks, line breaks and comments are ignored. With the expression SWITCH the program contains OLD and NEW, and SWITCH
# selects one of them at run time. OLD and NEW are then expressions, or statements that end in a semicolon.
import re, sys

path, function, old, new, switch = (sys.argv[1:] + [''])[:5]
token = re.compile(r'/\*.*?\*/|//[^\n]*|\s+|("(?:\\.|[^"\\])*"|\w+|.)', re.S)


def tokens(text):
    return [(m[1], m.start(1), m.end(1)) for m in token.finditer(text) if m[1]]


text = open(path).read()
all_of = tokens(text)
words = [t for t, _, _ in all_of]
want = [t for t, _, _ in tokens(old)]
places, depth, inside = [], 0, False
for i, word in enumerate(words):
    if word == '{' and depth == 0:
        head = i - 1
        parentheses = 0
        while head >= 0:  # the search goes back over the parameters
            parentheses += {')': 1, '(': -1}.get(words[head], 0)
            head -= 1
            if not parentheses:
                break
        inside = head >= 0 and words[head] == function
    depth += {'{': 1, '}': -1}.get(word, 0)
    if inside and depth and words[i : i + len(want)] == want:
        places.append((all_of[i][1], all_of[i + len(want) - 1][2]))
if len(places) != 1:
    sys.exit(f'{len(places)} places')
(begin, end), = places
if switch and old.endswith(';'):
    new = f'if ({switch}) {{ {new} }} else {{ {text[begin:end]} }}'
elif switch:
    new = f'(({switch}) ? ({new}) : ({text[begin:end]}))'
open(path, 'w').write(text[:begin] + new + text[end:])
