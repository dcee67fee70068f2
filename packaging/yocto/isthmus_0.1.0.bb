# SPDX-License-Identifier: Apache-2.0
# For images of Jetson boards with the layers meta-tegra and meta-oe (fmt, CLI11, nlohmann-json, numactl).
# The sources are an archive of the tag, in a directory isthmus/ beside this file:
#   git archive --prefix=isthmus-VERSION/ -o isthmus/isthmus-VERSION.tar.gz vVERSION
SUMMARY = "Joins CPU and GPU memory on whatever machine it finds"
DESCRIPTION = "A C++20 runtime whose buffers CPU and GPU use in place wherever the machine allows it"
SECTION = "libs"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

SRC_URI = "file://isthmus-${PV}.tar.gz"

# cuda: the build machine's nvcc, the board's CUDA_ARCHITECTURES, and the driver's library at run time.
inherit meson pkgconfig python3native cuda

COMPATIBLE_MACHINE = "(tegra)"

PACKAGECONFIG ??= "gpu-kernels numa tools"
PACKAGECONFIG[gpu-kernels] = "-Dkernels_gpu=enabled,-Dkernels_gpu=disabled"
PACKAGECONFIG[gstreamer] = "-Dgstreamer=enabled,-Dgstreamer=disabled,gstreamer1.0 gstreamer1.0-plugins-base"
PACKAGECONFIG[numa] = "-Dnuma=enabled,-Dnuma=disabled,numactl"
PACKAGECONFIG[simulator] = "-Dsimulator=true,-Dsimulator=false,nlohmann-json"
PACKAGECONFIG[tools] = "-Dtools=true -Djpeg=enabled -Dpng=enabled,-Dtools=false,cli11 fmt jpeg libpng nlohmann-json"
PACKAGECONFIG[ucx] = "-Ducx=enabled,-Ducx=disabled,ucx libsodium"

ISTHMUS_GPU_ARCHITECTURES ?= "${@','.join((d.getVar('CUDA_ARCHITECTURES') or 'all').split())}"
MESON_BUILDTYPE = "release"
EXTRA_OEMESON = "-Dgpu_architectures=${ISTHMUS_GPU_ARCHITECTURES} -Dtests=false -Dexamples=false -Dbench=disabled -Ddocs=false"

PACKAGE_BEFORE_PN = "${PN}-gstreamer ${PN}-ucx ${PN}-tools ${PN}-simulator"
FILES:${PN}-gstreamer = "${libdir}/gstreamer-1.0"
FILES:${PN}-ucx = "${bindir}/isthmus-bridge ${libdir}/libisthmus-ucx.so.* ${libdir}/libisthmus-c-ucx.so.*"
FILES:${PN}-tools = "${bindir}/isthmus"
FILES:${PN}-simulator = "${libdir}/isthmus/sim ${bindir}/isthmus-simulate"
RDEPENDS:${PN}-simulator += "python3-core"
FILES:${PN}-dev += "${bindir}/isthmus-kernel-image"
RDEPENDS:${PN}-dev += "python3-core"

# The simulator's file is called libcuda.so.1; it must not count as a provider of the driver's library.
PRIVATE_LIBS:${PN}-simulator = "libcuda.so.1"
