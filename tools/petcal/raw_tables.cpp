#include "tools/petcal/raw_tables.hpp"

#include <bit>
#include <string>

#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace petacq::petcal {

namespace {

static_assert(std::endian::native == std::endian::little);  // the arrays are read as they are

template <class T>
std::vector<T> read_array(const std::filesystem::path& file, std::uint64_t count, const std::string& shape) {
    const config::FilePointer f = config::open_for_reading(file);
    const std::uint64_t expected = count * sizeof(T);
    std::error_code failed;
    const std::uint64_t found = std::filesystem::file_size(file, failed);
    if (failed) throw config::IoError(file.string() + ": cannot be read: " + failed.message());
    if (found != expected) {
        throw config::Error(file.string() + ": expected " + std::to_string(expected) + " bytes (" + shape +
                            "), found " + std::to_string(found));
    }
    std::vector<T> values(count);
    if (std::fread(values.data(), sizeof(T), values.size(), f.get()) != values.size())
        throw config::IoError(file.string() + ": cannot be read");
    return values;
}

std::string shape_text(const char* type, std::initializer_list<std::uint32_t> shape) {
    std::string text = type;
    for (const std::uint32_t n : shape)
        text.append("[").append(std::to_string(n)).append("]");
    return text;
}

}  // namespace

config::Calibration read_raw_tables(const config::Geometry& g, const RawFiles& files) {
    config::Calibration c;
    c.bins = files.bins;
    const std::uint64_t units = std::uint64_t{g.bdm_count} * g.du_count;
    const std::uint32_t positions = g.position_size * g.position_size;
    if (config::has_wide_positions(g)) {
        c.position_table = read_array<std::uint16_t>(files.position_table, units * positions,
                                                     shape_text("u16", {g.bdm_count, g.du_count, positions}));
    } else {
        const auto bytes = read_array<std::uint8_t>(files.position_table, units * positions,
                                                    shape_text("u8", {g.bdm_count, g.du_count, positions}));
        c.position_table.assign(bytes.begin(), bytes.end());
    }
    c.energy_factor =
        read_array<float>(files.energy_factor, units * g.crystals_per_du() * c.bins,
                          shape_text("f32", {g.bdm_count, g.du_count, g.crystals_per_du(), c.bins}));
    if (!files.time_offset.empty()) {
        c.time_offset = read_array<std::int32_t>(files.time_offset, g.crystal_count(),
                                                 shape_text("i32", {g.crystal_count()}));
    }
    return c;
}

}  // namespace petacq::petcal
