#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generated reference has the public types with their comments, and nothing of the inside.

    reference_test.py filter SOURCE_ROOT                     what Doxygen reads of a header and of a page
    reference_test.py doxygen SOURCE_ROOT DOXYFILE DOXYGEN   the whole reference; DOXYGEN '' skips

Expected comments are read from the headers, so that this test holds for any wording.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SKIPPED = 77
HEADER = '''\
// SPDX-License-Identifier: Apache-2.0
// Things, in a file.
#pragma once

namespace isthmus {
inline namespace v0 {

// A free-standing remark.

// What a Thing<T> is; see Thing::size().
//   Thing<int> thing(4);
// Not thread-safe.
template <class T>
class Thing {
public:
    // Elements, not bytes.
    int size() const {
        // a remark of the body
        return count;  // and another
    }
    const char* text = "// {";  // in a literal
    int count = 0;  // of elements,
                    // at most 8
    // a remark at the end
};
enum class Kind : int {
    one,  // the first
    two   // the last; `a<b>` and a<b>
};
// Why the assertion.
static_assert(true);

}  // namespace v0
}  // namespace isthmus
'''
READ = '''\
/// \\file
/// Things, in a file.
#pragma once

namespace isthmus {


// A free-standing remark.

/// What a Thing\\<T\\> is; see \\ref isthmus::Thing::size "Thing::size"().
///
///     Thing<int> thing(4);
/// Not thread-safe.
template <class T>
class Thing {
public:
    /// Elements, not bytes.
    int size() const {
        // a remark of the body
        return count;  // and another
    }
    const char* text = "// {";  ///< in a literal
    int count = 0;  ///< of elements,
                    ///< at most 8
    // a remark at the end
};
enum class Kind : int {
    one,  ///< the first
    two   ///< the last; `a<b>` and a\\<b\\>
};
// Why the assertion.
static_assert(true);


}  // namespace isthmus
'''
C_HEADER = '''\
// SPDX-License-Identifier: Apache-2.0
/* Callbacks. */
/* One
 * piece. */
struct piece {
    int bytes; /* at most 8 */
};
'''
C_READ = '''\
/** \\file
   Callbacks. */
/** One
 * piece. */
struct piece {
    int bytes; /**< at most 8 */
};
'''
# Header, the line that declares, the name in the reference. The comment is above the line or behind it.
CHOSEN = [
    ('runtime/front/include/isthmus/runtime.hpp', 'class ISTHMUS_API Runtime {', 'isthmus::Runtime'),
    ('runtime/core/include/isthmus/device.hpp', 'class ISTHMUS_API Device {', 'isthmus::Device'),
    ('runtime/core/include/isthmus/stream.hpp', 'class ISTHMUS_API Stream {', 'isthmus::Stream'),
    ('runtime/core/include/isthmus/buffer.hpp', 'class Buffer : public', 'isthmus::Buffer'),
    ('runtime/vocabulary/isthmus/result.hpp', 'class [[nodiscard]] Result {', 'isthmus::Result'),
    ('runtime/ipc/include/isthmus/ipc/shared_frame_ring.hpp', 'class SharedFrameRing {', 'isthmus::SharedFrameRing'),
    ('runtime/front/include/isthmus/runtime.hpp', 'static Result<Runtime> open(', 'isthmus::Runtime::open'),
    ('runtime/front/include/isthmus/runtime.hpp', 'Device& default_device()', 'isthmus::Runtime::default_device'),
    ('runtime/vocabulary/isthmus/result.hpp', 'timed_out = 8,', 'isthmus::Code::timed_out'),
    ('runtime/vocabulary/isthmus/result.hpp', '#define ISTHMUS_TRY(', 'ISTHMUS_TRY'),
]
PAGES = ['page_docs_errors', 'page_docs_machines', 'page_docs_promises', 'page_docs_glossary']


def words(text):
    return re.findall(r'\w+', text)


def comment_of(root, header, declaration):
    lines = (root / header).read_text(encoding='utf-8').splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip().startswith(declaration))
    _, _, behind = lines[at].partition('//')
    above = []
    while lines[at - 1].lstrip().startswith(('//', 'template')):
        at -= 1
        above.insert(0, lines[at].lstrip().removeprefix('//') if '//' in lines[at] else '')
    comment = words(' '.join(above) + behind)
    assert comment, f'{header}: no comment at {declaration}'
    return comment


