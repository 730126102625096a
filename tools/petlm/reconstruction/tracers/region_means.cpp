#include "tools/petlm/reconstruction/tracers/region_means.hpp"

#include <cmath>
#include <cstddef>

#include "tools/petlm/reconstruction/errors/spread.hpp"

namespace petacq::tracers {
namespace {

std::vector<float> means_in(const std::vector<frames::Region>& regions, const std::vector<float>& image) {
    std::vector<float> out;
    for (const frames::Region& region : regions)
        out.push_back(static_cast<float>(region.mean(image)));
    return out;
}

/// Without counts there is no spread, which does not say that there is no error.
std::optional<double> together(float spread, double by_efficiency) {
    if (!(spread > 0)) return std::nullopt;
    return std::hypot(static_cast<double>(spread), by_efficiency);
}

}  // namespace

std::vector<RegionMeans> means_of(const std::vector<frames::Region>& regions, const RunSeparation& separation,
                                  std::uint32_t replicates, double efficiency_error) {
    std::vector<RegionMeans> out;
    const TracerImages& images = separation.images();
    for (const frames::Region& region : regions)
        out.push_back({{region.mean(images.without_gamma), {}}, {region.mean(images.with_gamma), {}}});
    if (replicates == 0 || regions.empty()) return out;

    image::Spread without_gamma(regions.size());
    image::Spread with_gamma(regions.size());
    for (std::uint32_t i = 1; i <= replicates; ++i) {
        const TracerImages replicate = separation.replicate(i);
        without_gamma.add(means_in(regions, replicate.without_gamma));
        with_gamma.add(means_in(regions, replicate.with_gamma));
    }
    const std::vector<float> of_first = without_gamma.deviation();
    const std::vector<float> of_second = with_gamma.deviation();
    // What one tracer has too much by the efficiency, the other lacks.
    const double unit = separation.all().scale / separation.coincident().scale;
    const double kept = separation.chance().mean_kept();
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const double by_efficiency = efficiency_error * out[i].with_gamma.mean;
        out[i].without_gamma.error = together(of_first[i], by_efficiency * kept * unit);
        out[i].with_gamma.error = together(of_second[i], by_efficiency);
    }
    return out;
}

}  // namespace petacq::tracers
