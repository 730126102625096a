#include "gpu/host/convert.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace petacq::gpu {

LocalHistograms::LocalHistograms(const config::Geometry& g)
    : per_crystal(g.crystal_count()),
      energy(std::size_t{g.bdm_count} * SinglesHistograms::energy_bins),
      temperature_sum_16ths(std::size_t{g.bdm_count} * g.du_count),
      temperature_count(std::size_t{g.bdm_count} * g.du_count) {}

namespace {
template <class Small, class Large>
void move_into(std::vector<Small>& from, std::vector<Large>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        to[i] += static_cast<Large>(from[i]);
        from[i] = 0;
    }
}
}  // namespace

void LocalHistograms::flush_into(SinglesHistograms& total) {
    move_into(per_crystal, total.per_crystal);
    move_into(energy, total.energy);
    move_into(temperature_sum_16ths, total.temperature_sum_16ths);
    move_into(temperature_count, total.temperature_count);
}

SinglesHistograms make_histograms(const config::Geometry& g) {
    SinglesHistograms h;
    h.per_crystal.resize(g.crystal_count());
    h.energy.resize(std::size_t{g.bdm_count} * SinglesHistograms::energy_bins);
    h.temperature_sum_16ths.resize(std::size_t{g.bdm_count} * g.du_count);
    h.temperature_count.resize(std::size_t{g.bdm_count} * g.du_count);
    return h;
}

namespace {

/// `restricted`: a source has only the modules of its own. `one_bin`: an energy factor does not depend on the
/// energy.
template <bool restricted, bool one_bin>
std::size_t convert(const FrameSpan& span, std::uint64_t watermark, const ConversionTables& tables,
                    FrameCounts& counts, LocalHistograms& histograms, Single* out, std::size_t n) {
    // Three passes over blocks that fit in the L1 cache. The first finds the places in the position table,
    // which fits in no cache, and prefetches them. The second keeps the frames inside a crystal, without a
    // branch, since chance decides. The third makes them singles.
    constexpr std::uint32_t block_frames = 128;
    struct Hit {
        std::uint32_t frame;
        std::uint32_t slot;
    };
    // NOLINTBEGIN(cppcoreguidelines-pro-type-member-init): written below
    std::array<std::uint32_t, block_frames> cells;
    std::array<Hit, block_frames> hits;
    // NOLINTEND(cppcoreguidelines-pro-type-member-init)

    // With a local copy, the compiler need not reload the view after every store.
    const ConversionTables t = tables;
    const TimeGuard guard = TimeGuard::of(span.time_low, span.time_high);
    std::uint32_t* const per_crystal = histograms.per_crystal.data();
    std::uint32_t* const energies = histograms.energy.data();
    std::int64_t* const temperature_sum = histograms.temperature_sum_16ths.data();
    std::uint32_t* const temperature_count = histograms.temperature_count.data();
    const std::size_t before_span = n;
    std::uint64_t outside = 0;
    std::uint64_t below = 0;
    std::uint64_t above = 0;
    for (std::uint32_t first = 0; first < span.count; first += block_frames) {
        const std::uint32_t block = std::min(block_frames, span.count - first);
        const std::byte* frames = span.frames + std::size_t{first} * net::frame_bytes;
        for (std::uint32_t k = 0; k < block; ++k) {
            const net::FrameWords w = net::load_frame(frames + std::size_t{k} * net::frame_bytes);
            bool known = markers_match(w, t);
            if constexpr (restricted) known = known && module_of_source(w, span.source, t);
            cells[k] = known ? frame_cell(w, t) : no_cell;
            __builtin_prefetch(t.position + (cells[k] == no_cell ? 0 : cells[k]));
        }
        std::uint32_t inside = 0;
        for (std::uint32_t k = 0; k < block; ++k) {
            const net::FrameWords w = net::load_frame(frames + std::size_t{k} * net::frame_bytes);
            if (cells[k] == no_cell) [[unlikely]] {
                ++(markers_match(w, t) ? counts.bad_address : counts.bad_marker);
                continue;
            }
            const std::uint32_t local = t.position[cells[k]];
            const std::uint32_t unit = frame_bdm(w) * t.du_count + frame_du(w);
            hits[inside] = {k, unit * t.crystals_per_du + local};
            const bool hit = local < t.crystals_per_du;
            inside += hit ? 1 : 0;
            outside += hit ? 0 : 1;
        }
        for (std::uint32_t i = 0; i < inside; ++i) {
            const auto [k, slot] = hits[i];
            const net::FrameWords w = net::load_frame(frames + std::size_t{k} * net::frame_bytes);
            const std::uint32_t unit = frame_bdm(w) * t.du_count + frame_du(w);
            const CrystalEntry entry = t.crystals[slot];
            const std::uint32_t adc = frame_adc(w);
            const float energy =
                one_bin ? static_cast<float>(adc) * t.factor[slot] : frame_energy(adc, slot, t);
            const bool is_below = energy < t.lower;
            const bool is_above = energy > t.upper;
            const bool in_window = !(is_below | is_above);
            ++energies[frame_bdm(w) * SinglesHistograms::energy_bins + energy_bin(energy)];
            temperature_sum[unit] += frame_temperature_16ths(w);
            ++temperature_count[unit];
            per_crystal[entry.crystal] += in_window ? 1 : 0;

            const std::uint64_t raw = frame_raw_time(w);
            bool bad = false;
            const std::uint64_t time = corrected_time(raw, entry.time_offset, bad);
            const bool jump = guard.refuses(raw);
            if (jump | bad | (time < watermark)) [[unlikely]] {
                ++(jump ? counts.time_jump : bad ? counts.bad_time : counts.late);
                continue;
            }
            below += is_below ? 1 : 0;
            above += is_above ? 1 : 0;
            out[n] = Single{time, entry.crystal, energy};
            n += in_window ? 1 : 0;
        }
    }
    counts.received += span.count;
    counts.outside_crystal += outside;
    counts.below_window += below;
    counts.above_window += above;
    counts.accepted += n - before_span;
    return n;
}

}  // namespace

