#include "tools/petlm/reconstruction/image/volume.hpp"

#include "tools/petlm/records/output.hpp"

namespace petacq::image {

void write_volume(const std::filesystem::path& file, const Grid& grid, std::span<const float> values,
                  const std::string& description) {
    petlm::OutputFile out(file);
    out.text(nifti::header(volume_of(grid), description));
    out.text({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    out.close();
}

}  // namespace petacq::image
