#include "gpu/cpu/convert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "config/energy_bins.hpp"

namespace petacq::gpu {

LocalHistograms::LocalHistograms(const config::Geometry& g)
    : per_crystal(g.crystal_count()),
      energy(std::size_t{g.bdm_count} * config::energy_bins),
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
    h.energy.resize(std::size_t{g.bdm_count} * config::energy_bins);
    h.temperature_sum_16ths.resize(std::size_t{g.bdm_count} * g.du_count);
    h.temperature_count.resize(std::size_t{g.bdm_count} * g.du_count);
    return h;
}

namespace {

// Frames go through the conversion in blocks, in three steps. The position table fits in no cache, and the
// rows and histograms of the crystals hardly fit in the second. So each step prefetches what the next one
// reads, and while that is on its way, the later steps work on the blocks before. All of it stays in the
// first cache.
struct FrameBlock {
    static constexpr std::uint32_t max_frames = FrameLists::block;
    struct Address {
        std::uint32_t frame;
        std::uint32_t unit;
        std::uint32_t cell;
    };
    struct Hit {
        std::uint32_t frame;
        std::uint32_t unit;
        std::uint32_t crystal;
    };
    FrameSpan span;
    std::uint32_t found = 0;   // frames of a known unit: the first of the addresses
    std::uint32_t inside = 0;  // of these, frames inside a crystal: the first of the hits
    // NOLINTBEGIN(cppcoreguidelines-pro-type-member-init): written before they are read
    std::array<Address, max_frames> addresses;
    std::array<Hit, max_frames> hits;
    std::array<std::uint32_t, max_frames> without_address;  // the other frames
    // Set only while spectra are counted: whether the frame counts, and in which crystal of its unit.
    std::array<bool, max_frames> counts;
    std::array<std::uint16_t, max_frames> local;
    // NOLINTEND(cppcoreguidelines-pro-type-member-init)
    std::array<std::uint8_t, max_frames> bin = {};  // if inside a crystal
};

// The steps keep what they need in local variables: the compiler would reload members after every store.

/// A frame without an address.
template <net::FrameVersion version>
void reject(net::FrameWords w, const FrameSpan& span, std::uint64_t watermark, const ConversionTables& t,
            ConvertedFrames& to) {
    if (markers_match<version>(w, t)) {
        ++to.counts.bad_address;
    } else if (is_tag<version>(w, t)) {
        to.tags.take(w, span.tag_source, TimeGuard::of(span.time_low, span.time_high), watermark, version);
    } else {
        ++to.counts.bad_marker;
    }
}

/// Which frames count in the spectra, and where.
struct Counting {
    FrameLists& lists;
    TickRange times;
    std::uint32_t positions;  // of a unit