std::size_t convert_span(const FrameSpan& span, std::uint64_t watermark, const ConversionTables& tables,
                         FrameCounts& counts, LocalHistograms& histograms, Single* out, std::size_t n) {
    const bool restricted = tables.modules_of_source != nullptr;
    const bool one_bin = tables.bins == 1;
    const auto function = restricted ? one_bin ? convert<true, true> : convert<true, false>
                          : one_bin ? convert<false, true>
                                     : convert<false, false>;
    return function(span, watermark, tables, counts, histograms, out, n);
}

std::size_t take_singles(const FrameSpan& span, std::uint64_t watermark, const ConversionTables& tables,
                         FrameCounts& counts, LocalHistograms& histograms, Single* out, std::size_t n) {
    const std::size_t before_span = n;
    const auto crystal_count = static_cast<std::uint32_t>(histograms.per_crystal.size());
    const TimeGuard guard = TimeGuard::of(span.time_low, span.time_high);
    for (std::uint32_t i = 0; i < span.count; ++i) {
        Single s;  // NOLINT(cppcoreguidelines-pro-type-member-init)
        std::memcpy(&s, span.frames + std::size_t{i} * sizeof(Single), sizeof s);
        if (s.crystal >= crystal_count) {
            ++counts.bad_address;
        } else if (guard.refuses(s.time)) {
            ++counts.time_jump;
        } else if (s.time < watermark) {
            ++counts.late;
        } else if (!(s.energy >= tables.lower)) {  // also rejects NaN
            ++counts.below_window;
        } else if (s.energy > tables.upper) {
            ++counts.above_window;
        } else {
            ++histograms.per_crystal[s.crystal];
            s.energy += 0.0F;  // see OwnedTables
            out[n++] = s;
        }
    }
    counts.received += span.count;
    counts.accepted += n - before_span;
    return n;
}

}  // namespace petacq::gpu
