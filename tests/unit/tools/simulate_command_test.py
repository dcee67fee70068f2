#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus simulate` runs a program that knows nothing of it: ending, signals, counts, strict mode, matrix.

usage: simulate_command_test.py COMMAND PROGRAM MACHINE[,MACHINE...] RECORDS
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

COMMAND, PROGRAM, MACHINES = sys.argv[1], sys.argv[2], sys.argv[3].split(',')
FOLDER = sys.argv[4]


def ending_on(machine):
    """Of a touch of managed memory while the device may work on it."""
    with open(os.path.join(FOLDER, machine + '.json'), encoding='utf-8') as file:
        record = json.load(file)
    attributes = record['devices'][0]['attributes'] if record['devices'] else {}
    if attributes.get('MANAGED_MEMORY') != 1:
        return 'exit code 91'
    return 'exit code 0' if attributes['CONCURRENT_MANAGED_ACCESS'] == 1 else 'signal 11'


def clean(env=None):
    kept = {key: value for key, value in os.environ.items() if not key.startswith('ISTHMUS_')}
    # The program's death by a signal is tested: AddressSanitizer's handler would end it with an exit code.
    kept['ASAN_OPTIONS'] = ':'.join(filter(None, [kept.get('ASAN_OPTIONS'), 'handle_segv=0']))
    return {**kept, **(env or {})}


