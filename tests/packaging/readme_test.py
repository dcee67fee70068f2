#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs that README.md and docs/ show are built and tested; what the pages link to exists; docs/README.md lists
every page; decisions are numbered; the files that checklists name exist; pages and packages name the version that is
built.

A block behind `<!-- PATH -->` is that whole file without its licence line, behind `<!-- PATH: NAME -->` the lines between
`// show: NAME` and `// end` in it (`# show: NAME` in Python), moved to the left; every block of C++, C and Python is such
a one, or stands behind `<!-- not compiled: REASON -->`.

usage: readme_test.py SOURCE_ROOT
"""
import os
import re
import sys
import textwrap

root = sys.argv[1]
# The pages and what is installed with them, in the same arrangement.
INSTALLED = ('README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'LICENSE', 'docs/', 'examples/')

# Where packages name their version; conanfile.py reads that of meson.build.
PACKAGE_VERSIONS = {'debian/changelog': r'\Aisthmus \(([^)]*)\) ', 'packaging/isthmus.wrap': r'^revision = v(\S+)$'}


def read(path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def program(path):
    return re.sub(r'\A(//|#) SPDX-[^\n]*\n', '', read(path))


def excerpt(source, name):
    found = re.findall(rf'^ *(?://|#) show: {re.escape(name)}\n(.*?)^ *(?://|#) end\n', source, flags=re.S | re.M)
    return textwrap.dedent(found[0]) if len(found) == 1 else None


def headings(text):
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r'^#+ (.*)$', re.sub(r'```.*?```', '', text, flags=re.S), flags=re.M)
    return {re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in titles}


def wrong_programs(page, text):
    for path, name, code in re.findall(r'<!-- (\S+?)(?:: (\S+))? -->\n```\w+\n(.*?)```', text, flags=re.S):
        source = program(path)
        if (excerpt(source, name) if name else source) != code:
            yield f'{page} shows another {path} {name} than the one that is built'


def loose_programs(page, text):
    """Programs of pages: each is a built file's, or says why it is not compiled."""
    for line in re.findall(r'(?:^|\n)([^\n]*)\n```(?:cpp|c|python)\n', text):
        shown = re.fullmatch(r'<!-- (\S+?)(?:: \S+)? -->', line)
        if shown is None and not re.fullmatch(r'<!-- not compiled: .+ -->', line):
            yield f'{page} shows a program that no file of examples/ is, below "{line}"'
        elif shown and not shown[1].startswith('examples/'):
            yield f'{page} shows {shown[1]}, which is not in examples/'
        elif shown and shown[1].endswith(('.cpp', '.c')) and os.path.splitext(os.path.basename(shown[1]))[0] not in read(
                'examples/meson.build'):
            yield f'{page} shows {shown[1]}, which examples/meson.build does not build'


def unlisted_pages(pages):
    """docs/README.md links to every page beside it, and so puts it into its group."""
    index = read('docs/README.md')
    for page in pages:
        if os.path.dirname(page) == 'docs' and page != 'docs/README.md' and f']({os.path.basename(page)})' not in index:
            yield f'docs/README.md does not list {page}'


def wrong_links(page, text):
    folder = os.path.dirname(page)
    for target in re.findall(r'\]\(([^)\s]+)\)', text):
        path, _, anchor = target.partition('#')
        if re.match(r'[a-z]+:', path):
            continue
        file = os.path.normpath(os.path.join(folder, path)) if path else page
        if not os.path.exists(os.path.join(root, file)):
            yield f'{page} links to {target}, which does not exist'
        elif not file.startswith(INSTALLED):
            yield f'{page} links to {target}, which is not installed beside it (packaging/meson.build)'
        elif anchor and anchor not in headings(read(file)):
            yield f'{page} links to {target}, which has no such heading'


def wrong_decisions():
    index = read('docs/adr/README.md')
    files = sorted(name for name in os.listdir(os.path.join(root, 'docs/adr')) if name != 'README.md')
    numbers = [int(name[:4]) for name in files]
    for name, number in zip(files, numbers):
        title = re.match(r'# (\d+)\. (.*)\n', read(f'docs/adr/{name}'))
        if numbers.count(number) > 1:
            yield f'docs/adr/{name}: the number {number} is another decision\'s, too'
        if title is None or int(title[1]) != number:
            yield f'docs/adr/{name}: its heading is not "# {number}. …"'
        elif f'| [{number}]({name}) | {title[2]} |' not in index:
            yield f'docs/adr/README.md does not list {number}. {title[2]}'


def wrong_files(page, text):
    """Files of the tree that a page names as `folder/file`. Capital words stand for any name: `tests/unit/ROOM`."""
    tops = set(os.listdir(root))
    for path in re.findall(r'`(\.?[\w-]+(?:/[\w.-]+)+)`', text):
        parts = path.split('/')
        known = next((at for at, part in enumerate(parts) if re.search('[A-Z]{4}', part)), len(parts))
        if parts[0] in tops and not os.path.exists(os.path.join(root, *parts[:known])):
            yield f'{page} names {path}, which does not exist'


def wrong_versions():
    """The version of meson.build is that of the changes on top, and the one that the page on building asks for."""
    version = re.search(r"^ *version: '(\d+\.\d+)\.\d+',", read('meson.build'), flags=re.M)
    full = version[0].split("'")[1]
    if not re.search(rf'\A# Changes\n(?:(?!## ).*\n)*## {re.escape(full)}, ', read('CHANGELOG.md')):
        yield f'CHANGELOG.md does not begin with the changes of {full}'
    for page in ('docs/building.md', 'docs/install.md'):
        for asked in re.findall(r'find_package\(isthmus (\S+) REQUIRED\)', read(page)):
            if asked != version[1]:
                yield f'{page} asks for version {asked}; meson.build has {full}'
    for path, pattern in PACKAGE_VERSIONS.items():
        named = re.findall(pattern, read(path), flags=re.M)[:1]
        if named != [full]:
            yield f'{path} is for version {", ".join(named) or "none"}; meson.build has {full}'
    recipes = [name for name in sorted(os.listdir(os.path.join(root, 'packaging/yocto'))) if name.endswith('.bb')]
    if recipes != [f'isthmus_{full}.bb']:
        yield f'packaging/yocto has {", ".join(recipes)}; meson.build has {full}'
    if ('UNRELEASED' in read('debian/changelog').split('\n')[0]) != (f'## {full}, unreleased\n' in read('CHANGELOG.md')):
        yield 'debian/changelog and CHANGELOG.md do not agree whether the version is released'


readme = read('README.md')
pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']
for folder, _, names in os.walk(os.path.join(root, 'docs')):
    pages += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(names) if name.endswith('.md')]
problems = [*wrong_decisions(), *wrong_versions(), *unlisted_pages(pages)]
for page in ('CONTRIBUTING.md', 'docs/releasing.md'):
    problems += wrong_files(page, read(page))
for page in pages:
    text = read(page)
    problems += [*wrong_programs(page, text), *loose_programs(page, text), *wrong_links(page, text)]
if len(re.findall(r'^<!-- \S+ -->\n```cpp', readme, flags=re.M)) < 2:
    problems.append('README.md shows no program')
for path in re.findall(r'^\./(\S+)', readme, flags=re.M):
    if not os.path.exists(os.path.join(root, path)):
        problems.append(f'README.md names {path}, which does not exist')
print('\n'.join(problems) or f'{len(pages)} pages')
sys.exit(1 if problems else 0)
