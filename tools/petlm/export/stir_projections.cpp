#include "tools/petlm/export/stir_projections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "tools/petlm/export/geometry/ring_places.hpp"
#include "tools/petlm/export/ordered_output.hpp"

namespace petacq::petlm {

namespace {

/// From one ring to the next; where the distances differ, their mean.
double ring_distance_mm(const config::Scanner& scanner) {
    if (scanner.is_ring()) return scanner.dimensions.crystal_pitch_z_mm;
    const std::vector<double> z = ring_places_mm(scanner);
    if (z.size() > 1) return (z.back() - z.front()) / static_cast<double>(z.size() - 1);
    return scanner.arrangement->layer_of(0).z.sizes.front();
}

/// How STIR divides a ring into blocks. The template is "Generic", which takes no position from it.
struct Blocks {
    config::Counts3 blocks{};    ///< of a bucket
    config::Counts3 crystals{};  ///< of a block
};

Blocks blocks_of(const config::Scanner& scanner) {
    if (!scanner.is_ring()) return {};
    return {scanner.geometry.blocks, scanner.geometry.crystals};
}

}  // namespace

double stir_bin_mm(const config::Scanner& scanner) {
    const double width = scanner.is_ring() ? scanner.dimensions.crystal_pitch_y_mm
                                           : scanner.arrangement->layer_of(0).y.sizes.front();
    return width / 2;
}

std::uint64_t StirProjections::bins(const StirDetectors& detectors) const {
    const std::int64_t rings = detectors.rings();
    // All rings less the difference, of both signs.
    const std::int64_t planes = (2 * segments + 1) * rings - segments * (segments + 1);
    return static_cast<std::uint64_t>(planes * tangential) * (detectors.in_ring() / 2);
}

void write_stir_header(const std::filesystem::path& file, const std::string& data,
                       const config::Scanner& scanner, const StirDetectors& detectors,
                       const StirProjections& projections, double depth_mm, const std::string& study) {
    const Blocks divided = blocks_of(scanner);
    std::string sizes;
    std::string differences;
    const std::int64_t last = projections.segments;
    for (std::int64_t segment = -last; segment <= last; ++segment) {
        const char* comma = segment == last ? "" : ",";
        sizes += fmt::format("{}{}", detectors.rings() - std::abs(segment), comma);
        differences += fmt::format("{}{}", segment, comma);
    }
    std::string text =
        "!INTERFILE :=\n!imaging modality := PT\nname of data file := " + data +
        "\n"
        "originating system := Userdefined\n!version of keys := STIR6.0\n!GENERAL DATA :=\n"
        "!GENERAL IMAGE DATA :=\n!type of data := PET\nimagedata byte order := LITTLEENDIAN\n"
        "!PET STUDY (General) :=\n!PET data type := Emission\napplied corrections := {None}\n"
        "!number format := float\n!number of bytes per pixel := 4\nnumber of dimensions := 4\n";
    text += study;
    const auto line = [&](const char* key, const auto& value) {
        text += fmt::format("{} := {}\n", key, value);
    };
    const auto line_cm = [&](const char* key, double mm) { line(key, fmt::format("{:.9g}", mm / 10)); };
    line("matrix axis label [4]", "segment");
    line("!matrix size [4]", 2 * last + 1);
    line("matrix axis label [3]", "view");
    line("!matrix size [3]", detectors.in_ring() / 2);
    line("matrix axis label [2]", "axial coordinate");
    line("!matrix size [2]", "{" + sizes + "}");
    line("matrix axis label [1]", "tangential coordinate");
    line("!matrix size [1]", projections.tangential);
    line("minimum ring difference per segment", "{" + differences + "}");
    line("maximum ring difference per segment", "{" + differences + "}");
    text += "Scanner parameters :=\n";
    line("Scanner type", "Userdefined");
    line("Number of rings", detectors.rings());
    line("Number of detectors per ring", detectors.in_ring());
    line_cm("Inner ring diameter (cm)", 2 * inner_radius_mm(scanner));
    line_cm("Average depth of interaction (cm)", depth_mm);
    line_cm("Distance between rings (cm)", ring_distance_mm(scanner));
    line_cm("Default bin size (cm)", stir_bin_mm(scanner));
    line("View offset (degrees)", 0);
    line("Maximum number of non-arc-corrected bins", detectors.in_ring() - 1);
    line("Default number of arc-corrected bins", detectors.in_ring() - 1);
    line("Number of blocks per bucket in transaxial direction", divided.blocks.y);
    line("Number of blocks per bucket in axial direction", divided.blocks.z);
    line("Number of crystals per block in axial direction", divided.crystals.z);
    line("Number of crystals per block in transaxial direction", divided.crystals.y);
    line("Number of detector layers", 1);
    line("Number of crystals per singles unit in axial direction", 1);
    line("Number of crystals per singles unit in transaxial direction", 1);
    line("Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic)", "Generic");
    line("Name of crystal map", "crystal_map.txt");
    text += "end scanner parameters :=\n!END OF INTERFILE :=\n";
    write_text(file, text);
}

void write_stir_values(const std::filesystem::path& file, const StirDetectors& detectors,
                       const StirProjections& projections, net::WorkerPool& pool,
                       const std::function<double(std::uint32_t a, std::uint32_t b)>& value) {
    OutputFile out(file);
    const std::int64_t in_ring = detectors.in_ring();
    const std::int64_t rings = detectors.rings();
    const std::int64_t views = in_ring / 2;
    const std::int64_t side = projections.tangential / 2;
    const auto crystal = [&](std::int64_t ring, std::int64_t detector) {
        return detectors.crystal_of(static_cast<std::uint32_t>(ring),
                                    static_cast<std::uint32_t>((detector + in_ring) % in_ring));
    };
    const auto viewgrams = static_cast<std::size_t>((2 * projections.segments + 1) * views);
    write_in_order(out, pool, viewgrams, file.filename().string(), [&](std::size_t i, std::string& bytes) {
        const std::int64_t segment = static_cast<std::int64_t>(i) / views - projections.segments;
        const std::int64_t view = static_cast<std::int64_t>(i) % views;
        for (std::int64_t axial = 0; axial < rings - std::abs(segment); ++axial) {
            const std::int64_t ring_1 = axial + std::max<std::int64_t>(-segment, 0);
            const std::int64_t ring_2 = ring_1 + segment;
            for (std::int64_t t = -side; t <= side; ++t) {
                append(bytes, static_cast<float>(value(crystal(ring_1, view + (t >> 1)),
                                                       crystal(ring_2, view + views - ((t + 1) >> 1)))));
            }
        }
    });
    out.close();
}

}  // namespace petacq::petlm
