#include "tools/petlm/plot/detector_findings.hpp"

#include <algorithm>
#include <cmath>
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
        std::optional<std::uint64_t> start;
        while (const auto second = recorded.next()) {
            if (!start) {
                start = second->range.start;
                watch.start_run(*start);
            }
            watch.observe(*second);
            sums += daemon::detector_sums(*second, geometry, crystals);
            const double until_s =
                static_cast<double>(second->range.end - *start) / static_cast<double>(recorded.ticks_per_s());
            for (const daemon::DetectorFault& fault : *watch.faults())
                add(found.findings, fault, until_s);
        }
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
