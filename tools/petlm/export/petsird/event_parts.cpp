#include "tools/petlm/export/petsird/event_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "tools/petlm/base/status.hpp"

namespace petacq::petsird {
namespace {

/// The time block that the records are in.
class CurrentBlock {
  public:
    explicit CurrentBlock(const TimeBlocks& blocks) : blocks_(blocks) {}

    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// False: the time is in the same block as the last one, as almost all are.
    bool moves_to(std::uint64_t time) {
        if (time >= from_ && time < safe_end_) return false;
        const Range* range = blocks_.range_with(time);
        if (range == nullptr) {
            throw petlm::BadInput(
                fmt::format("a record is from tick {}, a time that the records do not cover; petlm verify "
                            "names the problem",
                            time));
        }
        const std::uint64_t number = blocks_.block_of(*range, time);
        const bool first = safe_end_ == 0;
        if (!first && number < number_)
            throw petlm::BadInput("the records are not in the order of time; petlm verify names the problem");
        from_ = time;
        // To a tick or two, which the next time decides for itself.
        constexpr std::uint64_t rounding = 4;
        const double end = static_cast<double>(blocks_.time_of(number).end_ms) / blocks_.ms_per_tick();
        const std::uint64_t end_ticks = blocks_.start_ticks() + static_cast<std::uint64_t>(end);
        safe_end_ =
            std::max<std::uint64_t>(std::min(end_ticks - std::min(rounding, end_ticks), range->end), 1);
        return std::exchange(number_, number) != number || first;
    }

  private:
    const TimeBlocks& blocks_;
    std::uint64_t number_ = 0;
    std::uint64_t from_ = 0;
    std::uint64_t safe_end_ = 0;  ///< 0: there was no time yet
};

}  // namespace

EventEncoder::EventEncoder(const Bins& bins, const TimeBlocks& blocks) : bins_(bins), blocks_(blocks) {
    std::uint32_t most = 2 * bins.tof_half + 1;
    for (std::uint32_t type = 0; type < bins.type_count(); ++type) {
        first_bin_.push_back(bins.first_element[type] * bins.energies());
        most = std::max(most, (bins.first_element[type + 1] - bins.first_element[type]) * bins.energies());
    }
    numbers_.reserve(most);
    for (std::uint32_t number = 0; number < most; ++number)
        numbers_.push_back(Varint::of(number));
}

EventPart EventEncoder::encode(std::span<const gpu::Coincidence> pairs) const {
    return encode_all(pairs, 2 * bins_.pair_lists());
}

EventPart EventEncoder::encode(std::span<const gpu::Triple> triples) const {
    return encode_all(triples, bins_.triple_lists());
}

template <class Record>
EventPart EventEncoder::encode_all(std::span<const Record> records, std::uint32_t lists) const {
    EventPart part;
    part.lists.resize(lists);
    const auto end_block = [&] {
        for (const EventList& list : part.lists)
            part.ends.push_back({list.events, list.used});
    };
    CurrentBlock current(blocks_);
    for (const Record& record : records) {
        if (current.moves_to(time_of(record))) {
            if (!part.blocks.empty()) end_block();
            part.blocks.push_back(current.number());
        }
        add(record, part.lists);
    }
    if (!part.blocks.empty()) end_block();
    return part;
}

void EventEncoder::check(const gpu::Coincidence& c) const {
    if (c.dt > bins_.window_ticks) {
        throw petlm::BadInput(
            fmt::format("a record has dt {} in a window of {} ticks", c.dt, bins_.window_ticks));
    }
}

void EventEncoder::add(const gpu::Coincidence& c, std::vector<EventList>& lists) const {
    check(c);
    const std::uint32_t a = bins_.detection_bin(c.crystal_a, c.energy_a);
    const std::uint32_t b = bins_.detection_bin(c.crystal_b, c.energy_b);
    const std::uint32_t first = std::max(a, b);
    const std::uint32_t second = std::min(a, b);
    const std::uint32_t type = bins_.type_of_bin(first);
    const std::uint32_t other = bins_.type_of_bin(second);
    const std::uint32_t of_types = type * (type + 1) / 2 + other;
    EventList& list = lists[c.kind == gpu::Kind::prompt ? of_types : bins_.pair_lists() + of_types];
    // The arrival of the first less that of the second; a came before b.
    Varint tof = numbers_[0];
    if (bins_.tof_bin_ticks != 0) {
        const std::int64_t width = bins_.tof_bin_ticks;
        const std::int64_t bins = width == 1 ? c.dt : (2 * std::int64_t{c.dt} + width) / (2 * width);
        tof = numbers_[static_cast<std::size_t>(bins_.tof_half + (a > b ? -bins : bins))];
    }
    list.put<3>({numbers_[first - first_bin_[type]], numbers_[second - first_bin_[other]], tof});
}

Varint EventEncoder::tof_of(std::int64_t ticks) const {
    const std::int64_t width = bins_.tof_bin_ticks;
    if (width == 0) return numbers_[0];
    const std::int64_t bins = (2 * std::abs(ticks) + width) / (2 * width);
    if (bins > bins_.tof_half) {
        throw petlm::BadInput(fmt::format("a triple has photons {} ticks apart, which its rules do not allow",
                                          std::abs(ticks)));
    }
    return numbers_[static_cast<std::size_t>(bins_.tof_half + (ticks < 0 ? -bins : bins))];
}

void EventEncoder::add(const gpu::Triple& t, std::vector<EventList>& lists) const {
    if (t.pair.kind != gpu::Kind::prompt || t.third != gpu::ThirdPhoton::coincident) return;
    check(t.pair);
    struct PhotonBin {
        std::uint32_t bin;
        std::int64_t arrival;
    };
    std::array<PhotonBin, 3> photons = {{{bins_.detection_bin(t.pair.crystal_a, t.pair.energy_a), 0},
                                         {bins_.detection_bin(t.pair.crystal_b, t.pair.energy_b), t.pair.dt},
                                         {bins_.gamma_bin(t.gamma_crystal), t.gamma_dt}}};
    std::stable_sort(photons.begin(), photons.end(),
                     [](const PhotonBin& a, const PhotonBin& b) { return a.bin > b.bin; });
    std::array<std::uint32_t, 3> type{};
    for (std::size_t k = 0; k < 3; ++k)
        type[k] = bins_.type_of_bin(photons[k].bin);
    const auto number = [&](std::size_t k) { return numbers_[photons[k].bin - first_bin_[type[k]]]; };
    const auto tof = [&](std::size_t k) { return tof_of(photons[0].arrival - photons[k].arrival); };
    const std::uint32_t of_types =
        type[0] * (type[0] + 1) * (type[0] + 2) / 6 + type[1] * (type[1] + 1) / 2 + type[2];
    lists[of_types].put<5>({number(0), number(1), number(2), tof(1), tof(2)});
}

}  // namespace petacq::petsird
