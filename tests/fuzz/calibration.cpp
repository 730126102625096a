// Calibration files of a scanner with three modules of two by two crystals (tests/fuzz/seeds.py has it, too).
#include "config/calibration.hpp"

#include <cmath>

#include "config/base/error.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace petacq;

// libhdf5 leaks memory when it reads a damaged file.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): LSan's name
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const config::Geometry geometry{3, {1, 1, 1}, {1, 1, 1}, {1, 2, 2}, 3, 1, 4};
    const fuzz::MemoryFile file(data, size);
    try {
        const auto calibration = config::load_calibration(file.path(), geometry);
        fuzz::require(calibration.position_table.size() == 3 * 16, "the shape of the positions");
        fuzz::require(calibration.energy_factor.size() == 3 * 4 * std::size_t{calibration.bins},
                      "the shape of the factors");
        for (const float factor : calibration.energy_factor)
            fuzz::require(std::isfinite(factor) && factor >= 0, "factors are finite and not negative");
    } catch (const config::Error&) {
    }
    return 0;
}
