#include "tests/gpu/setups.hpp"

#include <algorithm>

#include "net/wire.hpp"
#include "tests/gpu/arrangements/random_arrangement.hpp"

namespace petacq::test {

namespace {

config::Geometry random_geometry(Rng& rng) {
    config::Geometry g;
    g.channels = rng.between(1U, 6U);
    g.modules = {1, rng.between(1U, 3U), rng.between(1U, 3U)};
    g.blocks.y = rng.between(1U, 4U);
    g.blocks.z = rng.between(1U, 4U);
    g.crystals = {1, rng.between(1U, 7U), rng.between(1U, 7U)};
    if (rng.chance(0.05)) g.crystals = {1, 16, 16};  // no entry of the position table is outside
    if (rng.chance(0.02)) g.channels = 256 / (g.modules.y * g.modules.z);  // the largest number of modules
    g.bdm_count = g.channels * g.modules.y * g.modules.z;
    g.du_count = g.blocks.y * g.blocks.z;
    std::uint32_t smallest = 1;
    while (smallest * smallest < g.crystals.y * g.crystals.z)
        ++smallest;
    g.position_size = smallest + rng.between(0U, 3U);
    if (rng.chance(0.02) && g.bdm_count * g.du_count <= 12) g.position_size = 256;
    return g;
}

// Every crystal has at least one place; the other places name random crystals or nothing.
void fill_positions(Setup& setup, Rng& rng) {
    const config::Geometry& g = setup.geometry;
    const std::uint32_t size = g.position_size;
    setup.places.resize(g.crystal_count());
    const double outside = reference_crystals_per_du(g) < 256 ? rng.unit() * 0.5 : 0;
    std::vector<std::uint32_t> origins(std::size_t{size} * size);
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            const std::uint32_t crystals = reference_crystals_of_unit(g, std::size_t{bdm} * g.du_count + du);
            for (std::uint32_t p = 0; p < origins.size(); ++p) {
                origins[p] = p < crystals                           ? p
                             : crystals == 0 || rng.chance(outside) ? rng.between(crystals, 255U)
                                                                    : rng.between(0U, crystals - 1);
            }
            for (std::size_t p = origins.size() - 1; p > 0; --p)
                std::swap(origins[p], origins[rng.index(p + 1)]);
            for (std::uint32_t p = 0; p < origins.size(); ++p) {
                setup.calibration.position_table.push_back(static_cast<std::uint8_t>(origins[p]));
                const Place place{static_cast<std::uint8_t>(bdm), static_cast<std::uint8_t>(du),
                                  static_cast<std::uint8_t>(p % size), static_cast<std::uint8_t>(p / size)};
                if (origins[p] >= crystals) {
                    setup.outside.push_back(place);
                } else {
                    setup.places[reference_crystal(g, bdm, du, origins[p]).crystal].push_back(place);
                }
            }
        }
    }
}

void fill_factors(Setup& setup, Rng& rng) {
    const config::Geometry& g = setup.geometry;
    const std::size_t entries =
        std::size_t{g.bdm_count} * g.du_count * std::size_t{reference_crystals_per_du(g)};
    std::vector<std::uint32_t> bins{1, 2};
    if (entries < 20'000) bins.insert(bins.end(), {7, 64});
    if (entries < 400) bins.insert(bins.end(), {6553, 6554});  // all bins that ADC values reach, and one less
    setup.calibration.bins = rng.pick(bins);
    auto& factors = setup.calibration.energy_factor;
    factors.assign(entries * setup.calibration.bins, 0.5F);
    if (rng.chance(0.4)) return;  // exact halves: equal energies and equal sums are frequent
    const bool extremes = rng.chance(0.3);
    for (float& factor : factors) {
        factor = static_cast<float>(rng.unit());
        if (extremes && rng.chance(0.02)) factor = rng.pick(std::vector<float>{0.0F, -0.0F, 3e38F});
    }
}

void fill_offsets(Setup& setup, Rng& rng) {
    if (rng.chance(0.3)) return;
    const std::vector<std::int32_t> reaches{0, 3, 500, 1'000'000, INT32_MAX};
    const std::int32_t reach = rng.pick(reaches);
    auto& offsets = setup.calibration.time_offset;
    offsets.resize(setup.places.size());
    for (std::int32_t& offset : offsets) {
        offset = static_cast<std::int32_t>(rng.between<std::int64_t>(-std::int64_t{reach}, reach));
    }
    if (reach == INT32_MAX) {
        offsets.front() = INT32_MIN;
        offsets.back() = INT32_MAX;
    }
}

RawFrame encode(const net::Frame& frame) {
    RawFrame raw;
    net::encode_frame(frame, raw.bytes.data());
    return raw;
}

net::Frame good_frame(const Setup& setup, const Place& place, std::uint64_t raw_time, std::uint16_t adc,
                      Rng& rng) {
    net::Frame f{};
    f.head_marker = setup.head_marker;
    f.du = place.du;
    f.bdm = place.bdm;
    f.time = raw_time;
    f.x = place.x;
    f.y = place.y;
    f.energy = adc;
    f.temperature_16ths = rng.between<std::int16_t>(-128 * 16, 127 * 16 + 15);
    f.tail_marker = setup.tail_marker;
    return f;
}

std::uint8_t another_nibble(std::uint8_t nibble, Rng& rng) {
    return static_cast<std::uint8_t>((nibble + rng.between(1U, 15U)) % 16);
}

// A value of `limit` or more that fits under `top`; `limit` itself is frequent.
std::uint8_t too_large(std::uint32_t limit, std::uint32_t top, Rng& rng) {
    return static_cast<std::uint8_t>(rng.chance(0.3) ? limit : rng.between(limit, top));
}

}  // namespace

