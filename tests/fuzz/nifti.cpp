// Images: attenuation maps, activity images, masks.
#include "tools/nifti/nifti.hpp"

#include <cmath>
#include <stdexcept>

#include "config/base/error.hpp"
#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory scratch;
    const fuzz::MemoryFile file(data, size);
    const fuzz::MemoryBound bound((std::size_t{16} << 20) + 50 * size);
    try {
        const nifti::Volume volume = nifti::load(file.path());
        fuzz::accept();
        require(volume.values.size() == volume.voxels() && volume.voxels() > 0, "a value for each voxel");
        require(volume.voxel_mm3() > 0 && std::isfinite(volume.voxel_mm3()), "voxels have a size");
        for (const float value : volume.values)
            require(std::isfinite(value), "values are finite");
        std::string bytes = nifti::header(volume, "again");
        bytes.append(reinterpret_cast<const char*>(volume.values.data()),
                     volume.values.size() * sizeof(float));
        const auto path =
            scratch.write("again.nii", {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
        const nifti::Volume again = nifti::load(path);
        require(again.values == volume.values && again.n == volume.n,
                "a volume that is written reads back the same");
    } catch (const config::Error& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    } catch (const std::invalid_argument&) {  // axes that are not those of the scanner are not written
    }
    return 0;
}
