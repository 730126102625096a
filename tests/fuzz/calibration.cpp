// Calibration files.
#include "config/calibration.hpp"

#include <cmath>

#include "tests/fuzz/base/hdf5_target.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::read_hdf5(
        data, size, [](const auto& file) { return config::load_calibration(file, fuzz::tiny); },
        [](const config::Calibration& calibration, const std::filesystem::path& file) {
            require(calibration.position_table.size() == 3 * 16, "the shape of the positions");
            require(calibration.energy_factor.size() == 3 * 4 * std::size_t{calibration.bins},
                    "the shape of the factors");
            require(calibration.time_offset.empty() || calibration.time_offset.size() == 12,
                    "the shape of the offsets");
            for (const float factor : calibration.energy_factor)
                require(std::isfinite(factor) && factor >= 0, "factors are finite and not negative");
            (void)calibration.coincidence_fwhm_ps();
            config::save_calibration(file, fuzz::tiny, calibration);
            const config::Calibration again = config::load_calibration(file, fuzz::tiny);
            require(again.position_table == calibration.position_table &&
                        again.energy_factor == calibration.energy_factor &&
                        again.time_offset == calibration.time_offset && again.bins == calibration.bins,
                    "a calibration that is written reads back the same");
        });
    return 0;
}
