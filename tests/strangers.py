#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs processes outside the job, and faulty ranks, at the port of a job's rank 0.
strangers.py GPULOOM [CASE...] runs these cases, or all."""
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import pace

GPULOOM = sys.argv[1]
TOKEN = secrets.token_hex(16)
SMALL = ("--set workload.uts.tree=custom --set workload.uts.type=binomial --set workload.uts.b0=500 "
         "--set workload.uts.q=0.12 --quiet").split()
HELLO, GIVE, ALL, DONE, END, WELCOME = range(1, 7)
LIMIT = 60  # in seconds of an idle machine (pace.py): a longer job counts as hanging
failures = 0


def check(name, good, *about):
    global failures
    if good:
        return
    failures += 1
    print("FAILED:", name, *about, flush=True)


def free_port(host="127.0.0.1"):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.bind((host, 0))
        return s.getsockname()[1]


def head(kind, value, n):
    return struct.pack("<IIQ", kind, value, n)


def hello(rank, token=TOKEN, ranks=2, version=1):
    return head(HELLO, rank, 24) + bytes.fromhex(token) + struct.pack("<II", ranks, version)


def receive(s):
    """Returns (kind, value, body), or None at the end of the connection."""
    data = b""
    try:
        s.settimeout(LIMIT / pace.pace())
        while len(data) < 16 or len(data) < 16 + struct.unpack("<IIQ", data[:16])[2]:
            more = s.recv(65536)
            if not more:
                return None
            data += more
    except OSError:  # the other end, or this end, is closed
        return None
    kind, value, n = struct.unpack("<IIQ", data[:16])
    return kind, value, data[16:16 + n]


class Job:
    """Rank 0 of a job, and further processes of a case."""

    def __init__(self, more=("--samples", "1"), ranks=2):
        self.port = free_port()
        self.env = dict(os.environ, GPULOOM_RANKS=str(ranks), GPULOOM_ROOT="127.0.0.1:%d" % self.port,
                        GPULOOM_TOKEN=TOKEN)
        self.env.pop("GPULOOM_TOKEN_FILE", None)
        self.ranks = ranks
        self.more = list(more)
        self.root = self.start(0)

    def start(self, rank, **env):
        out = tempfile.TemporaryFile()  # a file, because a pipe could fill and block the process
        p = subprocess.Popen([GPULOOM, "run", "conf/uts-ranks.ini"] + SMALL + self.more, stdin=subprocess.DEVNULL,
                             stdout=out,
                             stderr=subprocess.STDOUT, start_new_session=True,
                             env=dict(self.env, GPULOOM_RANK=str(rank), **env))
        p.file = out
        return p

    def connect(self):
        for _ in range(int(LIMIT * 20 / pace.pace())):
            try:
                return socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                time.sleep(0.05)
        raise SystemExit("rank 0 does not listen: " + self.end(self.root)[1])

    def member(self, rank=1):
        """Returns a connection that has joined as this rank."""
        s = self.connect()
        s.sendall(hello(rank, ranks=self.ranks))
        answer = receive(s)
        check("join", answer and answer[0] == WELCOME, answer)
        return s

    def end(self, p, limit=LIMIT):
        """Returns the job's status, 'hangs' if it does not end, and its output."""
        if pace.wait(p, limit):
            code = p.returncode
        else:
            code = "hangs"
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        p.file.seek(0)
        return code, p.file.read().decode(errors="replace")

    def ends(self, name, p, code, words, limit=LIMIT):
        got, text = self.end(p, limit)
        check(name, got == code and words in text, "status", got, "instead of", code, "- no", repr(words), "in:", text)


def overflow_F2_S1():
    for n in (2**64 - 1, 2**64 - 2, 2**63, 2**40, (16 << 20) + 1):
        job = Job()
        s = job.member()
        try:
            s.sendall(head(GIVE, 0, n) + b"A" * (1 << 20))
        except OSError:
            pass
        job.ends("GIVE of %d bytes" % n, job.root, 1, "rank 1 sent an invalid message")


