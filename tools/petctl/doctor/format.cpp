// Framing and markers.
#include <fmt/core.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/host/quantity_text.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using daemon::Level;

namespace {

std::string count_text(const Impression& seen) {
    return fmt::format("{} in {}; {} are needed to be sure: listen longer (--seconds)",
                       daemon::counted_text(seen.frames, "frame"),
                       daemon::counted_text(seen.samples, "sample"), frames_needed);
}

std::string in_words(const Markers& markers) {
    return fmt::format("head {}, tail {}", markers.head, markers.tail);
}

bool judge_framing(const Evidence& evidence, Diagnosis& diagnosis) {
    const Impression& seen = evidence.seen;
    if (seen.samples == 0) {
        diagnosis.add(Level::note, "framing", "no datagram was sampled");
        return false;
    }
    if (!seen.framing) {
        diagnosis.add(
            Level::problem, "framing", "these are not petacqd's frames: neither sequenced nor bare",
            "describe the format of the boards (receive.layout; reference/layout.md of the documentation)");
        return false;
    }
    const std::string expected = evidence.text("framing");
    const std::string found = config::name_of(*seen.framing);
    if (!seen.sure_of_framing()) {
        const bool fits = found == expected;
        diagnosis.add(fits ? Level::note : Level::warning, "framing",
                      fmt::format("may be {}{}: {}", found,
                                  fits ? ", as configured" : ", while " + expected + " is configured",
                                  count_text(seen)));
        return false;
    }
    if (found == expected) {
        diagnosis.add(Level::good, "framing", found + ", as configured");
        return false;
    }
    diagnosis.add(Level::problem, "framing",
                  fmt::format("{}, while {} is configured: the datagrams are malformed", found, expected),
                  "write the framing as below, and restart the daemon");
    diagnosis.write("petacqd.json", fmt::format(R"(    "receive": {{"framing": "{}"}})", found));
    return true;
}

void judge_markers(const Evidence& evidence, Diagnosis& diagnosis) {
    const Impression& seen = evidence.seen;
    if (!seen.framing) return;
    const Markers expected{static_cast<unsigned>(number(at(evidence.after, {"reception", "head_marker"}))),
                           static_cast<unsigned>(number(at(evidence.after, {"reception", "tail_marker"})))};
    if (seen.frames < frames_needed) {
        std::string found = seen.markers ? "may be " + in_words(*seen.markers) : "not judged";
        if (seen.markers == expected) found += ", as configured";
        return diagnosis.add(Level::note, "markers", found + ": " + count_text(seen));
    }
    if (!seen.markers) {
        return diagnosis.add(Level::problem, "markers",
                             "the frames have no constant markers: the boards may send another format",
                             "compare a frame with reference/wire-format.md of the documentation, or "
                             "describe the format (receive.layout)");
    }
    if (*seen.markers == expected)
        return diagnosis.add(Level::good, "markers", in_words(expected) + ", as configured");
    const bool swapped = *seen.markers == Markers{expected.tail, expected.head};
    diagnosis.add(Level::problem, "markers",
                  fmt::format("{}, while {} is configured{}", in_words(*seen.markers), in_words(expected),
                              swapped ? ": head and tail are swapped" : ""),
                  "correct the boards, or write the markers as below and restart the daemon");
    diagnosis.write("petacqd.json", fmt::format(R"(    "frame": {{"head_marker": {}, "tail_marker": {}}})",
                                                seen.markers->head, seen.markers->tail));
}

}  // namespace

bool judge_format(const Evidence& evidence, Diagnosis& diagnosis) {
    if (const std::string layout = evidence.text("layout"); !layout.empty()) {
        diagnosis.add(Level::note, "framing",
                      "frames of the layout " + layout + ": framing and markers are its own");
        return false;
    }
    const bool sources = judge_framing(evidence, diagnosis);
    judge_markers(evidence, diagnosis);
    return sources;
}

}  // namespace petacq::petctl
