// The tags of a run: gates, cycles and positions.
// Input: a byte, then a file of tags or, if its second bit is set, tags (eight bytes each), of which the
// program makes such a file. The first bit says whether the checksums of the file are set right (plm.hpp).
#include "tools/petlm/records/tags.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tests/fuzz/base/plm.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/scanner_angle.hpp"

using namespace petacq;
using fuzz::require;

namespace {

std::vector<gpu::Tag> made_tags(fuzz::Input& input) {
    std::vector<gpu::Tag> tags;
    std::uint64_t time = 0;
    while (!input.empty() && tags.size() < 200) {
        gpu::Tag tag;
        // Short times, and such that cycles last weeks.
        const std::uint64_t step = input.take<std::uint16_t>();
        time += (step & 1) != 0 ? step >> 8 << (step >> 1 & 63) : step;
        if (time < step) break;
        tag.time = time;
        tag.value = input.take<std::uint16_t>();
        tag.source = input.take<std::uint8_t>() % 2;
        tag.channel = input.take<std::uint8_t>() % 4;
        tag.kind = input.take<std::uint8_t>() % 6;
        (void)input.take<std::uint8_t>();
        tags.push_back(tag);
    }
    std::sort(tags.begin(), tags.end(),
              [](const gpu::Tag& a, const gpu::Tag& b) { return !daemon::in_order(b, a); });
    return tags;
}

void write_tags(const std::filesystem::path& file, std::span<const gpu::Tag> tags) {
    std::filesystem::remove(file);
    petlm::RecordFile out(file, daemon::RecordKind::tags, 4096, {{"run_id", "r"}, {"tick_ps", 15.625}});
    out.append(tags);
    out.close();
}

/// The bin of a time, counted one by one.
void check_cycles(const petlm::Cycles& cycles, std::uint32_t bins) {
    const auto& accepted = cycles.accepted();
    std::uint64_t ticks = 0;
    for (std::size_t i = 0; i < accepted.size(); ++i) {
        require(accepted[i].start < accepted[i].end, "a cycle has a length");
        require(i == 0 || accepted[i - 1].end <= accepted[i].start, "cycles follow each other");
        ticks += accepted[i].ticks();
    }
    std::uint64_t live = 0;
    for (const std::uint64_t of_bin : cycles.live_ticks(bins))
        live += of_bin;
    require(live == ticks, "the bins of a cycle are all of it");
    std::vector<daemon::Intervals> times;
    for (std::uint32_t bin = 0; bin < bins; ++bin)
        times.push_back(cycles.times_of(bin, bins));
    for (const gpu::TickRange& cycle : accepted) {
        for (const std::uint64_t time : {cycle.start, cycle.start + cycle.ticks() / 3, cycle.end - 1}) {
            const auto bin = cycles.bin_of(time, bins);
            require(bin && *bin < bins && times[*bin].contains(time), "a time is in its bin");
        }
    }
    require(std::isfinite(cycles.mean_period()) && std::isfinite(cycles.spread_of_period()), "a period");
}

/// `choice`: of the number of bins, and of limits for cycles.
void use_channel(const std::filesystem::path& run, unsigned channel, unsigned choice) {
    const auto runs = petlm::tags_of(run, {}, channel);
    const petlm::CycleLimits limits =
        choice % 2 == 0 ? petlm::CycleLimits{} : petlm::CycleLimits{100, 100'000};
    check_cycles(petlm::Cycles(runs, limits), 1 + choice);
    try {
        const daemon::Intervals open = petlm::open_times(runs);
        require(open.intersect(open) == open, "times at which a gate is open");
    } catch (const petlm::BadInput&) {  // triggers only
    }
}

void use_positions(const std::filesystem::path& run, std::uint8_t channel) {
    const petlm::ScannerAngle angle(run, {}, {channel, 360, 0});
    std::uint64_t from = 0;
    const gpu::TickRange all{0, 1 << 16};
    std::size_t ranges = 0;
    angle.for_each_range(all, std::numbers::pi / 8, [&](gpu::TickRange range) {
        require(range.start == from && range.end > range.start, "ranges of one angle follow each other");
        from = range.end;
        ++ranges;
    });
    require(from == all.end, "ranges of one angle are all of the time");
    require(std::isfinite(angle.at(0)) && std::isfinite(angle.at(UINT64_MAX)), "an angle");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory run;
    const std::filesystem::path file = run.path() / "tags.plm";
    fuzz::Input input(data, size);
    const auto first = input.take<std::uint8_t>();
    const bool made = (first & 2) != 0;
    std::vector<gpu::Tag> tags;
    if (made) {
        tags = made_tags(input);
        write_tags(file, tags);
    } else {
        (void)run.write("tags.plm", fuzz::listmode_input(data, size));
    }
    const fuzz::MemoryBound bound((std::size_t{64} << 20) + 200 * size);
    try {
        std::size_t found = 0;
        for (const petlm::ChannelTags& channel : petlm::tags_by_channel(run.path())) {
            found += channel.tags.size();
            use_channel(run.path(), channel.channel, first / 4);
        }
        fuzz::accept();
        if (made) {
            const auto of_cycle = [](const gpu::Tag& tag) { return tag.kind <= 1; };
            require(found == static_cast<std::size_t>(std::count_if(tags.begin(), tags.end(), of_cycle)),
                    "every trigger and gate is read");
        }
        for (std::uint8_t channel = 0; channel < 4; ++channel) {
            try {
                use_positions(run.path(), channel);
            } catch (const petlm::BadInput&) {  // none
            }
        }
    } catch (const petlm::BadInput&) {
        require(!made, "a file that was just written is sound");
    } catch (const daemon::NotListMode&) {
        require(!made, "a file that was just written is list-mode");
    }
    return 0;
}
