#include "tools/petlm/image/nifti.hpp"

#include <cstdint>

#include "tools/nifti/nifti.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::image {

void write_nifti(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                 const std::string& description) {
    nifti::Header header;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        header.dim[axis + 1] = static_cast<std::int16_t>(grid.n[axis]);
        header.pixdim[axis + 1] = static_cast<float>(grid.voxel_mm);
        header.qoffset[axis] = static_cast<float>(grid.centre(axis, 0));
        header.srow[axis][axis] = static_cast<float>(grid.voxel_mm);
        header.srow[axis][3] = header.qoffset[axis];
    }
    description.copy(header.descrip, sizeof header.descrip - 1);
    petlm::OutputFile out(file);
    out.put(header);
    out.text({reinterpret_cast<const char*>(image.data()), image.size_bytes()});
    out.close();
}

}  // namespace petacq::image
