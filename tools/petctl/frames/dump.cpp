#include "tools/petctl/frames/dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "daemon/system/quantity_text.hpp"

namespace petacq::petctl {

using net::Malformed;
using nlohmann::json;

namespace {

constexpr std::size_t max_sent_bytes = 144;  // of a foreign datagram that are shown

std::string hexadecimal_of(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes)
        text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
    return text;
}

std::string why_malformed(Malformed malformed, const BoardFormat& format, std::size_t bytes,
                          std::span<const std::byte> head) {
    const bool foreign = !format.layout.empty();
    const auto beginning = [&](std::size_t from, std::size_t to) {
        return hexadecimal_of(head.subspan(std::min(from, head.size()),
                                           std::min(to, head.size()) - std::min(from, head.size())));
    };
    switch (malformed) {
        case Malformed::none:
            return "";
        case Malformed::too_short:
            return foreign ? "too short for the headers of the layout"
                           : fmt::format("too short: expected at least {} bytes", net::frame_bytes);
        case Malformed::too_long:
            return foreign ? "more frames than a datagram of petacqd holds"
                           : fmt::format("too long: UDP carries at most {} bytes", net::max_datagram_bytes);
        case Malformed::bad_magic:
            return foreign ? "the markers of its header do not fit the layout"
                           : "it begins with " + beginning(0, 4) + ", expected 50 45 54 46 (PETF)";
        case Malformed::bad_version:
            return fmt::format("version {}, expected {}", std::to_integer<unsigned>(head[4]),
                               static_cast<unsigned>(format.check.version));
        case Malformed::ragged:
            return foreign ? "its size or its blocks do not fit the layout"
                           : fmt::format("{} bytes behind the last whole frame", bytes % net::frame_bytes);
    }
    return "";
}

}  // namespace

std::string why_invalid(const net::FrameCheck& check, const net::Modules& modules, const std::byte* frame) {
    if (check.valid(frame, modules)) return "";
    const net::Frame f = net::decode_frame(frame, check.version);
    std::string why;
    const auto add = [&](const std::string& text) { why += (why.empty() ? "" : ", ") + text; };
    if (f.head_marker != check.head_marker)
        add(fmt::format("head marker {}, expected {} ({} for tags)", f.head_marker, check.head_marker,
                        check.tag_marker));
    if (check.version == net::FrameVersion::one && f.tail_marker != check.tail_marker)
        add(fmt::format("tail marker {}, expected {}", f.tail_marker, check.tail_marker));
    if (!why.empty()) return why;
    const auto limit = [&](const char* name, unsigned value, unsigned count) {
        if (value >= count) add(fmt::format("{} {}, expected at most {}", name, value, count - 1));
    };
    limit("DU", f.du, check.du_count);
    limit("BDM", f.bdm, check.bdm_count);
    limit("x", f.x, check.position_size);
    limit("y", f.y, check.position_size);
    if (f.bdm < check.bdm_count && !modules[f.bdm])
        add(fmt::format("BDM {} does not belong to this source", f.bdm));
    return why;
}

Dump::Dump(const BoardFormat& format, const DumpOptions& options, bool translates)
    : format_(format), options_(options) {
    if (translates && !format.layout.empty()) translator_.emplace(format.foreign());
}

Dump::Content Dump::own_content(std::span<const std::byte> head, std::size_t bytes) const {
    Content content;
    net::DatagramHeader header;
    content.malformed =
        net::parse_datagram(format_.framing, format_.check.version, head.data(), bytes, header);
    if (content.malformed != Malformed::none) return content;
    const bool sequenced = format_.framing == config::Framing::sequenced;
    const std::size_t before = sequenced ? net::header_bytes : 0;
    if (sequenced) content.header = header;
    content.total = (bytes - before) / net::frame_bytes;
    const std::size_t known = (head.size() - before) / net::frame_bytes;
    content.frames = head.subspan(before, std::min(known, content.total) * net::frame_bytes);
    return content;
}

