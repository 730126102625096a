// Normalisation files. Input: an HDF5 file of a ring, or, after a byte that is none of HDF5's, the tables of
// pairs of modules of a scanner of the long form.
#include "tools/normalisation/normalisation.hpp"

#include <cmath>

#include "tests/fuzz/base/hdf5_target.hpp"

using namespace petacq;
using fuzz::require;
using normalisation::Normalisation;

namespace {

void check(const config::Geometry& geometry, const Normalisation& n) {
    for (std::uint32_t a = 0; a < geometry.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < geometry.crystal_count(); ++b) {
            const double factor = normalisation::factor_of(geometry, n, a, b);
            require(std::isfinite(factor) && factor >= 0, "a factor is finite and not negative");
        }
    }
    require(!n.activity_factor || *n.activity_factor > 0, "the factor of activity is above 0");
    (void)n.number("fwhm_ps");
}

void check_again(const config::Geometry& geometry, const Normalisation& n,
                 const std::filesystem::path& file) {
    check(geometry, n);
    normalisation::save(file, geometry, n);
    const Normalisation again = normalisation::load(file, geometry);
    require(again.efficiency == n.efficiency && again.transaxial == n.transaxial && again.axial == n.axial &&
                again.activity_factor == n.activity_factor,
            "a normalisation that is written reads back the same");
    require(!n.classes || *again.classes == *n.classes, "and its classes");
}

/// Three modules of four crystals.
config::Geometry long_form() {
    config::Geometry geometry = fuzz::tiny;
    auto map = std::make_shared<config::ChannelMap>();
    map->max_crystals_per_du = 4;
    map->first = {0, 4, 8, 12};
    for (std::uint32_t crystal = 0; crystal < 12; ++crystal)
        map->crystals.push_back(crystal);
    geometry.channel_map = map;
    return geometry;
}

template <class T>
void take(fuzz::Input& input, std::vector<T>& table, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        table.push_back(input.take<std::uint8_t>());
}

void read_classes(fuzz::Input input) {
    static const fuzz::ScratchDirectory scratch;
    const config::Geometry geometry = long_form();
    auto classes = std::make_shared<normalisation::PairClasses>();
    const std::size_t modules = input.take<std::uint8_t>() % 6;
    const std::size_t pairs = input.take<std::uint8_t>() % 12;
    const std::size_t crystals = geometry.crystal_count();
    take(input, classes->module, crystals);
    for (auto* const table :
         {&classes->column, &classes->mirrored_column, &classes->row, &classes->mirrored_row})
        take(input, *table, crystals);
    take(input, classes->columns, modules);
    take(input, classes->rows, modules);
    take(input, classes->pair_class, modules * modules);
    take(input, classes->pair_turn, modules * modules);
    take(input, classes->class_a, pairs);
    take(input, classes->class_b, pairs);
    try {
        classes->index();
        fuzz::accept();
        Normalisation n;
        n.efficiency.assign(crystals, 1);
        n.transaxial.assign(classes->transaxial_count(), 1.5F);
        n.axial.assign(classes->axial_count(), 0.5F);
        n.classes = std::move(classes);
        check_again(geometry, n, scratch.path() / "classes.h5");
    } catch (const config::Error& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 0 && data[0] != 0x89) {
        read_classes({data + 1, size - 1});
        return 0;
    }
    fuzz::read_hdf5(
        data, size, [](const auto& file) { return normalisation::load(file, fuzz::tiny); },
        [](const Normalisation& n, const std::filesystem::path& file) { check_again(fuzz::tiny, n, file); });
    return 0;
}