namespace {

Setup setup_of(config::Geometry geometry, Rng& rng) {
    Setup setup;
    setup.geometry = std::move(geometry);
    if (rng.chance(0.5)) {
        setup.head_marker = rng.between<std::uint8_t>(0, 15);
        setup.tail_marker = rng.between<std::uint8_t>(0, 15);
    }
    if (setup.head_marker == setup.tag_marker) setup.tag_marker = 0xC;
    fill_positions(setup, rng);
    fill_factors(setup, rng);
    fill_offsets(setup, rng);
    return setup;
}

}  // namespace

Setup random_setup(Rng& rng) {
    return setup_of(random_geometry(rng), rng);
}

Setup random_long_setup(Rng& rng) {
    return setup_of(random_arrangement(rng).scanner.geometry, rng);
}

std::optional<RawFrame> frame_for(const Setup& setup, const Wanted& wanted, Rng& rng) {
    const auto& offsets = setup.calibration.time_offset;
    const __int128 raw_time =
        static_cast<__int128>(wanted.time) - (offsets.empty() ? 0 : offsets[wanted.crystal]);
    if (raw_time < 0 || raw_time > static_cast<__int128>(UINT64_MAX)) return std::nullopt;
    const Place& place = rng.pick(setup.places[wanted.crystal]);
    return encode(good_frame(setup, place, static_cast<std::uint64_t>(raw_time), wanted.adc, rng));
}

RawFrame tag_frame(const Setup& setup, std::uint64_t time, Rng& rng) {
    net::TagFrame tag;
    tag.tag_marker = setup.tag_marker;
    tag.tail_marker = setup.tail_marker;
    tag.channel = rng.between<std::uint8_t>(0, rng.chance(0.5) ? 1 : 15);
    tag.kind = rng.between<std::uint8_t>(0, rng.chance(0.8) ? 4 : 255);
    tag.time = time;
    tag.value = rng.chance(0.5) ? rng.between(0U, 2U) : static_cast<std::uint32_t>(rng.bits());
    RawFrame raw;
    net::encode_tag(tag, raw.bytes.data());
    if (rng.chance(0.2)) raw.bytes[14] = std::byte{0x77};  // reserved: ignored
    return raw;
}

RawFrame broken_frame(const Setup& setup, std::uint64_t time, Rng& rng) {
    const config::Geometry& g = setup.geometry;
    const std::size_t crystal = rng.index(setup.places.size());
    const auto& offsets = setup.calibration.time_offset;
    const std::int32_t offset = offsets.empty() ? 0 : offsets[crystal];
    net::Frame f =
        good_frame(setup, rng.pick(setup.places[crystal]), time, rng.between<std::uint16_t>(0, 65535), rng);
    switch (rng.index(9)) {
        case 0:
            f.head_marker = another_nibble(f.head_marker, rng);
            break;
        case 1:
            f.tail_marker = another_nibble(f.tail_marker, rng);
            break;
        case 2:
            if (g.bdm_count < 256) f.bdm = too_large(g.bdm_count, 255, rng);
            break;
        case 3:
            if (g.du_count < 16) f.du = too_large(g.du_count, 15, rng);
            break;
        case 4:
            if (g.position_size < 256) f.x = too_large(g.position_size, 255, rng);
            break;
        case 5:
            if (g.position_size < 256) f.y = too_large(g.position_size, 255, rng);
            break;
        case 6:
            if (!setup.outside.empty()) {
                const Place& place = rng.pick(setup.outside);
                f.bdm = place.bdm;
                f.du = place.du;
                f.x = place.x;
                f.y = place.y;
            }
            break;
        case 7:  // just outside 64 bits
            if (offset < 0) f.time = static_cast<std::uint64_t>(-std::int64_t{offset}) - 1;
            if (offset > 0) f.time = UINT64_MAX - static_cast<std::uint64_t>(offset) + 1;
            break;
        default: {  // garbage
            RawFrame raw;
            for (std::byte& b : raw.bytes)
                b = static_cast<std::byte>(rng.bits());
            return raw;
        }
    }
    return encode(f);
}

}  // namespace petacq::test
