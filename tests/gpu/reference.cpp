#include "tests/gpu/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <tuple>

#include "config/energy_bins.hpp"
#include "tests/gpu/base/reference_line.hpp"
#include "tests/gpu/reference_segment.hpp"

namespace petacq::test {

using gpu::Coincidence;
using gpu::CoincidenceRules;
using gpu::Kind;
using gpu::Single;

namespace {

std::uint32_t byte_at(const RawFrame& frame, std::size_t offset) {
    return std::to_integer<std::uint32_t>(frame.bytes.at(offset));
}

// Offset 14: whole degrees, signed; in version 1 the high nibble of offset 15: sixteenths.
std::int32_t temperature_of(const RawFrame& frame, bool one) {
    auto whole = static_cast<std::int32_t>(byte_at(frame, 14));
    if (whole >= 128) whole -= 256;
    return whole * 16 + (one ? static_cast<std::int32_t>(byte_at(frame, 15) / 16) : 0);
}

}  // namespace

// Offsets 2..9, big-endian.
RawFrame frame_of(const gpu::FrameSpan& span, std::uint64_t index) {
    RawFrame frame;
    const std::byte* const from =
        span.frames + index / span.count * span.stride + index % span.count * frame.bytes.size();
    std::copy_n(from, frame.bytes.size(), frame.bytes.begin());
    return frame;
}

std::uint64_t raw_time_of(const RawFrame& frame) {
    std::uint64_t time = 0;
    for (std::size_t offset = 2; offset <= 9; ++offset) {
        time = time * 256 + byte_at(frame, offset);
    }
    return time;
}

std::uint32_t reference_crystals_of_unit(const config::Geometry& geometry, std::size_t unit) {
    if (!geometry.channel_map) return geometry.crystals.y * geometry.crystals.z;
    return geometry.channel_map->first.at(unit + 1) - geometry.channel_map->first.at(unit);
}

std::uint32_t reference_crystals_per_du(const config::Geometry& geometry) {
    std::uint32_t most = 0;
    for (std::size_t unit = 0; unit < std::size_t{geometry.bdm_count} * geometry.du_count; ++unit)
        most = std::max(most, reference_crystals_of_unit(geometry, unit));
    return most;
}

CrystalNumbers reference_crystal(const config::Geometry& geometry, std::uint32_t bdm, std::uint32_t du,
                                 std::uint32_t origin) {
    if (geometry.channel_map) {
        const config::ChannelMap& map = *geometry.channel_map;
        return {origin, map.crystals.at(map.first.at(bdm * geometry.du_count + du) + origin)};
    }
    const std::uint32_t c = geometry.channels;
    const std::uint32_t m = geometry.modules.y;
    const std::uint32_t bY = geometry.blocks.y;
    const std::uint32_t bZ = geometry.blocks.z;
    const std::uint32_t cY = geometry.crystals.y;
    const std::uint32_t cZ = geometry.crystals.z;
    const std::uint32_t local = origin % cZ + (cY - 1 - origin / cZ) * cZ;
    const std::uint32_t in_ring = bdm % (c * m) * bY * cY + du / bZ * cY + local / cZ;
    const std::uint32_t ring = bdm / (c * m) * bZ * cZ + du % bZ * cZ + local % cZ;
    return {local, in_ring + ring * (c * m * bY * cY)};
}

Converted reference_convert(const RawFrame& frame, const gpu::PipelineOptions& options,
                            const config::Calibration& calibration, const Limits& limits) {
    const config::Geometry& g = options.geometry;
    const bool one = options.frame_version == config::FrameVersion::one;
    const std::uint32_t head = byte_at(frame, one ? 0 : 15) / 16;
    const std::uint32_t du = byte_at(frame, one ? 0 : 15) % 16;
    const std::uint32_t bdm = (one ? 0 : byte_at(frame, 0) * 256) + byte_at(frame, 1);
    const std::uint64_t raw_time = raw_time_of(frame);
    const std::uint32_t x = byte_at(frame, 10);
    const std::uint32_t y = byte_at(frame, 11);
    const std::uint32_t adc = byte_at(frame, 12) * 256 + byte_at(frame, 13);
    const bool tail_fits = !one || byte_at(frame, 15) % 16 == options.tail_marker;

    Converted result;
    result.bdm = bdm;
    result.du = du;
    result.temperature_16ths = temperature_of(frame, one);
    auto fate = [&result](Fate f) {
        result.fate = f;
        return result;
    };

    if (head == options.tag_marker && head != options.head_marker && tail_fits) {
        std::uint32_t value = 0;
        for (std::size_t offset = 10; offset <= 13; ++offset)
            value = value * 256 + byte_at(frame, offset);
        result.is_tag = true;
        result.tag = {raw_time, value, limits.tag_source, static_cast<std::uint8_t>(byte_at(frame, 0) % 16),
                      static_cast<std::uint8_t>(byte_at(frame, 1))};
        if (raw_time < limits.low || raw_time > limits.high) return fate(Fate::time_jump);
        return fate(raw_time < limits.late_below ? Fate::late : Fate::accepted);
    }
    if (head != options.head_marker || !tail_fits) return fate(Fate::bad_marker);
    if (bdm >= g.bdm_count || du >= g.du_count || x >= g.position_size || y >= g.position_size) {
        return fate(Fate::bad_address);
    }
    if (!options.sources.empty() && limits.source > 0 && !options.sources.at(limits.source - 1)[bdm]) {
        return fate(Fate::bad_address);
    }
    const std::size_t detector = std::size_t{bdm} * g.du_count + du;
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    const std::uint32_t origin =
        calibration.position_table.at(detector * positions + x + std::size_t{y} * g.position_size);
    if (origin >= reference_crystals_of_unit(g, detector)) return fate(Fate::outside_crystal);

    const CrystalNumbers numbers = reference_crystal(g, bdm, du, origin);
    const std::uint32_t bin = std::min(adc / 10, calibration.bins - 1);
    const std::size_t slot = detector * reference_crystals_per_du(g) + numbers.local;
    const float factor = calibration.energy_factor.at(slot * calibration.bins + bin);
    const float energy = static_cast<float>(adc) * factor + 0.0F;  // no negative zero
    result.in_crystal = true;
    result.single.crystal = numbers.crystal;
    result.single.energy = energy;
    const bool below = options.energy.filter && energy < options.energy.lower;
    const bool above = options.energy.filter && energy > options.energy.upper;
    result.in_energy_window = !below && !above;

    if (raw_time < limits.low || raw_time > limits.high) return fate(Fate::time_jump);
    __int128 time = raw_time;
    if (!calibration.time_offset.empty()) time += calibration.time_offset.at(numbers.crystal);
    if (time < 0 || time > static_cast<__int128>(UINT64_MAX)) return fate(Fate::bad_time);
    result.single.time = static_cast<std::uint64_t>(time);
    if (result.single.time < limits.late_below) return fate(Fate::late);
    const auto& gammas = options.rules.gammas;
    result.is_gamma = gammas && gammas->lower <= energy && energy <= gammas->upper;
    if (result.is_gamma) return fate(Fate::accepted);
    if (below) return fate(Fate::below_window);
    if (above) return fate(Fate::above_window);
    return fate(Fate::accepted);
}

void count_fate(gpu::FrameCounts& counts, Fate fate) {
    using Counts = gpu::FrameCounts;
    // In the order of Fate.
    constexpr std::array counters{&Counts::bad_marker,   &Counts::bad_address,  &Counts::outside_crystal,
                                  &Counts::time_jump,    &Counts::bad_time,     &Counts::late,
                                  &Counts::below_window, &Counts::above_window, &Counts::accepted};
    counts.received += 1;
    counts.*counters.at(static_cast<std::size_t>(fate)) += 1;
}

void count_tag(gpu::TagCounts& counts, Fate fate) {
    counts.received += 1;
    if (fate == Fate::time_jump) counts.time_jump += 1;
    if (fate == Fate::late) counts.late += 1;
    if (fate == Fate::accepted) counts.accepted += 1;
}

gpu::SinglesHistograms empty_histograms(const gpu::PipelineOptions& options) {
    const config::Geometry& geometry = options.geometry;
    const std::size_t detectors = std::size_t{geometry.bdm_count} * geometry.du_count;
    gpu::SinglesHistograms h;
    h.per_crystal.assign(geometry.crystal_count(), 0);
    h.energy.assign(std::size_t{geometry.bdm_count} * config::energy_bins, 0);
    h.temperature_sum_16ths.assign(detectors, 0);
    h.temperature_count.assign(detectors, 0);
    // Widths of 4 keV, or of 8 or 16 keV if gammas would lie in the last bin.
    if (const auto& gammas = options.rules.gammas)
        h.energy_bin_keV = gammas->upper <= 1020 ? 4.0F : gammas->upper <= 2040 ? 8.0F : 16.0F;
    return h;
}

namespace {

std::size_t bin_of(float energy, float width) {
    std::size_t bin = 0;
    while (bin < 255 && energy >= static_cast<float>(bin + 1) * width)
        ++bin;
    return bin;
}

}  // namespace

void add_to_spectra(config::Spectra& spectra, const config::Geometry& geometry, const RawFrame& frame,
                    const Converted& converted, const gpu::FrameSpan& span, const gpu::TickRange& times) {
    if (converted.fate == Fate::bad_marker || converted.fate == Fate::bad_address) return;
    const std::uint64_t time = raw_time_of(frame);
    if (time < span.time_low || time > span.time_high || time < times.start || time >= times.end) return;
    const std::size_t unit = std::size_t{converted.bdm} * geometry.du_count + converted.du;
    const std::size_t size = geometry.position_size;
    spectra.floods.at(unit * size * size + byte_at(frame, 10) + byte_at(frame, 11) * size) += 1;
    if (converted.in_crystal)
        spectra.energies.at(converted.single.crystal * std::size_t{256} +
                            bin_of(converted.single.energy, 4)) += 1;
}

void add_to_histograms(gpu::SinglesHistograms& histograms, const config::Geometry& geometry,
                       const Converted& converted) {
    if (!converted.in_crystal) return;
    if (converted.in_energy_window) histograms.per_crystal.at(converted.single.crystal) += 1;
    const std::size_t bins = config::energy_bins;
    const std::size_t bin = bin_of(converted.single.energy, histograms.energy_bin_keV);
    histograms.energy.at(converted.bdm * bins + bin) += 1;
    const std::size_t detector = std::size_t{converted.bdm} * geometry.du_count + converted.du;
    histograms.temperature_sum_16ths.at(detector) += converted.temperature_16ths;
    histograms.temperature_count.at(detector) += 1;
}

bool single_before(const Single& a, const Single& b) {
    return std::tie(a.time, a.crystal, a.energy) < std::tie(b.time, b.crystal, b.energy);
}

bool tag_before(const gpu::Tag& a, const gpu::Tag& b) {
    return std::tie(a.time, a.source, a.channel, a.kind, a.value) <
           std::tie(b.time, b.source, b.channel, b.kind, b.value);
}

bool coincidence_before(const Coincidence& a, const Coincidence& b) {
    return std::tie(a.time, a.kind, a.crystal_a, a.dt, a.crystal_b, a.energy_a, a.energy_b) <
           std::tie(b.time, b.kind, b.crystal_a, b.dt, b.crystal_b, b.energy_a, b.energy_b);
}

namespace {

bool good_in_long_form(const config::PairGeometry& pairs, const CoincidenceRules& rules,
                       std::uint32_t crystal_a, std::uint32_t crystal_b) {
    const config::PairGeometry::Crystal& a = pairs.crystals.at(crystal_a);
    const config::PairGeometry::Crystal& b = pairs.crystals.at(crystal_b);
    if (pairs.may_pair.at(a.group * pairs.groups.size() + b.group) == 0) return false;
    const auto [first, last] = std::minmax(pairs.groups.at(a.group).around, pairs.groups.at(b.group).around);
    const std::uint32_t one_way = last - first;
    const std::uint32_t places = pairs.groups.at(a.group).around_of;
    if (std::min(one_way, places - one_way) < rules.min_module_difference) return false;
    if (std::max(a.ring, b.ring) - std::min(a.ring, b.ring) > rules.max_ring_difference) return false;
    const std::int64_t z_apart = std::abs(std::int64_t{a.z_um} - b.z_um);
    if (pairs.max_z_difference_um && z_apart > *pairs.max_z_difference_um) return false;
    return !pairs.field_of_view || reference_line_meets(*pairs.field_of_view, a, b);
}

}  // namespace

bool reference_good(const config::Geometry& geometry, const CoincidenceRules& rules, std::uint32_t crystal_a,
                    std::uint32_t crystal_b) {
    if (crystal_a == crystal_b) return false;
    if (geometry.pairs) return good_in_long_form(*geometry.pairs, rules, crystal_a, crystal_b);
    const std::uint32_t modules = geometry.channels * geometry.modules.y;
    const std::uint32_t module_width = geometry.blocks.y * geometry.crystals.y;
    const std::uint32_t ring_length = modules * module_width;
    const std::uint32_t module_a = crystal_a % ring_length / module_width;
    const std::uint32_t module_b = crystal_b % ring_length / module_width;
    const std::uint32_t one_way = module_a > module_b ? module_a - module_b : module_b - module_a;
    const std::uint32_t around = std::min(one_way, modules - one_way);
    if (around < rules.min_module_difference) return false;
    const std::uint32_t ring_a = crystal_a / ring_length;
    const std::uint32_t ring_b = crystal_b / ring_length;
    const std::uint32_t rings_apart = ring_a > ring_b ? ring_a - ring_b : ring_b - ring_a;
    return rings_apart <= rules.max_ring_difference;
}

namespace {

// Of a window of one or two singles that opens with the i-th.
void note_energies(const Segment& segment, std::size_t i, std::size_t size, Decided& out) {
    if (size > 2 || segment.rules.policy != gpu::MultiplesPolicy::take_winner_if_is_good) return;
    const std::uint64_t opened = segment.s[i].time;
    if (opened * 11400714819323198485U / 4294967296 % 16 != 0) return;
    out.energies.push_back({opened, {}});
    for (std::size_t k = i; k < i + size; ++k)
        out.energies.back().singles.push_back(segment.s[k].energy);
}

// Window modes "single" and "single_opener": groups follow one another.
void prompts_of_groups(const Segment& segment, Decided& out) {
    const gpu::RecordVector<Single>& s = segment.s;
    std::size_t i = 0;
    while (i < s.size()) {
        std::size_t j = i;
        while (j < s.size() && s[j].time - s[i].time <= segment.rules.window)
            ++j;
        const std::size_t size = j - i;
        out.counts.groups += 1;
        out.counts.decided += size;
        note_energies(segment, i, size, out);
        for (std::size_t k = i; k < j; ++k)
            out.members.push_back({s[i].time, s[k].crystal, size == 1});
        if (size == 1) {
            out.counts.unpaired += 1;
        } else if (size > segment.rules.max_multiplicity) {
            out.counts.in_oversize_multiples += size;
        } else if (size == 2) {
            if (segment.good({i, i + 1})) {
                out.counts.prompts += 1;
                out.pairs.push_back({s[i].time, segment.record({i, i + 1}, Kind::prompt, 0)});
            } else if (s[i].crystal == s[i + 1].crystal) {
                out.counts.same_crystal += 2;
            } else {
                out.counts.geometry += 2;
                out.refused.push_back({s[i].time, segment.record({i, i + 1}, Kind::prompt, 0)});
            }
        } else {
            std::vector<Pair> candidates;
            const std::size_t openers_end = segment.rules.mode == gpu::WindowMode::single ? j : i + 1;
            for (std::size_t a = i; a < openers_end; ++a) {
                for (std::size_t b = a + 1; b < j; ++b)
                    candidates.emplace_back(a, b);
            }
            const std::vector<Pair> pairs = segment.apply_policy(candidates);
            std::set<std::size_t> used;
            for (const Pair& p : pairs) {
                used.insert(p.first);
                used.insert(p.second);
                out.pairs.push_back({s[i].time, segment.record(p, Kind::prompt, 0)});
            }
            out.counts.prompts += pairs.size();
            if (pairs.empty()) {
                out.counts.in_dropped_multiples += size;
            } else {
                out.counts.unused_in_multiples += size - used.size();
                out.counts.reused += 2 * pairs.size() - used.size();
            }
        }
        i = j;
    }
}

// Window mode "every": each single opens its own window.
void prompts_of_openers(const Segment& segment, Decided& out) {
    const gpu::RecordVector<Single>& s = segment.s;
    for (std::size_t i = 0; i < s.size(); ++i) {
        std::vector<Pair> candidates;
        for (std::size_t k = i + 1; k < s.size() && s[k].time - s[i].time <= segment.rules.window; ++k) {
            candidates.emplace_back(i, k);
        }
        note_energies(segment, i, candidates.size() + 1, out);
        out.counts.groups += 1;
        out.counts.decided += 1;
        out.members.push_back({s[i].time, s[i].crystal, candidates.empty()});
        if (candidates.empty()) {
            out.counts.unpaired += 1;
        } else if (candidates.size() + 1 > segment.rules.max_multiplicity) {
            out.counts.in_oversize_multiples += 1;
        } else if (candidates.size() == 1) {
            if (segment.good(candidates[0])) {
                out.counts.prompts += 1;
                out.counts.reused += 1;
                out.pairs.push_back({s[i].time, segment.record(candidates[0], Kind::prompt, 0)});
            } else if (s[i].crystal == s[i + 1].crystal) {
                out.counts.same_crystal += 1;
            } else {
                out.counts.geometry += 1;
                out.refused.push_back({s[i].time, segment.record(candidates[0], Kind::prompt, 0)});
            }
        } else {
            const std::vector<Pair> pairs = segment.apply_policy(candidates);
            for (const Pair& p : pairs)
                out.pairs.push_back({s[i].time, segment.record(p, Kind::prompt, 0)});
            out.counts.prompts += pairs.size();
            if (pairs.empty()) {
                out.counts.in_dropped_multiples += 1;
            } else {
                out.counts.reused += 2 * pairs.size() - 1;
            }
        }
    }
}

}  // namespace

Decided reference_coincidences(gpu::RecordVector<Single> singles, const config::Geometry& geometry,
                               const CoincidenceRules& rules) {
    std::sort(singles.begin(), singles.end(), single_before);
    Decided out;
    out.singles = std::move(singles);
    if (!rules.search) {
        out.counts.decided = out.singles.size();
        out.counts.unsearched = out.singles.size();
        for (const Single& s : out.singles)
            out.members.push_back({s.time, s.crystal, false});
        return out;
    }
    const Segment segment{out.singles, geometry, rules};
    if (rules.mode != gpu::WindowMode::every) {
        prompts_of_groups(segment, out);
    } else {
        prompts_of_openers(segment, out);
    }
    if (rules.delay && rules.delayeds == gpu::DelayedRule::shifted_group) delayeds_of_groups(segment, out);
    if (rules.delay && rules.delayeds == gpu::DelayedRule::delayed_window) delayeds_of_openers(segment, out);
    for (const Decided::Pair& pair : out.pairs)
        out.coincidences.push_back(pair.record);
    std::sort(out.coincidences.begin(), out.coincidences.end(), coincidence_before);
    return out;
}

namespace {

// One end of a prompt, in a module.
void add_end(gpu::PromptEnds& sums, std::int64_t dt, float energy) {
    const double keV = energy;
    sums.dt += static_cast<std::uint64_t>(dt);
    sums.abs_dt += static_cast<std::uint64_t>(std::abs(dt));
    sums.dt_squared += static_cast<std::uint64_t>(dt) * static_cast<std::uint64_t>(dt);
    if (keV < static_cast<double>(408.8F) || keV > static_cast<double>(613.2F)) return;
    sums.peak += 1;
    sums.peak_energy += static_cast<std::uint64_t>(std::floor(keV * 16));
}

}  // namespace

void add_reference_sums(gpu::IntervalSums& sums, const Decided& decided, const config::Geometry& geometry,
                        std::uint64_t from, std::optional<std::uint64_t> to) {
    const auto inside = [&](std::uint64_t opened) { return from <= opened && (!to || opened < *to); };
    std::vector<std::uint32_t> of_map(geometry.channel_map ? geometry.channel_map->crystals.size() : 0);
    for (std::uint32_t unit = 0; !of_map.empty() && unit < geometry.bdm_count * geometry.du_count; ++unit) {
        for (std::uint32_t k = 0; k < reference_crystals_of_unit(geometry, unit); ++k)
            of_map.at(
                reference_crystal(geometry, unit / geometry.du_count, unit % geometry.du_count, k).crystal) =
                unit / geometry.du_count;
    }
    const auto module_of = [&](std::uint32_t crystal) {
        if (!of_map.empty()) return of_map.at(crystal);
        const std::uint32_t modules = geometry.channels * geometry.modules.y;
        const std::uint32_t in_ring = modules * geometry.blocks.y * geometry.crystals.y;
        return crystal % in_ring / (geometry.blocks.y * geometry.crystals.y) +
               crystal / in_ring / (geometry.blocks.z * geometry.crystals.z) * modules;
    };
    std::uint32_t together = 1;  // modules of a sector
    while (256 * together < geometry.bdm_count)
        together *= 2;
    const std::uint32_t sectors = (geometry.bdm_count + together - 1) / together;
    for (const Decided::Member& m : decided.members) {
        if (inside(m.opened)) (m.alone ? sums.unpaired : sums.grouped).at(m.crystal) += 1;
    }
    const auto of_modules = [&](std::vector<std::uint32_t>& pairs, const Coincidence& c) -> std::uint32_t& {
        return pairs.at(std::size_t{module_of(c.crystal_a) / together} * sectors +
                        module_of(c.crystal_b) / together);
    };
    for (const auto& [opened, pair] : decided.refused) {
        if (inside(opened)) of_modules(sums.refused_pairs, pair) += 1;
    }
    for (const auto& [opened, energies] : decided.energies) {
        if (!inside(opened)) continue;
        const auto [lesser, greater] = std::minmax_element(energies.begin(), energies.end());
        // Energies may be infinite.
        const auto bin = [](float keV) { return keV >= 1008 ? 63 : static_cast<std::size_t>(keV / 16); };
        if (energies.size() == 1) {
            sums.energies.at(bin(*lesser)) += 1;
        } else {
            sums.energies.at(64 + bin(*lesser)) += 1;
            sums.energies.at(128 + bin(*greater)) += 1;
        }
    }
    for (const auto& [opened, pair] : decided.pairs) {
        if (!inside(opened)) continue;
        auto& ends = pair.kind == Kind::prompt ? sums.prompts : sums.delayeds;
        ends.at(pair.crystal_a) += 1;
        ends.at(pair.crystal_b) += 1;
        if (pair.kind == Kind::delayed) continue;
        of_modules(sums.module_pairs, pair) += 1;
        add_end(sums.modules.at(module_of(pair.crystal_a)), pair.dt, pair.energy_a);
        add_end(sums.modules.at(module_of(pair.crystal_b)), -static_cast<std::int64_t>(pair.dt),
                pair.energy_b);
    }
}

}  // namespace petacq::test
