#include "tools/petlm/plot/detector_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <system_error>

#include "config/base/error.hpp"
#include "daemon/reference/recorded_detector.hpp"
#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

/// As health does.
constexpr double longest_gap_s = 5;

void add(std::vector<DetectorFinding>& findings, const daemon::DetectorFault& fault, double until_s) {
    const auto same = std::find_if(findings.rbegin(), findings.rend(), [&](const DetectorFinding& f) {
        return f.fault.kind == fault.kind && f.fault.bdm == fault.bdm;
    });
    if (same == findings.rend() || fault.since_s - same->until_s >= longest_gap_s) {
        findings.push_back({fault, until_s});
        return;
    }
    same->until_s = until_s;
    if (std::abs(fault.size) <= std::abs(same->fault.size)) return;
    same->fault.size = fault.size;
    same->fault.part = fault.part;
}

/// The BDMs that were too hot, by number.
class Heat {
  public:
    explicit Heat(double limit_C) : limit_C_(limit_C) {}

    void add(const daemon::Second& second, double since_s, double until_s) {
        for (std::uint32_t bdm = 0; bdm < second.temperature_C.size(); ++bdm) {
            const double t = second.temperature_C[bdm];
            if (!(t > limit_C_)) continue;  // or unknown
            HotModule& hot = hot_.try_emplace(bdm, HotModule{bdm, t, since_s, until_s}).first->second;
            hot.highest_C = std::max(hot.highest_C, t);
            hot.until_s = until_s;
        }
    }
    [[nodiscard]] std::vector<HotModule> hottest_first() const {
        std::vector<HotModule> all;
        for (const auto& [bdm, hot] : hot_)
            all.push_back(hot);
        std::stable_sort(all.begin(), all.end(),
                         [](const HotModule& a, const HotModule& b) { return a.highest_C > b.highest_C; });
        return all;
    }

  private:
    double limit_C_;
    std::map<std::uint32_t, HotModule> hot_;
};

std::shared_ptr<const daemon::DetectorBaseline> reference_of(const std::filesystem::path& reference,
                                                             const daemon::RecordedDetector& recorded,
                                                             DetectorFindings& found) {
    try {
        auto baseline = daemon::load_reference(reference, recorded.configuration(), recorded.scanner());
        found.reference = baseline->sums.modules;
        found.reference_name = reference.string();
        return baseline;
    } catch (const config::Error& error) {
        found.trouble = std::string("the reference: ") + error.what();
    }
    return nullptr;
}

}  // namespace

std::vector<std::string> DetectorFindings::lines() const {
    std::vector<std::string> all;
    for (const DetectorFinding& one : findings)
        all.push_back(
            fmt::format("{}, from {:.1f} to {:.1f} s", one.fault.what(), one.fault.since_s, one.until_s));
    for (const HotModule& one : hot) {
        all.push_back(
            fmt::format("BDM {}: up to {:.1f} \u00b0C, above {:g} \u00b0C, between {:.1f} s and {:.1f} s",
                        one.bdm, one.highest_C, max_temperature_C, one.since_s, one.until_s));
    }
    return all;
}

std::optional<DetectorFindings> find_in_detector(const std::filesystem::path& run,
                                                 std::optional<std::filesystem::path> reference) {
    if (!std::filesystem::exists(run / daemon::seconds_file)) {
        if (reference) throw BadInput(run.string() + ": has no seconds.plm to compare with a reference");
        return std::nullopt;
    }
    DetectorFindings found;
    try {
        daemon::RecordedDetector recorded(run);
        if (!reference && !recorded.configuration().detector_reference.empty())
            reference = recorded.configuration().detector_reference;
        const auto with = reference ? reference_of(*reference, recorded, found) : nullptr;
        daemon::DetectorWatch watch(recorded.scanner().geometry, recorded.ticks_per_s(), with);
        const config::Geometry& geometry = recorded.scanner().geometry;
        const auto crystals = daemon::crystals_by_unit(geometry);
        auto sums = daemon::DetectorSums::none(geometry);
        found.tick_ns = recorded.scanner().tick_ps * 1e-3;
        found.max_temperature_C = recorded.configuration().health.max_temperature_C;
        Heat heat(found.max_temperature_C);
        std::optional<std::uint64_t> start;
        while (const auto second = recorded.next()) {
            if (!start) {
                start = second->range.start;
                watch.start_run(*start);
            }
            watch.observe(*second);
            sums += daemon::detector_sums(*second, geometry, crystals);
            const auto seconds_of = [&](std::uint64_t ticks) {
                return static_cast<double>(ticks - *start) / static_cast<double>(recorded.ticks_per_s());
            };
            const double until_s = seconds_of(second->range.end);
            heat.add(*second, seconds_of(second->range.start), until_s);
            for (const daemon::DetectorFault& fault : *watch.faults())
                add(found.findings, fault, until_s);
        }
        found.hot = heat.hottest_first();
        found.start = watch.baseline().sums.modules;
        found.run = sums.modules;
    } catch (const config::Error& error) {
        found.trouble = error.what();
    } catch (const std::system_error& error) {
        found.trouble = error.what();
    }
    return found;
}

}  // namespace petacq::petlm
