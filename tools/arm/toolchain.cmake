# Cross-builds for 64-bit ARM with Debian's compiler, against the sysroot of tools/arm/sysroot. QEMU runs what is built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/arm-sysroot ABSOLUTE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

# The cross-compiler does not find mold by -fuse-ld.
set(MOLD OFF)
set(CMAKE_EXE_LINKER_FLAGS_INIT -B/usr/libexec/mold)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -B/usr/libexec/mold)

# HDF5 lies in folders of its own, which the h5cc of this system would name.
set(HDF5_C_COMPILER_EXECUTABLE OFF)
set(CMAKE_INCLUDE_PATH ${CMAKE_SYSROOT}/usr/include/hdf5/serial)
set(CMAKE_LIBRARY_PATH ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/hdf5/serial)
