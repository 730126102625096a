// Framing and markers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "daemon/system/quantity_text.hpp"
#include "net/wire.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;

namespace {

std::string count_text(const Impression& seen) {
    return fmt::format("{} in {}; {} are needed to be sure: listen longer (--seconds)",
                       daemon::counted_text(seen.frames, "frame"),
                       daemon::counted_text(seen.samples, "sample"), frames_needed);
}

std::string in_words(const Markers& markers, config::FrameVersion version) {
    const std::string head = fmt::format("head {}", markers.head);
    return version == config::FrameVersion::one ? head + fmt::format(", tail {}", markers.tail) : head;
}

constexpr std::size_t max_header_bytes = 32;  // that are printed

/// What the header should begin with, and what it begins with.
void judge_header(const Impression& seen, config::FrameVersion version, Diagnosis& diagnosis) {
    std::array<std::byte, net::header_bytes> own{};
    net::encode_header({}, own.data(), version);
    const auto magic = std::span(own).first(4);
    const auto& header = seen.strange_header;
    const std::string bytes = hexadecimal(std::span(header).first(std::min(header.size(), max_header_bytes)));
    const std::string where = fmt::format("{} before the first frame that are not petacqd's header: {}",
                                          daemon::counted_text(header.size(), "byte"), bytes);
    const bool magic_fits = header.size() >= 4 && std::equal(magic.begin(), magic.end(), header.begin());
    const bool reversed = header.size() >= 4 && std::equal(magic.rbegin(), magic.rend(), header.begin());
    const char* fix =
        "correct the header in the board (reference/wire-format.md of the documentation); a header that "
        "cannot "
        "be changed can be described: receive.layout";
    if (header.size() != net::header_bytes) {
        return diagnosis.add(
            Level::problem, "framing",
            fmt::format("{}; expected a header of {} bytes that begins with {} (PETF){}", where,
                        net::header_bytes, hexadecimal(magic),
                        magic_fits ? fmt::format(": it is {} bytes too {}",
                                                 header.size() > net::header_bytes
                                                     ? header.size() - net::header_bytes
                                                     : net::header_bytes - header.size(),
                                                 header.size() > net::header_bytes ? "long" : "short")
                                   : ""),
            fix);
    }
    if (!magic_fits) {
        return diagnosis.add(Level::problem, "framing",
                             fmt::format("{}; expected PETF: the magic number is {}, not {}{}", where,
                                         hexadecimal(std::span(header).first(4)), hexadecimal(magic),
                                         reversed ? ": its bytes are swapped, little-endian" : ""),
                             fix);
    }
    diagnosis.add(Level::problem, "framing",
                  fmt::format("{}; the version (byte 4) is {}, expected {}", where,
                              std::to_integer<unsigned>(header[4]), static_cast<unsigned>(version)),
                  fix);
}

/// Header, length and byte order of frames. Returns whether they are petacqd's.
bool judge_shape(const Evidence& evidence, Diagnosis& diagnosis) {
    const Impression& seen = evidence.seen;
    const Shape& shape = seen.shape;
    bool good = seen.known_header;
    if (!seen.known_header) judge_header(seen, evidence.expected.version, diagnosis);
    if (shape.period != net::frame_bytes) {
        good = false;
        diagnosis.add(Level::problem, "framing",
                      fmt::format("frames are {} bytes long, expected {}: each is followed by {} more",
                                  shape.period, net::frame_bytes, shape.period - net::frame_bytes),
                      "send frames of 16 bytes, or describe the format of the boards (receive.layout)");
    }
    if (shape.trailer != 0 && shape.period == net::frame_bytes) {
        good = false;
        diagnosis.add(Level::problem, "framing",
                      fmt::format("{} after the last frame of each datagram, expected none",
                                  daemon::counted_text(shape.trailer, "byte")),
                      "a checksum or padding? Leave it out, or describe the format (receive.layout)");
    }
    if (shape.order != FrameOrder::as_specified) {
        good = false;
        const auto group = static_cast<std::size_t>(shape.order);
        diagnosis.add(
            Level::problem, "framing",
            group == net::frame_bytes
                ? std::string("the 16 bytes of each frame are in reverse order, the last first")
                : fmt::format(
                      "the frames are sent as little-endian words of {} bytes: the bytes of each word "
                      "are in reverse order",
                      group),
            "send the head marker first and the most significant byte of each field first");
    }
    return good;
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
    if (!judge_shape(evidence, diagnosis)) return false;
    const std::string expected = config::name_of(evidence.expected.framing);
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
    const Markers expected = evidence.expected.markers;
    const config::FrameVersion version = evidence.expected.version;
    const bool has_tail = version == config::FrameVersion::one;
    if (seen.only_tags()) {
        return diagnosis.add(
            Level::problem, "markers",
            fmt::format("all {} sampled frames have head {}, which marks tags, and none is a hit (head {})",
                        seen.tags, evidence.expected.tag_marker, expected.head),
            fmt::format("if they are hits: set bits 4 to 7 of their {} byte to {}",
                        has_tail ? "first" : "last", expected.head));
    }
    if (seen.frames < frames_needed) {
        std::string found = seen.markers ? "may be " + in_words(*seen.markers, version) : "not judged";
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
        return diagnosis.add(Level::good, "markers", in_words(expected, version) + ", as configured");
    const bool swapped = *seen.markers == Markers{expected.tail, expected.head};
    diagnosis.add(Level::problem, "markers",
                  fmt::format("{}, while {} is configured{}", in_words(*seen.markers, version),
                              in_words(expected, version), swapped ? ": head and tail are swapped" : ""),
                  "correct the boards, or write the markers as below and restart the daemon");
    diagnosis.write("petacqd.json",
                    has_tail ? fmt::format(R"(    "frame": {{"head_marker": {}, "tail_marker": {}}})",
                                           seen.markers->head, seen.markers->tail)
                             : fmt::format(R"(    "frame": {{"head_marker": {}}})", seen.markers->head));
}

/// Samples as the daemon has translated them.
void judge_layout(const Evidence& evidence, const std::string& layout, Diagnosis& diagnosis) {
    const Impression& seen = evidence.seen;
    const char* fix = "compare the layout with a datagram, as tcpdump -x prints it";
    if (seen.samples == 0) return diagnosis.add(Level::note, "framing", "no datagram was sampled");
    if (2 * seen.not_translated > seen.samples) {
        return diagnosis.add(
            Level::problem, "framing",
            fmt::format(
                "{} of {} sampled datagrams do not fit the layout {}: size or markers of the datagram",
                seen.not_translated, seen.samples, layout),
            fix);
    }
    diagnosis.add(Level::good, "framing", "datagrams of the layout " + layout);
    if (seen.frames + seen.tags < frames_needed) {
        return diagnosis.add(Level::note, "markers", "not judged: " + count_text(seen));
    }
    if (seen.markers != evidence.expected.markers) {
        return diagnosis.add(Level::problem, "markers",
                             "most sampled frames do not have the markers of the layout", fix);
    }
    diagnosis.add(Level::good, "markers", "as the layout says");
}

}  // namespace

bool judge_format(const Evidence& evidence, Diagnosis& diagnosis) {
    if (const std::string layout = evidence.text("layout"); !layout.empty()) {
        judge_layout(evidence, layout, diagnosis);
        return false;
    }
    const bool sources = judge_framing(evidence, diagnosis);
    judge_markers(evidence, diagnosis);
    return sources;
}

}  // namespace petacq::petctl
