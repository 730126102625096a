#include "tools/petsim/simulation/events/lutetium.hpp"

#include <algorithm>
#include <numeric>

#include "config/crystal_material.hpp"

namespace petacq::sim {

namespace {

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Which of the crystals side by side, drawn by size.
std::uint32_t draw_by_size(const config::CrystalRow& row, Random& random) {
    double left = random.uniform() * sum(row.sizes);
    std::uint32_t i = 0;
    while (i + 1 < row.count() && left >= row.sizes[i])
        left -= row.sizes[i++];
    return i;
}

}  // namespace

LutetiumCrystals::LutetiumCrystals(const config::Scanner& scanner)
    : scanner_(scanner), arrangement_(config::arrangement_of(scanner)) {
    if (scanner.is_ring()) {
        count_ = arrangement_->crystal_count();
        return;
    }
    double volume = 0;
    for (std::uint32_t m = 0; m < arrangement_->modules().size(); ++m) {
        const auto& layers = arrangement_->type_of(arrangement_->modules()[m]).layers;
        for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
            const config::CrystalLayer& l = layers[layer];
            if (!config::contains_lutetium(l.material)) continue;
            volume += sum(l.y.sizes) * sum(l.z.sizes) * l.length_mm;
            parts_.push_back({volume, m, layer});
            count_ += l.crystal_count();
        }
    }
}

std::uint32_t LutetiumCrystals::draw(Random& random) const {
    if (parts_.empty()) return random.below(count_);
    const double place = random.uniform() * parts_.back().upto;
    const auto part = std::upper_bound(parts_.begin(), parts_.end() - 1, place,
                                       [](double v, const LutetiumLayer& p) { return v < p.upto; });
    const config::Module& module = arrangement_->modules()[part->module];
    const config::CrystalLayer& layer = arrangement_->type_of(module).layers[part->layer];
    const std::uint32_t column = draw_by_size(layer.y, random);
    return arrangement_->crystal({part->module, part->layer, column, draw_by_size(layer.z, random)});
}

Vector3 LutetiumCrystals::point_in(std::uint32_t crystal, Random& random) const {
    const config::CrystalAddress address = arrangement_->address(crystal);
    const config::Module& module = arrangement_->modules()[address.module];
    const config::CrystalLayer& layer = arrangement_->type_of(module).layers[address.layer];
    Vector3 at =
        config::point_at_depth(config::crystal_place(scanner_, crystal), layer.length_mm * random.uniform());
    const double aside = layer.y.sizes[address.column] * 0.5 * random.symmetric();
    const double along = layer.z.sizes[address.row] * 0.5 * random.symmetric();
    for (std::size_t i = 0; i < 3; ++i)
        at[i] += aside * module.along_y[i] + along * module.along_z[i];
    return at;
}

}  // namespace petacq::sim
