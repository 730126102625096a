#include "tools/petcal/activity/line_weights.hpp"

#include <algorithm>

namespace petacq::petcal {

using Zone = SourceLines::Zone;

LineWeights::LineWeights(const SourceLines& lines, const gpu::PairRule& rule,
                         std::span<const std::uint32_t> ends)
    : lines_(lines), rule_(rule) {
    constexpr std::size_t most_lines = 400'000;
    const std::size_t partners =
        std::min(ends.size(), most_lines / std::max<std::size_t>(ends.size(), 1) + 1);
    double near = 0;
    double around = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        for (std::size_t k = 1; k < partners; ++k) {
            const std::uint32_t a = ends[i];
            const std::uint32_t b = ends[(i + k) % ends.size()];
            if (!rule_.good(a, b)) continue;
            const Zone zone = lines_.place(a, b).zone;
            near += zone == Zone::near ? 1 : 0;
            around += zone == Zone::around ? 1 : 0;
        }
    }
    if (around > 0) around_ = -near / around;
}

LineWeights::Counted LineWeights::of(std::uint32_t a, std::uint32_t b) const {
    const SourceLines::Place place = lines_.place(a, b);
    if (place.zone == Zone::elsewhere) return {};
    return {place.part, place.zone == Zone::near ? 1 : around_};
}

}  // namespace petacq::petcal
