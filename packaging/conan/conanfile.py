# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe: `conan create packaging/conan -s compiler.cppstd=20` in a checkout. Meson, Ninja and, with the option
numa, libnuma's headers come from the system."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load, rm, rmdir
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

required_conan_version = '>=2.0'
# The files that the library is built from. meson.build reads bench/ and docs/reference/ even where neither is built.
SOURCES = ('meson.build', 'meson_options.txt', 'LICENSE', 'bench/*', 'bindings/*', 'docs/reference/*', 'kernels/*', 'packaging/*.in',
           'packaging/meson.build', 'platform/*', 'runtime/*')


class IsthmusRecipe(ConanFile):
    name = 'isthmus'
    description = 'Joins CPU and GPU memory on whatever machine it finds'
    license = 'Apache-2.0'
    topics = ('cuda', 'gpu', 'memory', 'embedded')
    package_type = 'library'
    settings = 'os', 'arch', 'compiler', 'build_type'
    options = {'shared': [True, False], 'fPIC': [True, False], 'numa': [True, False], 'simulator': [True, False],
               'gpu_kernels': [True, False]}
    # The simulator needs nlohmann-json of the system; gpu_kernels needs nvcc.
    default_options = {'shared': True, 'fPIC': True, 'numa': False, 'simulator': False, 'gpu_kernels': False}
    implements = ['auto_shared_fpic']

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, '..', '..', 'meson.build'))
        self.version = re.search(r"^ *version: '([\d.]+)',", text, flags=re.M)[1]

    def export_sources(self):
        root = os.path.normpath(os.path.join(self.recipe_folder, '..', '..'))
        for pattern in SOURCES:
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def validate(self):
        if self.settings.os != 'Linux':
            raise ConanInvalidConfiguration('isthmus runs on Linux only')
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = MesonToolchain(self)
        for part in ('tests', 'tools', 'examples', 'docs'):
            toolchain.project_options[part] = False
        toolchain.project_options['bench'] = 'disabled'
        toolchain.project_options['ucx'] = 'disabled'
        # The interface in C needs the shared library.
        toolchain.project_options['bindings_c'] = bool(self.options.shared)
        toolchain.project_options['simulator'] = bool(self.options.simulator)
        toolchain.project_options['numa'] = 'enabled' if self.options.numa else 'disabled'
        toolchain.project_options['kernels_gpu'] = 'enabled' if self.options.gpu_kernels else 'disabled'
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, 'LICENSE', self.source_folder, os.path.join(self.package_folder, 'licenses'))
        rmdir(self, os.path.join(self.package_folder, 'share'))
        # Conan writes these files for the consumer; IsthmusKernels.cmake stays.
        rmdir(self, os.path.join(self.package_folder, 'lib', 'pkgconfig'))
        rm(self, 'isthmusConfig*.cmake', os.path.join(self.package_folder, 'lib', 'cmake', 'isthmus'))
        # The build makes both the static and the shared library; the other one is removed.
        rm(self, 'libisthmus.a' if self.options.shared else 'libisthmus.so*', os.path.join(self.package_folder, 'lib'))

    def package_info(self):
        self.cpp_info.set_property('cmake_file_name', 'isthmus')
        self.cpp_info.set_property('cmake_build_modules', ['lib/cmake/isthmus/IsthmusKernels.cmake'])
        library = self.cpp_info.components['isthmus']
        library.set_property('cmake_target_name', 'isthmus::isthmus')
        library.set_property('pkg_config_name', 'isthmus')
        library.libs = ['isthmus']
        if not self.options.shared:
            library.defines = ['ISTHMUS_STATIC']
            library.system_libs = ['dl', 'pthread'] + (['numa'] if self.options.numa else [])
        camera = self.cpp_info.components['camera_kernels']
        camera.set_property('cmake_target_name', 'isthmus::camera_kernels')
        camera.set_property('pkg_config_name', 'isthmus-camera-kernels')
        camera.libs = ['isthmus-camera-kernels']
        camera.requires = ['isthmus']
        if self.options.shared:
            interface = self.cpp_info.components['c']
            interface.set_property('cmake_target_name', 'isthmus::c')
            interface.set_property('pkg_config_name', 'isthmus-c')
            interface.libs = ['isthmus-c']
            interface.requires = ['isthmus']
            by_name = self.cpp_info.components['c_camera']
            by_name.set_property('cmake_target_name', 'isthmus::c_camera')
            by_name.set_property('pkg_config_name', 'isthmus-c-camera')
            by_name.libs = ['isthmus-c-camera']
            by_name.requires = ['c']
        trace = self.cpp_info.components['trace']
        trace.set_property('cmake_target_name', 'isthmus::trace')
        trace.set_property('pkg_config_name', 'isthmus-trace')
        trace.libs = ['isthmus-trace']
        trace.requires = ['isthmus']
