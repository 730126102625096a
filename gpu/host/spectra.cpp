#include "gpu/host/spectra.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "gpu/arithmetic.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

namespace {

struct Tables {
    const HostTables& host;
    SpectraTable& floods;
    SpectraTable& energies;
};

// No table fits in a cache. So frames go through in blocks, in four steps that each prefetch what the next
// one reads. While that is on its way, the later steps work on the blocks before.
struct Block {
    static constexpr std::uint32_t most_frames = 32;
    struct Place {
        std::uint32_t frame;
        std::uint32_t unit;
        std::uint32_t cell;
    };
    struct Hit {
        std::uint32_t frame;
        std::uint32_t crystal;
    };
    FrameSpan span;
    std::uint32_t found = 0;   // frames that count: the first of the places
    std::uint32_t inside = 0;  // of these, frames inside a crystal: the first of the hits and the energies
    // NOLINTBEGIN(cppcoreguidelines-pro-type-member-init): written before they are read
    std::array<Place, most_frames> places;
    std::array<Hit, most_frames> hits;
    std::array<std::uint32_t, most_frames> energies;  // where they count
    // NOLINTEND(cppcoreguidelines-pro-type-member-init)
};

template <bool restricted>
void find_places(Block& b, const TickRange& times, const Tables& tables) {
    const ConversionTables t = tables.host.frames.view();
    const FrameSpan span = b.span;
    const TimeGuard guard =
        TimeGuard::of(std::max(span.time_low, times.start), std::min(span.time_high, times.end - 1));
    std::uint32_t found = 0;
    for (std::uint32_t k = 0; k < span.count; ++k) {
        const net::FrameWords w = net::load_frame(span.frames + std::size_t{k} * net::frame_bytes);
        bool known = markers_match(w, t) & !guard.refuses(frame_raw_time(w));
        if constexpr (restricted) known = known && module_of_source(w, span.source, t);
        const std::uint32_t cell = known ? frame_cell(w, t) : no_cell;
        if (cell == no_cell) [[unlikely]]
            continue;
        __builtin_prefetch(t.position + cell);
        tables.floods.prefetch(cell);
        b.places[found++] = {k, frame_bdm(w) * t.du_count + frame_du(w), cell};
    }
    b.found = found;
}

/// Counts the places.
template <bool one_bin, bool alone>
void find_hits(Block& b, const Tables& tables) {
    const HostTables& host = tables.host;
    const std::uint8_t* const position = host.frames.view().position;
    const std::uint32_t crystals_per_du = host.frames.view().crystals_per_du;
    const std::uint32_t* const first_crystal = host.first_crystal.data();
    const std::uint32_t* const crystal_in_unit = host.crystal_in_unit.data();
    const std::uint32_t* const rows = host.rows.data();
    const std::uint32_t bins = one_bin ? 1 : host.frames.view().bins;
    const std::byte* const frames = b.span.frames;
    const std::uint32_t found = b.found;
    std::uint32_t inside = 0;
    for (std::uint32_t i = 0; i < found; ++i) {
        const Block::Place& place = b.places[i];
        tables.floods.count<alone>(place.cell);
        const std::uint32_t local = position[place.cell];
        const std::uint32_t crystal = first_crystal[place.unit] + crystal_in_unit[local];
        b.hits[inside] = {place.frame, crystal};
        inside += local < crystals_per_du ? 1 : 0;
        const net::FrameWords w = net::load_frame(frames + std::size_t{place.frame} * net::frame_bytes);
        __builtin_prefetch(rows + crystal * (std::size_t{1} + bins) + factor_word<one_bin>(w, bins));
    }
    b.inside = inside;
}

template <bool one_bin>
void find_energies(Block& b, const Tables& tables) {
    const std::uint32_t* const rows = tables.host.rows.data();
    const std::uint32_t bins = one_bin ? 1 : tables.host.frames.view().bins;
    const std::byte* const frames = b.span.frames;
    const std::uint32_t inside = b.inside;
    for (std::uint32_t i = 0; i < inside; ++i) {
        const Block::Hit& hit = b.hits[i];
        const net::FrameWords w = net::load_frame(frames + std::size_t{hit.frame} * net::frame_bytes);
        const std::uint32_t* const row = rows + hit.crystal * (std::size_t{1} + bins);
        const auto factor = std::bit_cast<float>(row[factor_word<one_bin>(w, bins)]);
        b.energies[i] = hit.crystal * config::Spectra::energy_bins +
                        energy_bin(static_cast<float>(frame_adc(w)) * factor);
        tables.energies.prefetch(b.energies[i]);
    }
}

template <bool restricted, bool one_bin, bool alone>
void count_frames(FrameCursor& cursor, std::uint64_t frames, const TickRange& times, const Tables& tables) {
    std::array<Block, 4> blocks;
    std::uint64_t left = frames;
    for (std::size_t step = 0, ended = 0; ended < 3; ++step) {
        Block& first = blocks[step % 4];
        Block& second = blocks[(step + 3) % 4];  // the one before
        Block& third = blocks[(step + 2) % 4];
        const Block& fourth = blocks[(step + 1) % 4];
        for (std::uint32_t i = 0; i < fourth.inside; ++i)
            tables.energies.count<alone>(fourth.energies[i]);
        find_energies<one_bin>(third, tables);
        find_hits<one_bin, alone>(second, tables);
        if (left > 0) {
            first.span = cursor.next(std::min<std::uint64_t>(left, Block::most_frames));
            left -= first.span.count;
            find_places<restricted>(first, times, tables);
        } else {
            first.found = 0;
            ++ended;
        }
    }
}

using Function = decltype(&count_frames<false, false, false>);

template <bool restricted, bool one_bin>
Function function_for(bool alone) {
    return alone ? count_frames<restricted, one_bin, true> : count_frames<restricted, one_bin, false>;
}

}  // namespace