def simulate(*words, options=(), machine='orin', env=None):
    choice = ['--machine', machine] if machine else []
    return subprocess.run([COMMAND, 'simulate', *choice, *options, '--', *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, env=clean(env))


def document(*words, options=(), machine='orin'):
    done = simulate(*words, options=['--json', *options], machine=machine)
    return done, json.loads(done.stdout)


class Simulate(unittest.TestCase):
    def test_a_program_runs_and_is_reported(self):
        done = simulate(PROGRAM, 'copy')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith('copied\n'), done.stdout)
        self.assertIn('simulated on orin', done.stdout)
        self.assertIn('copy from host to device memory', done.stdout)

    def test_json_is_the_only_output(self):
        done, said = document(PROGRAM, 'copy')
        self.assertIn('copied', done.stderr)
        self.assertEqual(said['machine'], 'orin')
        self.assertEqual(said['calls']['cuMemcpyHtoD_v2'], 1)
        self.assertEqual(said['copies'], [{'from': 'host', 'to': 'device', 'count': 1, 'bytes': 1000},
                                          {'from': 'device', 'to': 'host', 'count': 1, 'bytes': 1000}])
        self.assertEqual(said['refusals'], [])
        self.assertEqual(said['processes'], 1)

    def test_exit_codes_are_passed_on(self):
        self.assertEqual(simulate(PROGRAM, 'silent', '42').returncode, 42)
        self.assertEqual(simulate(PROGRAM, 'raise', str(int(signal.SIGTERM))).returncode, 128 + signal.SIGTERM)

    def test_words_are_passed_on_as_they_are(self):
        words = ['--machine', 'x', '[a,b]', '', '--', '--help', 'caps', 'two words']
        done = simulate(PROGRAM, 'words', *words, options=['--quiet'])
        self.assertEqual(done.stdout, ''.join(f'<{word}>\n' for word in words))

    def test_programs_are_found_in_path(self):
        folder, name = os.path.split(PROGRAM)
        done = simulate(name, 'silent', env={'PATH': folder + ':/usr/bin:/bin'})
        self.assertEqual(done.returncode, 0, done.stderr)
        missing = simulate('no-such-program')
        self.assertEqual(missing.returncode, 127)
        self.assertIn('no such program', missing.stderr)
        with tempfile.TemporaryDirectory() as place:
            copy = os.path.join(place, 'program')
            with open(copy, 'wb') as out:
                out.write(b'#!/no/interpreter\n')
            os.chmod(copy, 0o755)
            self.assertEqual(simulate(copy).returncode, 126)

    def test_signals_are_passed_on(self):
        for number, code in ((signal.SIGTERM, 6), (signal.SIGUSR1, 5)):
            running = subprocess.Popen([COMMAND, 'simulate', '--', PROGRAM, 'signal'], stdout=subprocess.PIPE,
                                       text=True, env=clean())
            self.assertEqual(running.stdout.readline(), 'ready\n')
            running.send_signal(number)
            rest, _ = running.communicate(timeout=60)
            self.assertIn(f'signal {int(number)}\n', rest)
            self.assertEqual(running.returncode, code)

    def test_processes_are_summed(self):
        done, said = document(PROGRAM, 'children')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(said['processes'], 2)
        self.assertEqual(said['calls']['cuInit'], 2)

    def test_a_program_that_opens_the_other_name_is_simulated(self):
        done, said = document(PROGRAM, 'other-name')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(said['calls']['cuInit'], 1)

    def test_a_touch_of_device_memory_is_caught(self):
        done, said = document(PROGRAM, 'touch')
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV, done.stderr)
        self.assertIn('the CPU touched', said['caught'][0]['text'])

    def test_reads_of_what_nothing_wrote_are_caught_on_request(self):
        done, said = document(PROGRAM, 'read-unwritten', options=['--uninitialised'])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('kernel add_one, PTX line 6', said['caught'][0]['text'])
        self.assertIn('of which nothing wrote all', said['caught'][0]['text'])
        done, said = document(PROGRAM, 'read-unwritten')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(said['caught'], [])

    def test_strict_aborts_by_name(self):
        plain = simulate(PROGRAM, 'destroy-twice')
        self.assertEqual(plain.returncode, 128 + signal.SIGSEGV)
        done, said = document(PROGRAM, 'destroy-twice', options=['--strict'])
        self.assertEqual(done.returncode, 128 + signal.SIGABRT)
        self.assertIn('simulated_program: cuStreamDestroy_v2:', done.stderr)
        self.assertIn('cuStreamDestroy_v2', said['caught'][0]['text'])

    def test_the_runtime_library_and_no_driver_are_explained(self):
        done, said = document(PROGRAM, 'runtime-library')
        self.assertEqual(len(said['notes']), 1)
        self.assertIn('CUDA runtime library', said['notes'][0])
        self.assertEqual(said['unsupported'], [{'text': 'cuGetExportTable', 'count': 1}])
        self.assertIn('libcudart', done.stderr)
        done, said = document(PROGRAM, 'silent')
        self.assertIn('no call of the simulated driver', said['notes'][0])

    def test_several_machines_make_a_matrix(self):
        done, said = document(PROGRAM, 'copy', options=['--machines', 'h200,orin'], machine=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([one['machine'] for one in said['machines']], ['h200', 'orin'])
        for one in said['machines']:  # the counts of one machine are not the next one's
            self.assertEqual(one['calls']['cuInit'], 1)
            self.assertEqual(one['last_line'], 'copied')
        # Seeded: the work has not begun. Where the processor has no protection keys, a touch while it runs is not caught.
        text = simulate(PROGRAM, 'touch-managed', options=['--machines', 'all'], machine=None,
                        env={'ISTHMUS_SIM_MODE': 'seeded'})
        self.assertEqual(text.returncode, 1)
        matrix = text.stdout.split('\n\n')[0]
        rows = {line.split()[0]: line for line in matrix.splitlines()}
        self.assertIn('no-gpu', rows)
        for machine in MACHINES:
            self.assertIn(ending_on(machine), rows[machine])
        self.assertIn('managed memory, before work of device 0 was synchronised', ' '.join(text.stdout.split()))

    def test_a_program_that_hangs_is_ended(self):
        done, said = document(PROGRAM, 'signal', options=['--machines', 'orin', '--deadline', '0.5'], machine=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn('did not end', said['machines'][0]['problem'])

    def test_closed_output_does_not_escape_the_deadline(self):
        done, said = document('/bin/sh', '-c', 'exec >&- 2>&-; exec sleep 1000',
                              options=['--machines', 'orin', '--deadline', '0.5'], machine=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn('did not end', said['machines'][0]['problem'])

    def test_a_daemon_that_keeps_the_output_does_not_delay_the_end(self):
        done, said = document('/bin/sh', '-c', 'setsid sleep 20 & echo done',
                              options=['--machines', 'orin', '--deadline', '10'], machine=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(said['machines'][0]['last_line'], 'done')

    def test_damaged_counts_do_not_hide_the_ending(self):
        damage = 'echo damage > "$ISTHMUS_SIM_STATISTICS"; exit 7'
        done = simulate('/bin/sh', '-c', damage)
        self.assertEqual(done.returncode, 7)
        self.assertIn('counts are damaged', done.stderr)
        self.assertEqual(simulate('/bin/sh', '-c', 'rm "$ISTHMUS_SIM_STATISTICS"; exit 7').returncode, 7)
        done, said = document('/bin/sh', '-c', damage, options=['--machines', 'orin,h200'], machine=None)
        self.assertEqual(done.returncode, 1)
        for one in said['machines']:
            self.assertEqual(one['exit_code'], 7)

    def test_an_ignored_end_of_children_is_not_inherited(self):
        for options in (['--machine', 'orin'], ['--machines', 'orin', '--deadline', '20']):
            done = subprocess.run([COMMAND, 'simulate', *options, '--', PROGRAM, 'copy'], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=60, env=clean(), check=False,
                                  preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_report_goes_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, 'report.json')
            done = simulate(PROGRAM, 'copy', options=['--quiet', '--output', file], env={'TMPDIR': folder})
            self.assertEqual(done.stdout, 'copied\n')
            with open(file, encoding='utf-8') as text:
                self.assertEqual(json.load(text)['exit_code'], 0)
            self.assertEqual(os.listdir(folder), ['report.json'])  # nothing else is left

    def test_the_machine_is_the_environments_or_the_default(self):
        with_default = simulate(PROGRAM, 'copy', machine=None, env={'ISTHMUS_SIM': ''})
        self.assertIn('simulated on h200', with_default.stdout)
        self.assertIn('simulated on thor', simulate(PROGRAM, 'copy', machine=None, env={'ISTHMUS_SIM': 'thor'}).stdout)

    def test_bad_usage_is_refused(self):
        for options, words, reason in ((['--machine', 'nothing'], [PROGRAM], 'unknown machine'),
                                       (['--machine', 'orin', '--machines', 'h200'], [PROGRAM], 'goes without'),
                                       ([], [], 'needs a program')):
            done = subprocess.run([COMMAND, 'simulate', *options, '--', *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(reason, done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