Dump::Content Dump::translated_content(const SeenDatagram& datagram) {
    Content content;
    sent_.assign(datagram.head.begin(), datagram.head.end());
    sent_.resize(sent_.size() + net::foreign_slack_bytes);
    net::DatagramHeader header;
    content.malformed = translator_->parse(sent_.data(), datagram.head.size(), header, content.total);
    if (content.malformed != Malformed::none) return content;
    translated_.resize(translator_->max_bytes(datagram.head.size()));
    translator_->translate(sent_.data(), datagram.head.size(), datagram.from, datagram.arrival_ns, header,
                           translated_.data());
    if (format_.framing == config::Framing::sequenced) content.header = header;
    content.frames = std::span(translated_).first(content.total * net::frame_bytes);
    return content;
}

Dump::Content Dump::content_of(const SeenDatagram& datagram) {
    if (format_.layout.empty() || datagram.is_own) return own_content(datagram.head, datagram.bytes);
    if (translator_) return translated_content(datagram);
    Content content;
    if (datagram.translated.size() < net::header_bytes) {
        content.untranslated = true;
        return content;
    }
    net::DatagramHeader header;
    net::parse_datagram(config::Framing::sequenced, format_.check.version, datagram.translated.data(),
                        datagram.translated.size(), header);
    if (format_.framing == config::Framing::sequenced) content.header = header;
    content.frames = datagram.translated.subspan(net::header_bytes);
    return content;
}

bool Dump::asked_for(const SeenDatagram& datagram, const Content& content) const {
    if (options_.id && (!content.header || content.header->source != *options_.id)) return false;
    if (options_.address != 0 && options_.address != datagram.from.address) return false;
    return options_.port == 0 || options_.port == datagram.from.port;
}

std::string Dump::head_line(const SeenDatagram& datagram, const Content& content,
                            const BoardFormat::KnownBoard* source) const {
    std::string text =
        fmt::format("datagram from {}: {}, {}", net::to_text(datagram.from), config::name_of(format_.framing),
                    daemon::counted_text(datagram.bytes, "byte"));
    if (content.header) {
        text += fmt::format(", source {}, sequence {}, flags 0x{:02x}{}", content.header->source,
                            content.header->sequence, content.header->flags,
                            (content.header->flags & net::flag_end_of_stream) != 0 ? " (end of stream)" : "");
    }
    if (content.untranslated)
        return text + ": not translated: malformed for the layout, or of an unknown source";
    if (content.malformed != Malformed::none)
        return text +
               ": malformed: " + why_malformed(content.malformed, format_, datagram.bytes, datagram.head);
    const std::size_t known = content.frames.size() / net::frame_bytes;
    if (content.total == known) {
        text += ", " + daemon::counted_text(known, "frame");
    } else if (content.total == 0) {
        text += fmt::format(", its first {}", daemon::counted_text(known, "frame"));
    } else {
        text += fmt::format(", {} frames, of which the first {} are known", content.total, known);
    }
    if (source == nullptr && !format_.sources.empty())
        text += ": of no listed source, so petacqd discards it";
    return text;
}

std::string Dump::frame_line(std::size_t number, const std::byte* frame, const net::Modules& modules,
                             bool own) const {
    const net::Frame hit = net::decode_frame(frame, format_.check.version);
    std::string text =
        fmt::format("{:5}  {}  time {} ticks ({:.9f} s)", number, hexadecimal_of({frame, net::frame_bytes}),
                    hit.time, static_cast<double>(hit.time) * format_.tick_ps * 1e-12);
    if (format_.check.valid_tag(frame)) {
        const net::TagFrame tag = net::decode_tag(frame, format_.check.version);
        return text + fmt::format("  tag: channel {}  kind {}  value {}", tag.channel, tag.kind, tag.value);
    }
    text += fmt::format("  energy {} ADC  DU {}  BDM {}  x {}  y {}  temperature {:.4f} degrees C",
                        hit.energy, hit.du, hit.bdm, hit.x, hit.y, hit.temperature_16ths / 16.0);
    const std::string why = fault_of(frame, modules, own);
    return why.empty() ? text : text + "  invalid: " + why;
}

