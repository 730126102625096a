// What targets share that read HDF5 files of a scanner with three modules of two by two crystals
// (tests/fuzz/seeds.py has it, too).
#pragma once

#include "config/base/error.hpp"
#include "config/scanner/geometry.hpp"
#include "tests/fuzz/base/fuzz.hpp"

// libhdf5 leaks memory when it reads a damaged file.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): LSan's name
// NOLINTNEXTLINE(misc-definitions-in-headers): a target is one source; LSan does not see an inline one
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

namespace petacq::fuzz {

inline const config::Geometry tiny{3, {1, 1, 1}, {1, 1, 1}, {1, 2, 2}, 3, 1, 4};

/// Calls `read` with the input as a file, and then `again` with what it returns and a name for a file.
template <class Read, class Again>
void read_hdf5(const std::uint8_t* data, std::size_t size, Read read, Again again) {
    static const ScratchDirectory scratch;
    const std::filesystem::path file = scratch.write("input.h5", {data, size});
    const MemoryBound bound((std::size_t{64} << 20) + 100 * size);
    try {
        const auto found = read(file);
        accept();
        again(found, scratch.path() / "again.h5");
    } catch (const config::Error& error) {
        require(std::string_view(error.what()).starts_with(file.string()), "an error names the file");
    }
}

}  // namespace petacq::fuzz