def described(folder):
    """Name → the words of its descriptions, of all that is in the reference."""
    found, names = {}, set()
    for path in folder.glob('*.xml'):
        for compound in xml.etree.ElementTree.parse(path).getroot().iter('compounddef'):
            name = compound.findtext('compoundname')
            parts = [(name, compound)] if compound.get('kind') != 'file' else []
            for member in compound.iter('memberdef'):
                inside = member.findtext('qualifiedname') or member.findtext('name')
                parts.append((inside, member))
                parts += [(f'{inside}::{value.findtext("name")}', value) for value in member.iter('enumvalue')]
            for name, element in parts:
                texts = [''.join(element.find(kind).itertext()) for kind in ('briefdescription', 'detaileddescription')]
                found.setdefault(name, []).append(words(' '.join(texts)))
            names.update(name for name, _ in parts)
    return found, names


def filtered(root, folder, name, text):
    path = folder / name
    path.write_text(text, encoding='utf-8')
    return subprocess.run([root / 'tools/scripts/reference-filter', path], text=True, capture_output=True,
                          check=True).stdout


def check_filter(root):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text, expected in (('thing.hpp', HEADER, READ), ('thing.h', C_HEADER, C_READ)):
            found = filtered(root, folder, file, text)
            assert found == expected, f'{file} is read as\n{found}'
    page = subprocess.run([root / 'tools/scripts/reference-filter', root / 'docs/glossary.md'], text=True,
                          capture_output=True, check=True).stdout
    assert page.startswith('# Glossary {#page_docs_glossary}\n'), page[:80]
    assert '{#page_docs_glossary_cuda--isthmus}' in page and '[Below](@ref page_docs_glossary_cuda--isthmus)' in page
    assert '\\ref isthmus::Device::allocate "Device::allocate"' in page and '[memory.md](@ref page_docs_memory)' in page
    assert page.count('\n') == (root / 'docs/glossary.md').read_text(encoding='utf-8').count('\n')


def check_reference(root, doxyfile, doxygen):
    def made(folder, *settings):
        text = '\n'.join([f'@INCLUDE = "{doxyfile}"', f'OUTPUT_DIRECTORY = "{folder}"', 'GENERATE_HTML = NO',
                          'GENERATE_XML = YES', 'XML_PROGRAMLISTING = NO', *settings])
        return subprocess.run([doxygen, '-'], input=text, text=True, capture_output=True, check=False, cwd=root)

    with tempfile.TemporaryDirectory() as name:
        done = made(name)
        assert done.returncode == 0, done.stderr
        found, names = described(pathlib.Path(name) / 'xml')
        for header, declaration, entry in CHOSEN:
            comment = comment_of(root, header, declaration)
            assert comment in found.get(entry, []), f'{entry}: {comment}\nis not among\n{found.get(entry)}'
        assert set(PAGES) <= names, sorted(names)
        inside = sorted(name for name in names if re.search(r'(^|::)(detail|v0)(::|$)|^ISTHMUS_DETAIL', name))
        assert not inside, f'not public: {inside}'

    with tempfile.TemporaryDirectory() as name:
        header = pathlib.Path(name) / 'wrong.hpp'
        for text, said in (('See Nowhere::at_all().', 'Nowhere::at_all'),
                           ('See docs/nowhere.md.', 'page_docs_nowhere')):
            header.write_text(f'// SPDX\n// {text}\n#pragma once\n', encoding='utf-8')
            done = made(name, f'INPUT = "{header}"')
            assert done.returncode != 0 and said in done.stderr, (done.returncode, done.stderr)
    print(f'{len(names)} names')


if __name__ == '__main__':
    what, top = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == 'filter':
        check_filter(top)
    elif not sys.argv[4]:
        print('skipped: no doxygen of 1.9.4 or newer was found when the build was set up')
        sys.exit(SKIPPED)
    else:
        check_reference(top, *sys.argv[3:])
