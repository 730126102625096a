#include "tools/petlm/reconstruction/frames/automatic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::frames {
namespace {

constexpr double shortest_s = 5;
constexpr double longest_s = 600;
constexpr int of_each_length = 4;
constexpr double least_trues = 1e-3;
constexpr double share_at_injection = 0.1;

double trues_of(const std::vector<Second>& seconds) {
    double sum = 0;
    for (const Second& second : seconds)
        sum += second.trues;
    return sum;
}

std::vector<Second> seconds_of(const petlm::ExportSource& source) {
    const auto refuse = [&](const std::string& why) {
        throw petlm::UsageError("--schedule auto: " + source.target().string() + ": " + why +
                                "; expected the seconds of the run, or a schedule");
    };
    const daemon::Intervals& covered = *source.coverage().intervals;
    std::vector<Second> out;
    try {
        std::string why;
        const auto seconds = petlm::CoveredSeconds::of(source.target(), source.coverage(), why);
        if (!seconds) refuse(why);
        while (seconds->next()) {
            const daemon::SecondsReader& reader = seconds->reader();
            const daemon::SecondField* const prompts = reader.find("prompts");
            const daemon::SecondField* const randoms = reader.find("randoms");
            if (prompts == nullptr || randoms == nullptr)
                refuse("its seconds do not have prompts and randoms");
            const double trues = reader.values(*prompts).number() - reader.values(*randoms).number();
            const gpu::TickRange all{reader.start(), reader.start() + reader.length()};
            const gpu::TickRange times = covered.intersect(all).span();
            out.push_back({times, std::isnan(trues) ? 0 : std::max(trues, 0.0) * seconds->share()});
        }
    } catch (const std::invalid_argument& error) {
        refuse(error.what());
    } catch (const daemon::NotListMode& error) {
        refuse(error.what());
    }
    std::sort(out.begin(), out.end(),
              [](const Second& a, const Second& b) { return a.times.start < b.times.start; });
    return out;
}

}  // namespace

std::vector<gpu::TickRange> growing_frames(const std::vector<Second>& seconds, std::uint64_t first,
                                           double tick_ps) {
    const double least = least_trues * trues_of(seconds);
    std::vector<gpu::TickRange> out;
    double wanted_s = shortest_s;
    int of_length = 0;
    const auto length_s = [&](const gpu::TickRange& range) {
        return static_cast<double>(range.ticks()) * tick_ps * 1e-12;
    };
    std::optional<gpu::TickRange> open;
    double trues = 0;
    for (const Second& second : seconds) {
        if (second.times.end <= first) continue;
        if (!open) open = {std::max(second.times.start, first), 0};
        open->end = second.times.end;
        trues += second.trues;
        // A number of seconds is a whole number of ticks only roughly.
        if (length_s(*open) < wanted_s * (1 - 1e-9) || trues < least) continue;
        out.push_back(*open);
        open.reset();
        trues = 0;
        if (++of_length < of_each_length) continue;
        of_length = 0;
        wanted_s = std::min(2 * wanted_s, longest_s);
    }
    if (!open) return out;
    if (!out.empty() && length_s(*open) < 0.5 * wanted_s) {
        out.back().end = open->end;
    } else {
        out.push_back(*open);
    }
    return out;
}

std::optional<std::uint64_t> injection_in(const std::vector<Second>& seconds) {
    double most = 0;
    for (const Second& second : seconds)
        most = std::max(most, second.trues);
    const auto found = std::find_if(seconds.begin(), seconds.end(), [&](const Second& second) {
        return second.trues > share_at_injection * most;
    });
    if (found == seconds.begin() || found == seconds.end()) return std::nullopt;
    return found->times.start;
}

std::vector<gpu::TickRange> automatic_frames(const petlm::ExportSource& source, FramePlan& plan) {
    const std::vector<Second> seconds = seconds_of(source);
    const daemon::Coverage& coverage = source.coverage();
    const std::uint64_t begin = coverage.span().start;
    std::string where = "the injection, as stated";
    if (!plan.injection) {
        plan.injection = injection_in(seconds);
        where = plan.injection ? "the injection, the first second with a tenth of the largest rate of trues"
                               : "the start of the records; the injection was before";
    }
    std::vector<gpu::TickRange> out =
        growing_frames(seconds, plan.injection.value_or(begin), coverage.tick_ps);
    if (out.empty()) {
        throw petlm::UsageError("--schedule auto: " + source.target().string() +
                                " has no seconds after the injection; expected a schedule");
    }
    // Times without seconds belong to the frame after, and those at the end to the last.
    if (!plan.injection) out.front().start = begin;
    out.back().end = coverage.span().end;
    for (std::size_t i = 1; i < out.size(); ++i)
        out[i].start = out[i - 1].end;
    plan.sentences.push_back(fmt::format(
        "Frames by the trues of each second, from {:.6g} s after the start of the run on ({}): four each of "
        "5, "
        "10, 20 s and so on, up to 600 s, and longer until a frame has a thousandth of all trues.",
        coverage.since_reference_s(out.front().start), where));
    return out;
}

}  // namespace petacq::frames