static_assert(config::Spectra::energy_bins == SinglesHistograms::energy_bins);
static_assert(config::Spectra::energy_bin_keV == SinglesHistograms::energy_bin_keV);

void HostSpectra::count(FrameCursor cursor, std::uint64_t frames, const TickRange& times,
                        const HostTables& tables) {
    if (times.end == 0) return;
    const bool restricted = tables.frames.view().modules_of_source != nullptr;
    const bool one_bin = tables.frames.view().bins == 1;
    const Function function =
        restricted ? one_bin ? function_for<true, true>(alone_) : function_for<true, false>(alone_)
        : one_bin ? function_for<false, true>(alone_)
                   : function_for<false, false>(alone_);
    function(cursor, frames, times, {tables, floods_, energies_});
}

void SpectraTable::copy(std::size_t from, std::size_t count, std::uint32_t* to) {
    for (std::size_t i = from; i < from + count; ++i) {
        *to++ = std::atomic_ref<std::uint8_t>(low_[i]).load(std::memory_order_relaxed) +
                std::atomic_ref<std::uint32_t>(high_[i]).load(std::memory_order_relaxed);
    }
}

void SpectraTable::clear() {
    std::fill(low_.begin(), low_.end(), 0);
    std::fill(high_.begin(), high_.end(), 0);
}

void HostSpectra::take(config::Spectra& out) {
    out.floods.resize(floods_.size());
    floods_.copy(0, floods_.size(), out.floods.data());
    floods_.clear();
    out.energies.resize(energies_.size());
    energies_.copy(0, energies_.size(), out.energies.data());
    energies_.clear();
}

void HostSpectra::copy_unit(std::uint32_t unit, UnitSpectra& out) {
    const config::Geometry& g = geometry_;
    out.flood.resize(positions_);
    floods_.copy(unit * positions_, positions_, out.flood.data());
    constexpr std::size_t bins = config::Spectra::energy_bins;
    out.energies.resize(g.crystals_per_du() * bins);
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
        const std::size_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
        energies_.copy(crystal * bins, bins, out.energies.data() + local * bins);
    }
}

}  // namespace petacq::gpu
