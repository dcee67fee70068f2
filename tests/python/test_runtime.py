# SPDX-License-Identifier: Apache-2.0
"""Runtimes, devices, capabilities, reprs."""
import json

import pytest

import isthmus
from conftest import MACHINE, opened


def test_the_default_device_is_the_machines(runtime, device):
    assert device.is_cpu == (MACHINE == 'cpu')
    assert runtime.devices[-1] == runtime.cpu and runtime.cpu.is_cpu
    assert device in list(runtime)
    assert runtime.is_simulated == (MACHINE not in ('cpu', 'here'))
    assert (runtime.cuda_absence is None) or device.is_cpu


def test_capabilities_have_states_and_reasons(device):
    table = device.capabilities
    assert len(table) >= 27 and set(table) >= {'pageable_access', 'concurrent_managed', 'integrated'}
    for name, one in table.items():
        assert one.name == name and one.state in ('no', 'yes', 'probed') and str(one) == one.reason and one.reason
        assert bool(one) == (one.state != 'no')
    if MACHINE == 'orin':
        assert table['integrated'] and not table['concurrent_managed']
    if MACHINE == 'gh200-numa':
        assert table['host_page_tables'] and device.model == 'c2c'


def test_a_wrong_name_of_a_capability_is_refused_with_the_near_one(device):
    with pytest.raises(KeyError, match="did you mean 'pageable_access'"):
        device.capabilities['pagable_access']


def test_notebooks_show_tables(runtime, device):
    page = device.capabilities._repr_html_()
    assert page.count('<tr>') == len(device.capabilities) + 1 and '<script' not in page
    assert device.name in device._repr_html_() and device.name in runtime._repr_html_()
    assert 'pageable_access' in repr(device.capabilities)


def test_html_escapes():
    from isthmus import html
    assert '<b>' not in html.table('<b>', ['<b>'], [['<b>']])
    assert '&lt;b&gt;' in html.capability_table('t', [('<b>', 'no', '')])


def test_reprs_name_what_they_are(runtime, device, stream):
    buffer = device.allocate_shared((4, 5), 'f4')
    assert repr(runtime).startswith('<isthmus.Runtime with ') and device.name in repr(device)
    assert 'float32[4, 5]' in repr(buffer) and buffer.kind in repr(buffer) and 'Stream' in repr(stream)
    buffer.close()
    assert 'closed' in repr(buffer)


def used(runtime):
    device = runtime.default_device
    buffer = device.allocate_shared(4096)
    device.stream.fill(buffer, 7)
    with buffer.host('r') as scope:
        assert scope[4095] == 7
        with pytest.raises(isthmus.InUse):
            buffer.host('w')
    buffer.close()


def test_a_trace_is_written_when_the_runtime_is_closed(tmp_path):   # keeps O2, Y2
    file = tmp_path / 'trace.json'
    with opened(trace=file) as runtime:
        used(runtime)
        assert not file.exists()
    events = json.loads(file.read_text())['traceEvents']
    names = {event['name'] for event in events}
    assert any('fill' in name for name in names) and any('refused' in str(event) for event in events)
    with pytest.raises(isthmus.Error, match='/nonexistent/trace.json: No such file'):
        opened(trace='/nonexistent/trace.json')
    full = opened(trace='/dev/full')
    with pytest.raises(isthmus.Error, match='/dev/full'):
        full.close()
    full.close()
    with pytest.raises(isthmus.InvalidArgument, match='name of a file'):
        opened(trace='')


def test_the_environment_names_the_trace(in_new_process, tmp_path, monkeypatch):   # keeps O2, Y2
    file = tmp_path / 'trace.json'
    monkeypatch.setenv('ISTHMUS_TRACE', str(file))
    in_new_process('''
        runtime = opened()
        runtime.default_device.stream.fill(runtime.default_device.allocate_shared(64), 1)
        del runtime   # without a close(): the last reference writes it
    ''')
    assert json.loads(file.read_text())['traceEvents']


def test_counters_are_numbers_with_names(tmp_path):   # keeps O3, Y2
    with opened() as runtime:
        before = runtime.counters
        used(runtime)
        after = runtime.counters
        assert after['isthmus_refused_views_total'] == before['isthmus_refused_views_total'] + 1
        assert all(name.startswith('isthmus_') and value >= 0 for name, value in after.items())
        assert '# TYPE isthmus_waits_total counter' in runtime.counters_text()
        assert f'isthmus_cache_misses_total{{device="{runtime.default_device.index}"}}' in after
    with pytest.raises(isthmus.InvalidHandle):
        runtime.counters_text()


def test_closing_twice_is_harmless_and_use_behind_it_is_refused():   # keeps Y3
    runtime = opened()
    device = runtime.default_device
    buffer = device.allocate_shared(16)
    runtime.close()
    runtime.close()
    with pytest.raises(isthmus.InvalidHandle, match='closed'):
        runtime.default_device
    with pytest.raises(isthmus.InvalidHandle, match='closed'):
        device.allocate_shared(16)
    with buffer.host('w') as memory:   # what was made lives on
        memory[:] = bytes(16)
    buffer.close()
    buffer.close()
    with pytest.raises(isthmus.InvalidHandle):
        buffer.host('r')
    assert 'closed' in repr(runtime) and runtime._repr_html_()


def test_an_unknown_machine_is_refused_with_the_known_ones():
    with pytest.raises(isthmus.InvalidArgument, match='orin'):
        isthmus.open(machine='orion')


def test_a_process_plays_one_machine(runtime):
    other = 'thor' if MACHINE == 'orin' else 'orin'
    if MACHINE == 'cpu':
        pytest.skip('the CPU device alone asks for no driver')
    with pytest.raises(isthmus.NotPermitted, match='start another'):
        isthmus.open(machine=other)


def test_the_simulator_is_opened_on_request_only(in_new_process):   # keeps Y2
    source = '''
        with isthmus.open(machine={!r}) as runtime: runtime.default_device
        print(sum('/sim/libcuda.so.1' in line for line in open('/proc/self/maps')) > 0)
    '''
    assert in_new_process(source.format('orin')).strip() == 'True'
    assert in_new_process(source.format(None)).strip() == 'False'


def test_the_version_is_the_librarys():
    from importlib import metadata
    assert isthmus.__version__ == metadata.version('isthmus')
