# SPDX-License-Identifier: Apache-2.0
# The packages that building needs, how each is detected, and how to install it on Debian and Ubuntu. Sourced by the
# scripts in tools/; prints nothing by itself.
# shellcheck disable=SC2034

# Each line: how presence is detected (a command, or a header that the native compiler finds), and the package that has
# it.
packages_to_build=(
    "command c++ g++"
    "command meson meson"
    "command ninja ninja-build"
    "command pkg-config pkg-config"
    "command python3 python3"
    "header numaif.h libnuma-dev"
    "header CLI/CLI.hpp libcli11-dev"
    "header nlohmann/json.hpp nlohmann-json3-dev"
    "header fmt/core.h libfmt-dev"
)
# For reading and writing pictures; a build without them lacks JPEG or PNG.
packages_for_pictures=(
    "header jpeglib.h libjpeg-dev"
    "header png.h libpng-dev"
)
# For the GStreamer plugin and its tests; a build without them has no plugin.
packages_for_gstreamer=(
    "file /usr/include/gstreamer-1.0/gst/gst.h libgstreamer1.0-dev"
    "file /usr/include/gstreamer-1.0/gst/video/video.h libgstreamer-plugins-base1.0-dev"
    "command gst-inspect-1.0 gstreamer1.0-tools"
    "file /usr/share/doc/gstreamer1.0-plugins-base/copyright gstreamer1.0-plugins-base"
    "file /usr/share/doc/gstreamer1.0-plugins-good/copyright gstreamer1.0-plugins-good"
    "file /usr/share/doc/gstreamer1.0-plugins-bad/copyright gstreamer1.0-plugins-bad"
)
# For frames to other machines and their tests; a build without them has no isthmus-bridge.
packages_for_ucx=(
    "header ucp/api/ucp.h libucx-dev"
    "header sodium.h libsodium-dev"
    "command ucx_perftest ucx-utils"
)
packages_to_test=(
    "${packages_to_build[@]}"
    "${packages_for_pictures[@]}"
    "header gtest/gtest.h libgtest-dev"
    "header benchmark/benchmark.h libbenchmark-dev"
    "command readelf binutils"
    "command abidiff abigail-tools"
    "command cmake cmake"
    "command make make"
)
# Tests of the generated reference skip without it.
packages_for_reference=(
    "command doxygen doxygen"
)
packages_to_show=(
    "${packages_to_build[@]}"
    "${packages_for_pictures[@]}"
)

# Asks the compiler for headers, so that a library built by hand counts too. Without a compiler it looks in
# /usr/include.
has_header() {
    local cxx=${CXX:-c++}
    if command -v "$cxx" >/dev/null 2>&1; then
        printf '#include <%s>\n' "$1" | "$cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1
    else
        [ -e "/usr/include/$1" ]
    fi
}

# Prints the missing packages of the given lines.
missing_packages() {
    local line how what package
    for line in "$@"; do
        read -r how what package <<<"$line"
        case $how in
            command) command -v "$what" >/dev/null 2>&1 || echo "$package" ;;
            header) has_header "$what" || echo "$package" ;;
            file) [ -e "$what" ] || echo "$package" ;;
        esac
    done | sort -u
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        echo "This needs root, and there is no sudo: $*" >&2
        return 1
    fi
}

# Installs packages by name, quietly and without recommended packages. If that fails, it updates the package lists once
# and tries again.
install_packages() {
    [ $# -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "apt-get is not here; install by hand: $*" >&2
        return 1
    fi
    local quietly=(env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=5 install -y -qq --no-install-recommends)
    as_root "${quietly[@]}" "$@" </dev/null >/dev/null 2>&1 && return 0
    as_root apt-get -o Acquire::Retries=5 update -qq </dev/null || return 1
    as_root "${quietly[@]}" "$@" </dev/null >/dev/null
}

# ensure_packages yes|no LINE...: installs missing packages (yes), or prints their names and returns 1 (no).
ensure_packages() {
    local may_install=$1 missing
    shift
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$may_install" = no ]; then
        echo "Missing packages: ${missing[*]}"
        echo "Install them with: apt-get install ${missing[*]}"
        return 1
    fi
    echo "Installing ${missing[*]}"
    install_packages "${missing[@]}" || return 1
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -eq 0 ] || { echo "Still missing after installing: ${missing[*]}" >&2; return 1; }
}