def huge_S1():
    job = Job()
    s = job.member()
    s.sendall(head(GIVE, 0, 16 << 20))  # the length is allowed, but the hub must allocate memory only when the data arrive
    time.sleep(0.5)
    resident = [line for line in open("/proc/%d/status" % job.root.pid) if line.startswith("VmRSS")][0]
    check("memory for data that has not arrived", int(resident.split()[1]) < 16 << 10, resident)
    s.close()
    job.ends("hangup in a message", job.root, 1, "rank 1 lost its connection")


def stall_F5_S3():
    for first in (b"\2", head(GIVE, 0, 64)[:8], head(GIVE, 0, 64), head(GIVE, 0, 64) + b"x" * 63):
        for signals in ((signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)):
            job = Job()
            s = job.member()
            s.sendall(first)
            time.sleep(0.3)
            for number in signals:
                os.kill(job.root.pid, number)
            # On an idle machine, the time is shorter than the time limit of the message.
            job.ends("%d bytes, then %s" % (len(first), signals), job.root, 130, "", 15)
            s.close()


def given_up_S3():
    job = Job()
    s = job.member()
    s.sendall(head(GIVE, 0, 64)[:8])
    job.ends("half a message", job.root, 1, "rank 1 did not complete a message")
    s.close()


def silent_S4_T9b():
    job = Job()
    held = [job.connect() for _ in range(40)]
    other = job.start(1)
    job.ends("rank 0 beside silent strangers", job.root, 0, "")
    job.ends("rank 1 beside silent strangers", other, 0, "")
    check("silent strangers", len(held) == 40)


def trickle_S4():
    job = Job()
    s = job.connect()
    for byte in hello(1)[:3]:
        s.sendall(bytes([byte]))
        time.sleep(0.3)
    os.kill(job.root.pid, signal.SIGTERM)
    job.ends("a stranger that trickles, and SIGTERM", job.root, 1, "rank 1 has not joined", 15)


def closed_S4():
    """After all ranks have joined, no further process can connect."""
    job = Job(["--samples", "1000000"])
    other = job.start(1)
    refused = False
    for _ in range(int(LIMIT * 20 / pace.pace())):
        try:
            socket.create_connection(("127.0.0.1", job.port)).close()
            time.sleep(0.05)
        except ConnectionRefusedError:
            refused = job.root.poll() is None
            if refused and open("/proc/%d/cmdline" % job.root.pid).read():
                break
    time.sleep(0.5)
    try:
        socket.create_connection(("127.0.0.1", job.port)).close()
        refused = False
    except ConnectionRefusedError:
        pass
    check("the port of a job whose ranks have all joined", refused)
    check("the job goes on", job.root.poll() is None)
    for _ in range(2):
        os.kill(job.root.pid, signal.SIGTERM)
        time.sleep(0.1)
    job.ends("rank 0", job.root, 130, "")
    code, text = job.end(other)
    check("rank 1 ends", code != "hangs" and code > 0, code, text)


