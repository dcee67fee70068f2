#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what random programs give on a GPU, whatever one of them or the driver does.

usage: random_recorder.py FIRST END OUT [--jobs N] [--limit SECONDS] [--cubins FOLDER]

OUT gets the lines of random_runner.py, each as soon as its program has ended, so that an interrupted run keeps what it
has. Programs are run by child processes: first whole modules, whose programs are launched back to back and read when
all have ended. A child says what it is about to do; where that takes longer than its time, or fails, the child is
killed, and never waited for. Its module is run once more at the end, one program at a time by one child alone, since
programs that share a GPU with one that never ends do not end either. Only what is stopped there is written to
OUT.stuck, with what it was doing, and another child goes on behind it. Lines about the progress go to the standard
error.
"""
import argparse
import ctypes
import lzma
import os
import selectors
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random_ptx as rp  # noqa: E402
import random_runner as runner  # noqa: E402

BATCH = 100      # programs of a module
# Seconds that each phase may take. Contexts of processes that start together are made one after the other.
SECONDS = {'start': 60.0, 'load': 30.0, 'batch': 4.0, 'run': 4.0, 'rest': 20.0}
STARTS = 3       # so many children that do not start, one after the other, end the recording
NOT_READY = 600  # CUDA_ERROR_NOT_READY


def launch(driver, module, room, at, seed):
    function = ctypes.c_void_p()
    driver.ok('cuModuleGetFunction', ctypes.byref(function), module, f'p{seed}'.encode())
    values = (ctypes.c_uint64 * 2)(room[0] + at * runner.INPUT_BYTES, room[1] + at * runner.PROGRAM_BYTES)
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 8)
    driver.ok('cuLaunchKernel', function, rp.BLOCKS, 1, 1, rp.THREADS, 1, 1, 0, None, pointers, None)


def wait(driver):
    """Until all that was launched has ended, without a call that blocks."""
    while True:
        code = driver.cuda.cuStreamQuery(None)
        if code != NOT_READY:
            if code != 0:
                raise runner.Failure(f'cuStreamQuery answered {code}')
            return
        time.sleep(0.0002)


def tell_results(driver, room, at, seeds, say):
    """Of programs that have ended."""
    out = ctypes.create_string_buffer(len(seeds) * runner.PROGRAM_BYTES)
    driver.ok('cuMemcpyDtoH_v2', out, ctypes.c_uint64(room[1] + at * runner.PROGRAM_BYTES), ctypes.c_size_t(len(out)))
    whole, row_bytes = out.raw, rp.LANES * 8
    for number, seed in enumerate(seeds):
        begins = range(number * runner.PROGRAM_BYTES, (number + 1) * runner.PROGRAM_BYTES, row_bytes)
        say('is ' + runner.line_of(seed, [whole[begin:begin + row_bytes] for begin in begins]))


def image_of(batch, cubins):
    name = os.path.join(cubins or '', f'{batch:05d}.xz')
    if cubins and os.path.exists(name):
        with lzma.open(name) as packed:
            return packed.read()
    return rp.module(range(batch, batch + BATCH)).encode() + b'\0'


def run_batch(driver, room, seeds, alone, cubins, say):
    """All seeds are of one module. Alone: one program after the other."""
    module, first = ctypes.c_void_p(), seeds[0] // BATCH * BATCH
    say(f'load {seeds[0]}')
    driver.ok('cuModuleLoadData', ctypes.byref(module), image_of(first, cubins))
    data = b''.join(rp.inputs(seed) for seed in seeds)
    driver.ok('cuMemcpyHtoD_v2', ctypes.c_uint64(room[0]), data, ctypes.c_size_t(len(data)))
    driver.ok('cuMemsetD8_v2', ctypes.c_uint64(room[1]), ctypes.c_ubyte(0),
              ctypes.c_size_t(len(seeds) * runner.PROGRAM_BYTES))
    driver.ok('cuCtxSynchronize')
    if alone:
        for at, seed in enumerate(seeds):
            say(f'run {seed}')
            launch(driver, module, room, at, seed)
            wait(driver)
            tell_results(driver, room, at, [seed], say)
    else:
        say(f'batch {seeds[0]}')
        for at, seed in enumerate(seeds):
            launch(driver, module, room, at, seed)
        wait(driver)
        tell_results(driver, room, 0, seeds, say)
    driver.ok('cuModuleUnload', module)
    say('rest')


def child(orders, answers, cubins):
    """Runs the seeds of each line that it reads; the first word says how."""
    def say(line):
        os.write(answers, (line + '\n').encode())

    try:
        say('start')
        driver = runner.Driver()
        room = driver.allocate(BATCH * runner.INPUT_BYTES), driver.allocate(BATCH * runner.PROGRAM_BYTES)
        say('rest')
        with os.fdopen(orders, encoding='ascii') as lines:
            for line in lines:
                how, *seeds = line.split()
                run_batch(driver, room, [int(seed) for seed in seeds], how == 'alone', cubins, say)
    except runner.Failure as failure:
        say(f'failed {failure}')
    finally:
        os._exit(0)      # without a call of the driver, which could wait


class Child:
    def __init__(self, cubins):
        order_read, self.orders = os.pipe()
        self.answers, answer_write = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.orders)
            os.close(self.answers)
            child(order_read, answer_write, cubins)
        os.close(order_read)
        os.close(answer_write)
        self.left, self.unread = [], b''
        self.started = self.alone = False
        self.enter('start')

    def enter(self, phase, seed=None):
        self.phase, self.seed = phase, seed
        self.deadline = time.monotonic() + SECONDS[phase]

    def give(self, seeds, alone):
        self.left, self.alone = list(seeds), alone
        os.write(self.orders, (' '.join(['alone' if alone else 'batch', *map(str, seeds)]) + '\n').encode())
        self.enter('rest')

    def end(self):
        os.kill(self.process, signal.SIGKILL)
        os.close(self.orders)
        os.close(self.answers)
        os.waitpid(self.process, os.WNOHANG)     # one that the kernel does not let go stays behind


class Recording:
    def __init__(self, first, end, out, jobs, limit, cubins):
        self.queue = [list(range(max(first, batch), min(end, batch + BATCH)))
                      for batch in range(first // BATCH * BATCH, end, BATCH)]
        self.suspects = []       # modules of which a program may never end
        self.jobs, self.end, self.cubins = jobs, time.monotonic() + limit, cubins
        self.results, self.stuck = open(out, 'a', encoding='ascii'), open(out + '.stuck', 'a', encoding='ascii')
        self.count = self.stuck_count = self.not_started = 0
        self.children, self.selector, self.reported = [], selectors.DefaultSelector(), 0.0

    def report(self, text=''):
        print(f'{time.strftime("%T")} {self.count} ended, {self.stuck_count} stuck, '
              f'{len(self.queue)} + {len(self.suspects)} batches left; '
              + ', '.join(f'{one.process}: {one.phase} {one.seed or ""}' for one in self.children) + text,
              file=sys.stderr, flush=True)
        self.reported = time.monotonic()

    def drop(self, one, why):
        """What one did not run goes back; what it was running alone counts as stuck."""
        self.report(f'; {one.process} {why} in {one.phase} {one.seed or ""}')
        if not one.started:
            self.not_started += 1
        elif one.alone and one.seed is not None:
            # A module that does not load has all programs that are left.
            lost = list(one.left) if one.phase == 'load' else [one.seed]
            self.stuck.write(''.join(f'{seed} {one.phase} {why}\n' for seed in lost))
            self.stuck.flush()
            self.stuck_count += len(lost)
            one.left = [seed for seed in one.left if seed not in lost]
        if one.left:
            self.suspects.append(one.left)
        self.selector.unregister(one.answers)
        self.children.remove(one)
        one.end()

    def take(self, one, line):
        words = line.split(' ', 1)
        if words[0] == 'is':
            self.results.write(words[1] + '\n')
            self.results.flush()
            self.count += 1
            one.left.remove(int(words[1].split()[0]))
            one.enter('rest')
        elif words[0] == 'failed':
            return words[1]
        else:
            one.enter(words[0], int(words[1]) if len(words) > 1 else None)
            if words[0] == 'rest' and not one.left:
                one.started, self.not_started = True, 0
                self.give_next(one)
        return None

    def read(self, one):
        """The reason why one ended, or None."""
        data = os.read(one.answers, 1 << 16)
        if not data:
            return 'ended'
        *lines, one.unread = (one.unread + data).split(b'\n')
        for line in lines:
            failure = self.take(one, line.decode())
            if failure:
                return failure
        return None

    def give_next(self, one):
        if self.queue:
            one.give(self.queue.pop(0), False)
        elif self.suspects and not any(other.left for other in self.children):
            one.give(self.suspects.pop(0), True)

    def idle(self, one):
        return one.started and not one.left

    def run(self):
        while self.unfinished() and time.monotonic() < self.end:
            if self.not_started >= STARTS:
                self.report('; the driver does not start')
                break
            while len(self.children) < (self.jobs if self.queue else bool(self.suspects)):
                one = Child(self.cubins)
                self.children.append(one)
                self.selector.register(one.answers, selectors.EVENT_READ, one)
            for key, _ in self.selector.select(0.05):
                why = self.read(key.data)
                if why:
                    self.drop(key.data, why)
            for one in self.children:
                if self.idle(one):
                    self.give_next(one)
            now = time.monotonic()
            late = [one for one in self.children if now > one.deadline and not self.idle(one)]
            unread = [key.data for key, _ in self.selector.select(0)] if late else []
            for one in late:
                if one not in unread:   # this process may have stood still itself
                    self.drop(one, f'took more than {SECONDS[one.phase]:g} s')
            if now - self.reported > 5:
                self.report()
        self.report()
        for one in self.children:
            one.end()
        self.results.close()
        self.stuck.close()
        return not self.unfinished() and self.stuck_count == 0

    def unfinished(self):
        return bool(self.queue or self.suspects or any(one.left for one in self.children))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('first', type=int)
    parser.add_argument('end', type=int)
    parser.add_argument('out')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--limit', type=float, default=100)
    parser.add_argument('--cubins', help='a folder with NNNNN.xz: batches of 100 by their first seed, compiled and packed')
    arguments = parser.parse_args()
    os.environ['CUDA_CACHE_DISABLE'] = '1'
    whole = Recording(arguments.first, arguments.end, arguments.out, arguments.jobs, arguments.limit,
                      arguments.cubins).run()
    sys.stdout.flush()
    os._exit(0 if whole else 1)      # without a wait for children that cannot be ended


if __name__ == '__main__':
    main()