    [[nodiscard]] TimeGuard guard(const FrameSpan& span) const {
        return TimeGuard::of(std::max(span.time_low, times.start), std::min(span.time_high, times.end - 1));
    }
};

/// `restricted`: a source has only the modules of its own. `Spectra`: Counting, or nullptr_t if no frame
/// counts.
template <net::FrameVersion version, bool restricted, class Spectra>
void find_addresses(FrameBlock& b, std::uint64_t watermark, const ConversionTables& tables,
                    ConvertedFrames& to, const Spectra& counting) {
    constexpr bool counts = std::is_same_v<Spectra, Counting>;
    const ConversionTables t = tables;
    TimeGuard counted;
    if constexpr (counts) counted = counting.guard(b.span);
    const FrameSpan span = b.span;
    std::uint32_t found = 0;
    std::uint32_t without_address = 0;
    for (std::uint32_t k = 0; k < span.count; ++k) {
        const net::FrameWords w = net::load_frame(span.frames + std::size_t{k} * net::frame_bytes);
        bool known = markers_match<version>(w, t);
        if constexpr (restricted) known = known && module_of_source<version>(w, span.source, t);
        const std::uint32_t cell = known ? frame_cell<version>(w, t) : no_cell;
        if (cell == no_cell) [[unlikely]] {
            b.without_address[without_address++] = k;
            continue;
        }
        if (t.position != nullptr) {
            __builtin_prefetch(t.position + cell);
        } else {
            __builtin_prefetch(t.wide_position + cell);
        }
        FrameBlock::Address& address = b.addresses[found++];
        address.frame = k;
        address.unit = frame_unit<version>(w, t);
        address.cell = cell;
        if constexpr (counts) b.counts[k] = !counted.refuses(net::time_of(w));
    }
    b.found = found;
    // Apart from the loop: a call in it would push its variables out of the registers.
    for (std::uint32_t i = 0; i < without_address; ++i) {
        const std::byte* const frame = b.span.frames + std::size_t{b.without_address[i]} * net::frame_bytes;
        reject<version>(net::load_frame(frame), b.span, watermark, tables, to);
    }
}

/// Keeps the frames inside a crystal, without a branch, since chance decides.
template <bool wide, bool one_bin, bool counting>
void find_crystals(FrameBlock& b, const HostTables& tables, const LocalHistograms& histograms) {
    const auto* const position = [&] {
        if constexpr (wide) {
            return tables.frames.view().wide_position;
        } else {
            return tables.frames.view().position;
        }
    }();
    const std::uint32_t crystals_per_du = tables.frames.view().crystals_per_du;
    const HostTables::UnitNumbers* const units = tables.units.data();
    const std::uint32_t* const crystal_in_unit = tables.crystal_in_unit.data();
    const std::uint32_t* const rows = tables.rows.data();
    const std::uint32_t bins = one_bin ? 1 : tables.frames.view().bins;
    const std::byte* const frames = b.span.frames;
    const std::uint32_t* const per_crystal = histograms.per_crystal.data();
    const std::uint32_t found = b.found;
    std::uint32_t inside = 0;
    for (std::uint32_t i = 0; i < found; ++i) {
        const FrameBlock::Address& address = b.addresses[i];
        const std::uint32_t local = position[address.cell];
        const HostTables::UnitNumbers numbers = units[address.unit];
        const std::uint32_t crystal = numbers.first + crystal_in_unit[numbers.pattern + local];
        FrameBlock::Hit& hit = b.hits[inside];
        hit.frame = address.frame;
        hit.unit = address.unit;
        hit.crystal = crystal;
        if constexpr (counting) {
            b.local[address.frame] =
                static_cast<std::uint16_t>(wide ? std::min(local, crystals_per_du) : local);
        }
        inside += local < crystals_per_du ? 1 : 0;
        const std::uint32_t* const row = rows + crystal * (std::size_t{1} + bins);
        __builtin_prefetch(row);
        if constexpr (!one_bin) {
            const net::FrameWords w = net::load_frame(frames + std::size_t{address.frame} * net::frame_bytes);
            __builtin_prefetch(row + factor_word<one_bin>(w, bins));
        }
        __builtin_prefetch(per_crystal + crystal);
    }
    b.inside = inside;
}

/// Writes behind `written`. `with_gammas`: there is a gamma window.
template <net::FrameVersion version, bool one_bin, bool counting, bool with_gammas>
void make_singles(FrameBlock& b, std::uint64_t watermark, const HostTables& tables, FrameCounts& counts,
                  LocalHistograms& histograms, SinglesOut to, SinglesWritten& written) {
    const FrameSpan span = b.span;
    const TimeGuard guard = TimeGuard::of(span.time_low, span.time_high);
    const std::uint32_t* const rows = tables.rows.data();
    const std::uint32_t bins = one_bin ? 1 : tables.frames.view().bins;
    const float lower = tables.frames.view().lower;
    const float upper = tables.frames.view().upper;
    const float gamma_lower = tables.frames.view().gamma_lower;
    const float gamma_upper = tables.frames.view().gamma_upper;
    const float bins_per_keV = singles_bins_per_keV<with_gammas>(tables.frames.view());
    std::uint32_t* const per_crystal = histograms.per_crystal.data();
    std::uint32_t* const energies = histograms.energy.data();
    std::int64_t* const temperature_sum = histograms.temperature_sum_16ths.data();
    std::uint32_t* const temperature_count = histograms.temperature_count.data();
    const std::uint32_t inside = b.inside;
    Single* const out = to.pairs;
    const std::size_t before = written.pairs;
    std::size_t n = before;
    std::size_t gammas = written.gammas;
    std::uint32_t refused = 0;
    std::uint32_t above = 0;
    for (std::uint32_t i = 0; i < inside; ++i) {
        const FrameBlock::Hit& hit = b.hits[i];
        const net::FrameWords w = net::load_frame(span.frames + std::size_t{hit.frame} * net::frame_bytes);
        const std::uint32_t crystal = hit.crystal;
        const std::uint32_t* const row = rows + crystal * (std::size_t{1} + bins);
        const auto time_offset = std::bit_cast<std::int32_t>(row[0]);
        const auto factor = std::bit_cast<float>(row[factor_word<one_bin>(w, bins)]);
        const float energy = static_cast<float>(net::adc_of(w)) * factor;
        const bool is_above = energy > upper;
        const bool in_window = !((energy < lower) | is_above);
        ++energies[net::bdm_of<version>(w) * config::energy_bins + energy_bin(energy, bins_per_keV)];
        if constexpr (counting)
            b.bin[hit.frame] = static_cast<std::uint8_t>(energy_bin(energy, spectra_bins_per_keV));
        temperature_sum[hit.unit] += net::temperature_16ths_of<version>(w);
        ++temperature_count[hit.unit];
        per_crystal[crystal] += in_window ? 1 : 0;

        const std::uint64_t raw = net::time_of(w);
        bool bad = false;
        const std::uint64_t time = corrected_time(raw, time_offset, bad);
        const bool jump = guard.refuses(raw);
        if (jump | bad | (time < watermark)) [[unlikely]] {
            ++(jump ? counts.time_jump : bad ? counts.bad_time : counts.late);
            ++refused;
            continue;
        }
        above += is_above ? 1 : 0;
        out[n] = Single{time, crystal, energy};
        n += in_window ? 1 : 0;
        if constexpr (with_gammas) {
            const bool is_gamma = (gamma_lower <= energy) & (energy <= gamma_upper);
            to.gammas[gammas] = Single{time, crystal, energy};
            gammas += is_gamma ? 1 : 0;
            above -= is_above & is_gamma ? 1 : 0;
        }
    }
    counts.above_window += above;
    counts.below_window += inside - refused - above - (n - before) - (gammas - written.gammas);
    written = {n, gammas};
}

template <bool wide>
void count(const FrameBlock& b, const Counting& counting) {
    const std::uint32_t positions = counting.positions;
    const std::uint32_t found = b.found;
    bool full = false;
    for (std::uint32_t i = 0; i < found; ++i) {
        const FrameBlock::Address& address = b.addresses[i];
        const std::uint32_t k = address.frame;
        const std::uint32_t flood = address.cell - address.unit * positions;
        const std::uint32_t energy = b.local[k] * config::energy_bins + b.bin[k];
        if constexpr (wide) {
            full |= counting.lists.append(address.unit, flood, energy, b.counts[k]);
        } else {
            const CountedFrame frame{static_cast<std::uint16_t>(flood), static_cast<std::uint16_t>(energy)};
            full |= counting.lists.append(address.unit, frame, b.counts[k]);
        }
    }
    if (full) counting.lists.flush_full();
}

/// `counting`: a Counting, or nullptr if nothing counts in spectra.
template <net::FrameVersion version, bool wide, bool restricted, bool one_bin, class Spectra>
SinglesWritten convert(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                       const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                       SinglesOut out, const Spectra& counting) {
    constexpr bool counts = std::is_same_v<Spectra, Counting>;
    const std::uint64_t tags_before = to.tags.counts.received;
    std::array<FrameBlock, 3> blocks;
    SinglesWritten written;
    std::uint64_t left = frames;
    for (std::size_t step = 0, ended = 0; ended < 2; ++step) {
        FrameBlock& first = blocks[step % 3];
        FrameBlock& second = blocks[(step + 2) % 3];  // the one before
        FrameBlock& third = blocks[(step + 1) % 3];
        if (left > 0) {
            first.span = cursor.next(std::min<std::uint64_t>(left, FrameBlock::max_frames));
            left -= first.span.count;
            find_addresses<version, restricted>(first, watermark, tables.frames.view(), to, counting);
        } else {
            first.found = 0;
            ++ended;
        }
        find_crystals<wide, one_bin, counts>(second, tables, histograms);
        to.counts.outside_crystal += second.found - second.inside;
        if (out.gammas != nullptr) {
            make_singles<version, one_bin, counts, true>(third, watermark, tables, to.counts, histograms, out,
                                                         written);
        } else {
            make_singles<version, one_bin, counts, false>(third, watermark, tables, to.counts, histograms,
                                                          out, written);
        }
        if constexpr (counts) count<wide>(third, counting);
    }
    to.counts.received += frames - (to.tags.counts.received - tags_before);
    to.counts.accepted += written.pairs + written.gammas;
    return written;
}

template <class Spectra>
SinglesWritten convert(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                       const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                       SinglesOut out, const Spectra& counting) {
    const ConversionTables& t = tables.frames.view();
    const bool restricted = t.modules_of_source != nullptr;
    const bool one_bin = t.bins == 1;
    const auto choose = [&]<net::FrameVersion version, bool wide>() {
        return restricted ? one_bin ? convert<version, wide, true, true, Spectra>
                                    : convert<version, wide, true, false, Spectra>
               : one_bin ? convert<version, wide, false, true, Spectra>
                          : convert<version, wide, false, false, Spectra>;
    };
    using net::FrameVersion;
    const bool wide = t.wide_position != nullptr;
    const auto function = t.version == FrameVersion::one
                              ? wide ? choose.template operator()<FrameVersion::one, true>()
                                     : choose.template operator()<FrameVersion::one, false>()
                          : wide ? choose.template operator()<FrameVersion::two, true>()
                                 : choose.template operator()<FrameVersion::two, false>();
    return function(cursor, frames, watermark, tables, to, histograms, out, counting);
}

}  // namespace