def squat_S2():
    job = Job()
    for token in (secrets.token_hex(16), "0" * 32, TOKEN[:-1] + ("0" if TOKEN[-1] != "0" else "1")):
        s = job.connect()
        s.sendall(hello(1, token))
        answer = receive(s)
        check("another token", answer and answer[0] == END and b"token" in answer[2], answer)
        check("no more than that", receive(s) is None)
    for wrong, words in ((hello(1, ranks=3), b"GPULOOM_RANKS is 3"), (hello(1, version=9), b"another version"),
                         (hello(0), b"GPULOOM_RANK"), (hello(2), b"GPULOOM_RANK"), (hello(2**32 - 1), b"GPULOOM_RANK")):
        s = job.connect()
        s.sendall(wrong)
        answer = receive(s)
        check("refused", answer and answer[0] == END and words in answer[2], answer, words)
    for noise in (b"GET / HTTP/1.0\r\n\r\n" * 9, head(GIVE, 0, 8) + b"x" * 8, head(DONE, 0, 0),
                  head(HELLO, 1, 2**64 - 1),
                  head(HELLO, 1, 0) + b"x" * 80, b"\0" * 100, b"\xff" * 100, b""):
        s = job.connect()
        s.sendall(noise)
        if not noise:
            s.close()
        else:
            check("noise", receive(s) is None)
    other = job.start(1, GPULOOM_TOKEN=secrets.token_hex(16))
    job.ends("a rank with another token", other, 4, "rank 1 is rejected")
    other = job.start(1)
    job.ends("the true rank 1", other, 0, "")
    job.ends("rank 0 among strangers", job.root, 0, "")
    # A process with the token may take a rank. The second process of the same rank is rejected with a message.
    job = Job(ranks=3)
    s = job.member(1)
    other = job.start(1)
    job.ends("a rank whose place is taken", other, 4, "another process has joined with the same GPULOOM_RANK")
    s.close()
    job.ends("HELLO and away", job.root, 1, "rank 1 lost its connection")


def steps_D3():
    for first, words in ((head(GIVE, 5, 8) + b"x" * 8, "rank 1 sent an invalid message"),
                         (head(ALL, 0, 8) + b"x" * 8, "rank 1 sent an invalid message"),
                         (head(GIVE, 0, 7) + b"x" * 7 + head(GIVE, 1, 7) + b"x" * 7, "rank 1"),
                         (head(GIVE, 0, 3) + b"xyz", "rank 1 is not in step with rank 0"),
                         (head(DONE, 0, 0), "rank 1 has ended"),
                         (head(DONE, 1, 4000) + b"x" * 4000, "rank 1 sent an invalid message")):
        job = Job()
        s = job.member()
        s.sendall(first)
        job.ends("steps: %r" % first[:16], job.root, 1, words)
        s.close()


def addresses_F20_T13():
    for root in ("localhost:%d", "[::1]:%d", "127.0.0.1:%d"):
        host = "::1" if "[" in root else "127.0.0.1"
        try:
            port = free_port(host)
        except OSError:
            print("no IPv6 here")
            continue
        job = Job.__new__(Job)
        job.more = ["--samples", "1"]
        job.env = dict(os.environ, GPULOOM_RANKS="2", GPULOOM_ROOT=root % port, GPULOOM_TOKEN=TOKEN)
        other = job.start(1)
        time.sleep(0.2)
        job.root = job.start(0)
        job.ends(root, job.root, 0, "")
        job.ends(root, other, 0, "")


def pump(a, b, change):
    """Passes frames from a to b and changes each frame."""
    n = 0
    while True:
        frame = receive(a)
        if frame is None:
            b.close()
            return
        kind, value, body = frame
        body = change(n, kind, body)
        n += 1
        try:
            b.sendall(head(kind, value, len(body)) + body)
        except OSError:
            return


