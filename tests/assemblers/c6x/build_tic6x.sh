#!/bin/sh
# Builds GNU as, ld and objdump for tic6x-elf (TI C62x and C64x) into a folder.
#
#   build_tic6x.sh PREFIX
#
# Debian has no binary package of this target, but binutils-source carries the
# whole of binutils, every target included. Nothing of Debian's own patches is
# applied. A PREFIX that already has the three tools is left as it is, so the
# script can stand before every test run with PREFIX in a cache.
#
# Needs: apt-get and dpkg-deb, or a binutils source archive named by
# BINUTILS_SOURCE (a .tar.* or the .deb); gcc, make, xz, bison and flex. Takes
# about two minutes on two cores and leaves some 60 MB in PREFIX.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 PREFIX" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)

have() {
    for tool in as ld nm objdump; do
        [ -x "$prefix/bin/tic6x-elf-$tool" ] || return 1
    done
}
if have; then
    exit 0
fi

for tool in gcc make xz bison flex; do
    command -v "$tool" >/dev/null || { echo "$0: $tool is not installed" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"

source=${BINUTILS_SOURCE:-}
if [ -z "$source" ]; then
    apt-get download binutils-source >apt.log 2>&1 || { cat apt.log >&2; exit 1; }
    source=$(ls binutils-source_*.deb)
fi
case $source in
*.deb)
    dpkg-deb -x "$source" package
    source=$(ls package/usr/src/binutils/binutils-*.tar.*)
    ;;
esac
mkdir source build
tar -xf "$source" -C source --strip-components=1

cd build
# MAKEINFO=true: the manuals are not wanted, and makeinfo may not be there.
quiet() { nice "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }; }
quiet ../source/configure --target=tic6x-elf --prefix="$prefix" --disable-gdb --disable-gdbserver --disable-sim \
    --disable-nls --disable-werror --disable-gprof --disable-gprofng --disable-plugins --without-zstd MAKEINFO=true
jobs=${JOBS:-$(nproc)}
quiet make -j"$jobs" MAKEINFO=true all-gas all-ld all-binutils
quiet make MAKEINFO=true install-gas install-ld install-binutils

have || { echo "the build ended, but $prefix/bin lacks a tool" >&2; exit 1; }
