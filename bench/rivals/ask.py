#!/usr/bin/env -S python3 -S -E
# SPDX-License-Identifier: Apache-2.0
"""Asks serve.py for one sample of a job and prints its metrics, for `workload = exec`: bench/rivals/ask.py SOCKET NAME
If the server has none, its reason is on stderr, and the exit status is 1."""
import socket, sys

with socket.socket(socket.AF_UNIX) as server:
    try:
        server.connect(sys.argv[1])
        server.sendall(sys.argv[2].encode() + b'\n')
        told = server.makefile().readline()
    except OSError as why:
        told = f'failed {sys.argv[1]}: {why}'
word, _, text = told.strip().partition(' ')
if word != 'ok':
    sys.exit(f'{sys.argv[2]}: {text or "the server has ended"}')
print(text)
