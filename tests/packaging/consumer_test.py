#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the library into a folder of its own and builds a program against it, as another project would.

usage: consumer_test.py KIND BUILD_DIR VERSION LIBDIR LIBRARY -- CXX [ARGUMENT...]
KIND: pkg-config, cmake, meson, subproject, wrap (a subproject that packaging/isthmus.wrap provides), superbuild (CMake
builds both projects), or bare: a system without dpkg-architecture. LIBDIR: below the prefix. Exit code 77: a tool for it
is missing here.
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_ROOT = os.path.dirname(os.path.dirname(HERE))
EXPECTED = 'sum 90'


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            print(f'skipped: {tool} is not here')
            sys.exit(77)


def run(*command, **options):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    if result.returncode != 0:
        sys.exit(f'{shlex.join(command)} failed with {result.returncode}:\n{result.stdout}')
    return result.stdout


def run_product(program, extra_library_dir=None):
    """Runs what was built, through the wrapper of a cross build; says that it answered rightly."""
    environment = dict(os.environ)
    environment.pop('LD_LIBRARY_PATH', None)  # Meson's value names the library of the build, not the installed one
    if extra_library_dir:
        environment['LD_LIBRARY_PATH'] = extra_library_dir
    answer = run(*shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')), program, env=environment)
    if EXPECTED not in answer:
        sys.exit(f'{program} answered {answer!r}, not {EXPECTED!r}')
    print(os.path.basename(program), 'answered', answer.strip())


def install(build_dir, destination):
    need('meson')
    run('meson', 'install', '-C', build_dir, '--no-rebuild', '--destdir', destination)
    prefixes = glob.glob(os.path.join(destination, '**', 'include', 'isthmus', 'isthmus.hpp'), recursive=True)
    if len(prefixes) != 1:
        sys.exit(f'the headers were installed to {prefixes}')
    return os.path.dirname(os.path.dirname(os.path.dirname(prefixes[0])))


def c_compiler(compiler):
    """The compiler for C beside one for C++: aarch64-linux-gnu-gcc beside aarch64-linux-gnu-g++."""
    return re.sub(r'clang\+\+', 'clang', re.sub(r'g\+\+', 'gcc', re.sub(r'\bc\+\+', 'cc', compiler[-1])))


def run_if_built(program, extra_library_dir=None):
    """The program in C, unless the build has no interface in C."""
    if os.path.exists(program):
        run_product(program, extra_library_dir)
    else:
        print(os.path.basename(program), 'was not built: -Dbindings_c=false')


def check_headers(prefix):
    installed = {os.path.relpath(path, os.path.join(prefix, 'include/isthmus'))
                 for path in glob.glob(os.path.join(prefix, 'include/isthmus/**/*'), recursive=True) if os.path.isfile(path)}
    expected = {'version.hpp'}
    rooms = glob.glob(os.path.join(SOURCE_ROOT, 'runtime/*/include/isthmus'))
    others = ('runtime/vocabulary/isthmus', 'kernels/include/isthmus', 'bindings/c/include/isthmus',
              'bindings/trace/include/isthmus', 'bindings/ros2/include/isthmus')
    if glob.glob(os.path.join(prefix, 'lib*/**/isthmus-ucx.pc'), recursive=True):  # UCX was there
        others += ('bindings/ucx/include/isthmus',)
    for folder in (*rooms, *(os.path.join(SOURCE_ROOT, top) for top in others)):
        expected |= {os.path.relpath(path, folder) for suffix in ('h', 'hpp')
                     for path in glob.glob(f'{folder}/**/*.{suffix}', recursive=True)}
    if installed != expected:
        sys.exit(f'installed headers differ: missing {sorted(expected - installed)}, '
                 f'unexpected {sorted(installed - expected)}')


def moved_away(prefix, work):
    """The installed tree in another folder: only a package's own place may say where things are."""
    moved = os.path.join(work, 'moved')
    shutil.move(prefix, moved)
    return moved


def pkg_config_environment(prefix, libdir):
    environment = dict(os.environ, PKG_CONFIG_LIBDIR=os.path.join(prefix, libdir, 'pkgconfig'), PKG_CONFIG_PATH='')
    environment.pop('PKG_CONFIG_SYSROOT_DIR', None)
    return environment


def components_of(build_dir):
    options = json.loads(run('meson', 'introspect', '--buildoptions', build_dir))
    return next(option['value'] for option in options if option['name'] == 'components')


def with_pkg_config(work, prefix, libdir, compiler, components):
    need('make', 'pkg-config')
    prefix = moved_away(prefix, work)
    environment = pkg_config_environment(prefix, libdir)
    told = run('pkg-config', '--variable=components', 'isthmus', env=environment).strip()
    if told != ','.join(components):
        sys.exit(f'isthmus.pc names the components "{told}", and the build has {components}')
    consumer = os.path.join(HERE, 'consumer')
    run('make', '-f', os.path.join(consumer, 'Makefile'), f'SOURCE={consumer}', f'CXX={shlex.join(compiler)}',
        f'CC={c_compiler(compiler)}', cwd=work, env=environment)
    run_if_built(os.path.join(work, 'c_consumer'))
    run_product(os.path.join(work, 'consumer'), os.path.join(prefix, libdir))
    run_product(os.path.join(work, 'consumer_static'))
    run_product(os.path.join(work, 'camera'), os.path.join(prefix, libdir))


def with_cmake(work, prefix, compiler, version, components):
    need('cmake', 'make')
    project = os.path.join(work, 'project')
    shutil.copytree(os.path.join(HERE, 'consumer'), project)
    moved = moved_away(prefix, work)
    lists = os.path.join(project, 'CMakeLists.txt')
    with open(lists, encoding='utf-8') as file:
        text = file.read()
    options = [f'-DCMAKE_PREFIX_PATH={moved}', f'-DCMAKE_CXX_COMPILER={compiler[-1]}',
               f'-DCMAKE_C_COMPILER={c_compiler(compiler)}']
    if compiler[:-1]:
        options.append(f'-DCMAKE_CXX_COMPILER_LAUNCHER={compiler[0]}')
    if os.environ.get('MESON_EXE_WRAPPER'):
        # The package lies under lib/<triplet>, which CMake searches when it knows the triplet.
        triplet = run(compiler[-1], '-dumpmachine').strip()
        options += ['-DCMAKE_SYSTEM_NAME=Linux', f'-DCMAKE_LIBRARY_ARCHITECTURE={triplet}']
    there = ' COMPONENTS ' + ' '.join(components) if components else ''
    for at, (wanted, works) in enumerate(((version + there, True), ('99.0', False), (version + ' COMPONENTS none', False))):
        with open(lists, 'w', encoding='utf-8') as file:
            file.write(text.replace('@VERSION@', wanted))
        build = os.path.join(work, f'build-{at}')
        command = ['cmake', '-S', project, '-B', build, '-G', 'Unix Makefiles', *options]
        if works:
            run(*command)
            run('cmake', '--build', build)
            run_product(os.path.join(build, 'consumer_isthmus'))
            run_product(os.path.join(build, 'consumer_isthmus_static'))
            run_product(os.path.join(build, 'app/app'))
            run_product(os.path.join(build, 'camera'))
            run_if_built(os.path.join(build, 'c_consumer'))
        elif subprocess.run(command, capture_output=True, check=False).returncode == 0:
            sys.exit(f'CMake took version {version} for {wanted}')


def meson_project(work, version):
    project = os.path.join(work, 'project')
    shutil.copytree(os.path.join(HERE, 'consumer'), project)
    with open(os.path.join(project, 'meson.build.in'), encoding='utf-8') as file:
        text = file.read()
    with open(os.path.join(project, 'meson.build'), 'w', encoding='utf-8') as file:
        file.write(text.replace('@VERSION@', version))
    return project


def with_meson(work, prefix, libdir, compiler, version):
    need('meson', 'pkg-config', 'ninja')
    if os.environ.get('MESON_EXE_WRAPPER'):
        print('skipped: a cross build of the consumer; pkg-config and CMake have theirs')
        sys.exit(77)
    prefix = moved_away(prefix, work)
    environment = dict(pkg_config_environment(prefix, libdir), CXX=shlex.join(compiler))
    environment['PATH'] = os.path.join(prefix, 'bin') + os.pathsep + environment['PATH']  # isthmus-kernel-image
    build = os.path.join(work, 'build')
    run('meson', 'setup', build, meson_project(work, version), '--wrap-mode=nofallback', env=environment)
    run('ninja', '-C', build, env=environment)
    run_product(os.path.join(build, 'consumer'), os.path.join(prefix, libdir))
    run_product(os.path.join(build, 'camera'), os.path.join(prefix, libdir))
    run_product(os.path.join(build, 'c_consumer'), os.path.join(prefix, libdir))


def setup_with_subproject(work, project, compiler, *wraps):
    """A build folder of the project, which has isthmus and the wraps in subprojects/ and takes no installed isthmus."""
    os.mkdir(os.path.join(project, 'subprojects'))
    for wrap in wraps:
        shutil.copy(wrap, os.path.join(project, 'subprojects'))
    os.symlink(SOURCE_ROOT, os.path.join(project, 'subprojects', 'isthmus'))
    environment = dict(os.environ, CXX=shlex.join(compiler), PKG_CONFIG_LIBDIR='/nonexistent')
    build = os.path.join(work, 'build')
    run('meson', 'setup', build, project, '--force-fallback-for=isthmus', '-Dbuildtype=debug', '-Disthmus:werror=false',
        '-Disthmus:kernels_gpu=disabled', '-Disthmus:simulator=false', env=environment)
    return build, environment


def as_subproject(work, compiler, version):
    need('meson', 'ninja')
    build, environment = setup_with_subproject(work, meson_project(work, version), compiler)
    run('ninja', '-C', build, 'consumer', 'camera', 'c_consumer', env=environment)
    run_product(os.path.join(build, 'consumer'))
    run_product(os.path.join(build, 'camera'))
    run_product(os.path.join(build, 'c_consumer'))


def as_wrap(work, compiler, version):
    """The dependencies are found by the wrap alone: the project names no fallback. Nothing is built."""
    need('meson', 'ninja')
    project = meson_project(work, version)
    path = os.path.join(project, 'meson.build')
    with open(path, encoding='utf-8') as file:
        text, fallbacks = re.subn(r", fallback: \[.*?\]", '', file.read())
    if fallbacks != 3:
        sys.exit(f'{path} has {fallbacks} fallbacks, not 3')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    wrap = os.path.join(SOURCE_ROOT, 'packaging', 'isthmus.wrap')
    build, environment = setup_with_subproject(work, project, compiler, wrap)
    told = json.loads(run('meson', 'introspect', '--projectinfo', build, env=environment))['subprojects']
    if [(part['name'], part['version']) for part in told] != [('isthmus', version)]:
        sys.exit(f'the subprojects are {told}')
    print('the wrap provides isthmus', version)


def in_superbuild(work, compiler, version):
    need('cmake', 'make', 'meson', 'ninja')
    project = os.path.join(work, 'project')
    shutil.copytree(os.path.join(HERE, 'consumer'), project)
    lists = os.path.join(project, 'CMakeLists.txt')
    with open(lists, encoding='utf-8') as file:
        text = file.read()
    with open(lists, 'w', encoding='utf-8') as file:
        file.write(text.replace('@VERSION@', version))
    build = os.path.join(work, 'build')
    environment = dict(os.environ, CXX=compiler[-1])
    run('cmake', '-S', os.path.join(HERE, 'superbuild'), '-B', build, '-G', 'Unix Makefiles',
        f'-DISTHMUS_SOURCE={SOURCE_ROOT}', f'-DPROGRAM_SOURCE={project}',
        '-DISTHMUS_OPTIONS=-Dkernels_gpu=disabled;-Dsimulator=false', env=environment)
    run('cmake', '--build', build, env=environment)
    for program in ('consumer_isthmus', 'consumer_isthmus_static', 'camera'):
        run_product(os.path.join(build, 'program', program))


def on_a_bare_system(work, compiler):
    """Without dpkg-architecture the libraries still go where this system's pkg-config looks."""
    need('meson', 'ninja', 'pkg-config')
    if not os.path.exists('/etc/debian_version') or os.environ.get('MESON_EXE_WRAPPER'):
        print('skipped: the folders of Debian, without a cross compiler, are the question')
        sys.exit(77)
    tools = os.path.join(work, 'bin')
    os.mkdir(tools)
    for folder in os.environ['PATH'].split(os.pathsep):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name != 'dpkg-architecture' and not os.path.lexists(os.path.join(tools, name)):
                os.symlink(os.path.join(folder, name), os.path.join(tools, name))
    build = os.path.join(work, 'build')
    environment = dict(os.environ, PATH=tools, CXX=shlex.join(compiler))
    options = [f'-D{name}=false' for name in ('tests', 'tools', 'examples', 'simulator', 'docs')]
    # Meson's default where there is a folder /usr/lib64; given explicitly, because not every system has that folder.
    run('meson', 'setup', build, SOURCE_ROOT, '--prefix=/usr/local', '--libdir=lib64', '-Dkernels_gpu=disabled',
        '-Dbench=disabled', *options, env=environment)
    installed = json.loads(run('meson', 'introspect', '--installed', build, env=environment)).values()
    searched = run('pkg-config', '--variable=pc_path', 'pkg-config').strip().split(':')
    for name in ('isthmus.pc', 'isthmus-camera-kernels.pc', 'isthmus-c.pc', 'isthmus-trace.pc'):
        folders = [os.path.dirname(path) for path in installed if os.path.basename(path) == name]
        if len(folders) != 1 or folders[0] not in searched:
            sys.exit(f'{name} goes to {folders}; pkg-config looks in {searched}')
    libraries = {os.path.dirname(path) for path in installed if 'libisthmus' in os.path.basename(path)}
    if libraries != {os.path.dirname(folders[0])}:
        sys.exit(f'the libraries go to {libraries}, their pkg-config files to {folders}')
    print('libraries go to', *libraries)


def main(arguments):
    split = arguments.index('--')
    kind, build_dir, version, libdir, _library = arguments[:split]
    compiler = arguments[split + 1:]
    with tempfile.TemporaryDirectory() as work:
        if kind == 'subproject':
            as_subproject(work, compiler, version)
            return
        if kind == 'wrap':
            as_wrap(work, compiler, version)
            return
        if kind == 'superbuild':
            in_superbuild(work, compiler, version)
            return
        if kind == 'bare':
            on_a_bare_system(work, compiler)
            return
        destination = os.path.join(work, 'staging')
        prefix = install(build_dir, destination)
        check_headers(prefix)
        if kind == 'pkg-config':
            with_pkg_config(work, prefix, libdir, compiler, components_of(build_dir))
        elif kind == 'cmake':
            with_cmake(work, prefix, compiler, version, components_of(build_dir))
        else:
            with_meson(work, prefix, libdir, compiler, version)


main(sys.argv[1:])
