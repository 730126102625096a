// Files of the true detector of a simulation.
#include "tools/petsim/detector/detector.hpp"

#include <cmath>

#include "tests/fuzz/base/hdf5_target.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::read_hdf5(
        data, size, [](const auto& file) { return sim::load_detector(file, fuzz::tiny); },
        [](const sim::Detector& detector, const std::filesystem::path& file) {
            require(detector.crystals.size() == fuzz::tiny.crystal_count(), "every crystal");
            for (const sim::TrueCrystal& crystal : detector.crystals) {
                require(std::isfinite(sim::adc_of(crystal, 511)) && sim::adc_of(crystal, 511) > 0,
                        "a response to 511 keV");
                require(crystal.state <= sim::CrystalState::noisy, "a known state");
            }
            sim::save_detector(file, fuzz::tiny, detector);
            const sim::Detector again = sim::load_detector(file, fuzz::tiny);
            for (std::size_t i = 0; i < detector.crystals.size(); ++i)
                require(again.crystals[i].gain == detector.crystals[i].gain &&
                            again.crystals[i].time_offset_ps == detector.crystals[i].time_offset_ps &&
                            again.crystals[i].state == detector.crystals[i].state,
                        "a detector that is written reads back the same");
            require(again.noise_hz == detector.noise_hz && again.crosstalk == detector.crosstalk,
                    "and its numbers");
        });
    return 0;
}