std::string Dump::fault_of(const std::byte* frame, const net::Modules& modules, bool own) const {
    const std::string why = why_invalid(format_.check, modules, frame);
    const bool unfit = !why.empty() && !own && !format_.check.has_markers(frame);
    return unfit ? "its markers or its address do not fit the layout" : why;
}

json Dump::head_json(const SeenDatagram& datagram, const Content& content,
                     const BoardFormat::KnownBoard* source) const {
    json head = {{"from", net::to_text(datagram.from)},
                 {"framing", config::name_of(format_.framing)},
                 {"bytes", datagram.bytes},
                 {"listed", source != nullptr || format_.sources.empty()},
                 {"malformed", nullptr}};
    if (content.header) {
        head["source"] = content.header->source;
        head["sequence"] = content.header->sequence;
        head["flags"] = content.header->flags;
        head["end_of_stream"] = (content.header->flags & net::flag_end_of_stream) != 0;
    }
    if (content.untranslated) {
        head["malformed"] = "not translated: malformed for the layout, or of an unknown source";
    } else if (content.malformed != Malformed::none) {
        head["malformed"] = why_malformed(content.malformed, format_, datagram.bytes, datagram.head);
    }
    head["frames_sent"] = content.total == 0 ? json() : json(content.total);
    head["frames"] = json::array();
    return head;
}

json Dump::frame_json(std::size_t number, const std::byte* frame, const net::Modules& modules,
                      bool own) const {
    const net::Frame hit = net::decode_frame(frame, format_.check.version);
    json shown = {{"number", number},
                  {"bytes", hexadecimal_of({frame, net::frame_bytes})},
                  {"time", hit.time},
                  {"time_s", static_cast<double>(hit.time) * format_.tick_ps * 1e-12}};
    if (format_.check.valid_tag(frame)) {
        const net::TagFrame tag = net::decode_tag(frame, format_.check.version);
        shown["tag"] = {{"channel", tag.channel}, {"kind", tag.kind}, {"value", tag.value}};
        return shown;
    }
    const std::string why = fault_of(frame, modules, own);
    shown.update({{"energy", hit.energy},
                  {"du", hit.du},
                  {"bdm", hit.bdm},
                  {"x", hit.x},
                  {"y", hit.y},
                  {"temperature", hit.temperature_16ths / 16.0},
                  {"invalid", why.empty() ? json() : json(why)}});
    return shown;
}

std::string Dump::add(const SeenDatagram& datagram) {
    if (full()) return "";
    const Content content = content_of(datagram);
    if (!asked_for(datagram, content)) return "";
    ++datagrams_;
    const auto id = content.header ? std::optional<unsigned>(content.header->source) : std::nullopt;
    const BoardFormat::KnownBoard* const source = format_.source_of(datagram.from, id);
    const bool own = format_.layout.empty() || datagram.is_own;
    std::string text = options_.as_json ? "" : head_line(datagram, content, source) + "\n";
    json document = options_.as_json ? head_json(datagram, content, source) : json();
    if (!own || content.malformed != Malformed::none) {
        const auto shown = datagram.head.first(std::min(datagram.head.size(), max_sent_bytes));
        text += fmt::format("  as sent: {}{}\n", hexadecimal_of(shown),
                            shown.size() < datagram.bytes ? " ..." : "");
        document["sent"] = hexadecimal_of(shown);
    }
    const bool any = source == nullptr || source->modules.none();
    const net::Modules modules = any ? net::Modules::below(format_.check.bdm_count) : source->modules;
    const std::size_t known = content.frames.size() / net::frame_bytes;
    for (std::size_t i = 0; i < known && frames_ < options_.count; ++i, ++frames_) {
        const std::byte* const frame = content.frames.data() + i * net::frame_bytes;
        if (options_.as_json) {
            document["frames"].push_back(frame_json(i, frame, modules, own));
        } else {
            text += frame_line(i, frame, modules, own) + "\n";
        }
    }
    return options_.as_json ? document.dump() + "\n" : text;
}

}  // namespace petacq::petctl