def lies_S10():
    """One word in a message of rank 1 is wrong. Rank 0 reports or ignores it, and neither crashes nor hangs."""
    import random
    import threading
    jobs = [["--set", "run.timeout=4s", "--set", "run.warmup=0", "--samples", "1"],
            "--set run.timeout=4s --set run.warmup=0 --samples 1 --set trigger.use=gputn --set trigger.wait=nap "
            "--set trigger.provider=tcp".split()]
    if not os.path.exists(os.path.join(os.path.dirname(GPULOOM), "plugins", "trigger_gputn.so")):
        jobs.pop()
    first, last = (int(x) for x in os.environ.get("LIES", "0-20").split("-"))
    for more in jobs:
        for seed in range(first, last):
            draw = random.Random(seed)
            at = draw.randrange(0, 14)
            word = draw.choice((4, 8))
            value = draw.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1, draw.getrandbits(64)))
            changes = []

            def change(n, kind, body):
                if kind != GIVE or n != at or len(body) < word:
                    return body
                where = draw.randrange(0, min(len(body) // word, 64)) * word
                changes.append("exchange %d of %d bytes: %d at %d" % (n, len(body), value, where))
                return body[:where] + (value % 2**(8 * word)).to_bytes(word, "little") + body[where + word:]

            job = Job(more)
            proxy = socket.create_server(("127.0.0.1", 0))
            other = job.start(1, GPULOOM_ROOT="127.0.0.1:%d" % proxy.getsockname()[1])
            proxy.settimeout(LIMIT / pace.pace())
            inside = proxy.accept()[0]
            outside = job.connect()
            both = [threading.Thread(target=pump, args=(inside, outside, change), daemon=True),
                    threading.Thread(target=pump, args=(outside, inside, lambda n, kind, body: body), daemon=True)]
            for t in both:
                t.start()
            code, text = job.end(job.root)
            check("lie %d %s" % (seed, more[8:]), code in (0, 1, 2, 3, 4, 124, 130), changes, "status", code, text)
            check("lie %d %s: a crash" % (seed, more[8:]), "rank 0 (pid" not in text, changes, "status", code, text)
            if os.environ.get("VERBOSE"):
                print(seed, changes, code, text.strip().split("\n")[0], flush=True)
            for s in (inside, outside, proxy):
                s.close()
            job.end(other)


def listening(pid):
    """Returns the ports of TCP on which a process listens, or none for a process that has ended."""
    inodes = set()
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)).removeprefix("socket:[").rstrip("]"))
        lines = [line.split() for line in open("/proc/%d/net/tcp" % pid).read().split("\n")[1:] if line]
    except OSError: # the process or the descriptor has gone: the caller repeats the call
        return []
    return [int(f[1].split(":")[1], 16) for f in lines if f[3] == "0A" and f[9] in inodes]


def guess_S2():
    """A process outside the job guesses keys of memory that ranks registered with libfabric."""
    if not os.path.exists(os.path.join(os.path.dirname(GPULOOM), "plugins", "trigger_gputn.so")):
        return print("built without libfabric")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "rma")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-Wall", "-Werror", "tests/stranger_rma.c", "-lfabric", "-o",
                        program],
                       check=True)
        job = subprocess.Popen([GPULOOM, "run", "-n", "2", "conf/uts-ranks.ini"] + SMALL +
                               ["--samples", "1000000", "--set", "trigger.use=gputn", "--set", "trigger.wait=nap",
                                "--set", "trigger.provider=tcp"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
        ports = []
        for _ in range(int(LIMIT * 20 / pace.pace())):
            children = open("/proc/%d/task/%d/children" % (job.pid, job.pid)).read().split()
            ports = [p for child in children for p in listening(int(child))]
            if len(ports) >= 2:
                break
            time.sleep(0.05)
        time.sleep(1)
        check("ports of endpoints", len(ports) >= 2, ports)
        for port, key in zip(ports, ("0x100", "0x102")):
            tried = subprocess.run([program, str(port), key, "1"], capture_output=True, text=True,
                                   timeout=LIMIT / pace.pace())
            check("keys can be tried", tried.returncode == 0, tried.returncode, tried.stderr)
            check("a key is guessed", not tried.stdout, tried.stdout)
        for _ in range(2):
            os.kill(job.pid, signal.SIGTERM)
            time.sleep(0.1)
        check("the job goes on until it is stopped", pace.wait(job, LIMIT) and job.returncode == 130, job.returncode)


CASES = [given_up_S3, overflow_F2_S1, huge_S1, stall_F5_S3, silent_S4_T9b, trickle_S4, closed_S4, squat_S2, steps_D3,
         addresses_F20_T13, guess_S2, lies_S10]
for case in CASES:
    if sys.argv[2:] and case.__name__ not in sys.argv[2:]:
        continue
    begin = time.monotonic()
    case()
    print("%s: %.1f s" % (case.__name__, time.monotonic() - begin), flush=True)
sys.exit(1 if failures else 0)
