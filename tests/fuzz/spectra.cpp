// Files of spectra, of which petcal derives a calibration.
#include "config/spectra.hpp"

#include "tests/fuzz/base/hdf5_target.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::read_hdf5(
        data, size, [](const auto& file) { return config::load_spectra(file, fuzz::tiny); },
        [](const config::Spectra& spectra, const std::filesystem::path& file) {
            const config::Spectra none = config::Spectra::none(fuzz::tiny);
            require(spectra.floods.size() == none.floods.size() &&
                        spectra.energies.size() == none.energies.size(),
                    "the shapes of this scanner");
            config::save_spectra(file, fuzz::tiny, spectra);
            require(config::load_spectra(file, fuzz::tiny) == spectra,
                    "spectra that are written read back the same");
        });
    return 0;
}