SinglesWritten convert_frames(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                              const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                              SinglesOut out) {
    return convert(cursor, frames, watermark, tables, to, histograms, out, nullptr);
}

SinglesWritten convert_and_count(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                                 const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                                 SinglesOut out, FrameLists& spectra, const TickRange& times) {
    if (times.end == 0) return convert_frames(cursor, frames, watermark, tables, to, histograms, out);
    const std::uint32_t size = tables.frames.view().position_size;
    return convert(cursor, frames, watermark, tables, to, histograms, out,
                   Counting{spectra, times, size * size});
}

SinglesWritten take_singles(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                            const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                            SinglesOut out) {
    FrameCounts& counts = to.counts;
    const float lower = tables.frames.view().lower;
    const float upper = tables.frames.view().upper;
    const auto crystal_count = static_cast<std::uint32_t>(histograms.per_crystal.size());
    const ConversionTables& t = tables.frames.view();
    SinglesWritten written;
    for (std::uint64_t left = frames; left > 0;) {
        const FrameSpan span = cursor.next(left);
        left -= span.count;
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
            } else if (out.gammas != nullptr && t.gamma_lower <= s.energy && s.energy <= t.gamma_upper) {
                s.energy += 0.0F;  // as below
                out.gammas[written.gammas++] = s;
            } else if (!(s.energy >= lower)) {  // also rejects NaN
                ++counts.below_window;
            } else if (s.energy > upper) {
                ++counts.above_window;
            } else {
                ++histograms.per_crystal[s.crystal];
                s.energy += 0.0F;  // energies that compare equal must have equal bytes
                out.pairs[written.pairs++] = s;
            }
        }
    }
    counts.received += frames;
    counts.accepted += written.pairs + written.gammas;
    return written;
}

}  // namespace petacq::gpu
