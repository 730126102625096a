#include "net/foreign/translator.hpp"

#include <cstring>

namespace petacq::net {

namespace {

using config::ByteOrder;
using config::LayoutSection;
using config::RollOver;

/// Puts fields where they stand in a frame of petacqd. Nothing branches on the version.
struct Placement {
    explicit Placement(FrameVersion version) : du_in_low(version == FrameVersion::one ? 0xF : 0) {}

    [[nodiscard]] FrameWords words(std::uint64_t bdm, std::uint64_t du, std::uint64_t x, std::uint64_t y,
                                   std::uint64_t energy) const {
        // The module is big-endian in bytes 0 and 1; that of version 1 has 8 bits, which leaves byte 0 to the
        // unit. The energy is big-endian in bytes 12 and 13.
        return {(du & du_in_low) | std::uint64_t{__builtin_bswap16(static_cast<std::uint16_t>(bdm))},
                x << 16 | y << 24 |
                    std::uint64_t{__builtin_bswap16(static_cast<std::uint16_t>(energy))} << 32 |
                    (du & ~du_in_low) << 56};
    }

    std::uint64_t du_in_low;  ///< its bits in byte 0 (version 1); the others are in byte 15
};

/// The fields of a section that has them, as they stand in a frame of petacqd.
template <ByteOrder Order>
FrameWords fields_of(const SectionPlan& s, FrameVersion version, const std::byte* section) {
    FrameWords words =
        Placement(version).words(s.bdm.of<Order>(section), s.du.of<Order>(section), s.x.of<Order>(section),
                                 s.y.of<Order>(section), s.energy.of<Order>(section));
    for (const LookupPlan& lookup : s.lookups) {
        const FrameWords& found = lookup.table[lookup.field.of<Order>(section)];
        words.low |= found.low;
        words.high |= found.high;
    }
    return words;
}

FrameWords fields_of(const SectionPlan& s, FrameVersion version, const std::byte* section) {
    return s.byte_order == ByteOrder::big ? fields_of<ByteOrder::big>(s, version, section)
                                          : fields_of<ByteOrder::little>(s, version, section);
}

FrameWords joined(FrameWords a, FrameWords b) {
    return {a.low | b.low, a.high | b.high};
}

}  // namespace

Translator::Translator(std::shared_ptr<ForeignFormat> format)
    : format_(std::move(format)),
      plan_(format_->plan),
      counters_(plan_.sequenced, plan_.time.period, plan_.time.counts_per_ns, format_->counter) {}

/// Calls each(header of the block or nullptr, first frame, number of frames) for each run of frames. False if
/// the sizes do not fit.
template <class Each>
bool Translator::each_block(const std::byte* data, std::size_t size, Each each) const {
    const std::size_t around = plan_.datagram.bytes + plan_.trailer_bytes;
    if (size < around) return false;
    const std::byte* at = data + plan_.datagram.bytes;
    std::size_t left = size - around;
    if (!plan_.has_blocks) {
        each(nullptr, at, left / plan_.frame.bytes);
        return left % plan_.frame.bytes == 0;
    }
    while (left != 0) {
        if (left < plan_.block.bytes) return false;
        const std::uint64_t frames = plan_.frames.of(at, plan_.block.byte_order);
        if (frames > (left - plan_.block.bytes) / plan_.frame.bytes) return false;
        const std::size_t bytes = plan_.block.bytes + frames * plan_.frame.bytes;
        each(at, at + plan_.block.bytes, static_cast<std::size_t>(frames));
        at += bytes;
        left -= bytes;
    }
    return true;
}

Malformed Translator::parse(const std::byte* data, std::size_t size, DatagramHeader& header,
                            std::size_t& frames) const {
    const SectionPlan& datagram = plan_.datagram;
    frames = 0;
    if (size < datagram.bytes + plan_.trailer_bytes || size == 0) return Malformed::too_short;
    if (!datagram.markers_match(data)) return Malformed::bad_magic;
    if (plan_.has_length && plan_.length.of(data, datagram.byte_order) != size) return Malformed::ragged;
    const bool fits =
        each_block(data, size, [&](const std::byte* /*block*/, const std::byte* first, std::size_t count) {
            frames += plan_.kinds ? used_frames(first, count) : count;
        });
    if (!fits) return Malformed::ragged;
    if (frames > max_foreign_frames) return Malformed::too_long;
    if (!plan_.sequenced) {
        const bool empty = size == datagram.bytes + plan_.trailer_bytes;
        return empty ? Malformed::too_short : Malformed::none;
    }
    header.source = static_cast<std::uint16_t>(plan_.source.of(data, datagram.byte_order));
    header.sequence = plan_.sequence.of(data, datagram.byte_order);
    const bool ends = plan_.has_end_of_stream &&
                      plan_.end_of_stream.field.of(data, datagram.byte_order) == plan_.end_of_stream.value;
    header.flags = ends ? flag_end_of_stream : 0;
    return Malformed::none;
}

std::uint64_t Translator::translate(const std::byte* data, std::size_t size, Endpoint sender,
                                    std::int64_t arrival_ns, DatagramHeader& header, std::byte* out) {
    if (plan_.sequenced)
        header.sequence = counters_.sequence(header.source, header.sequence, plan_.sequence_bits);
    const bool counts = plan_.time.roll_over == RollOver::count;
    const bool upper_in_datagram = plan_.time.upper_in == LayoutSection::datagram;
    const FrameWords base = joined(plan_.constants, fields_of(plan_.datagram, plan_.version, data));
    Window window;
    if (counts) {
        std::uint64_t count = 0;
        if (find_count(data, size, count))
            window = counters_.window(header.source, sender, count, arrival_ns);
    } else if (upper_in_datagram) {
        window = window_in(data, plan_.datagram.byte_order);
    }
    std::uint64_t lost = lost_in(plan_.datagram_loss, data, plan_.datagram.byte_order, header.source, sender);
    Last last;
    each_block(data, size, [&](const std::byte* block, const std::byte* first, std::size_t count) {
        FrameStretch piece{first, count, base, window};
        if (block != nullptr) {
            piece.base = joined(base, fields_of(plan_.block, plan_.version, block));
            if (!upper_in_datagram) piece.window = window_in(block, plan_.block.byte_order);
            lost += lost_in(plan_.block_loss, block, plan_.block.byte_order, header.source, sender);
        }
        Last of_piece;
        if (plan_.kinds) {
            of_piece = translate_kinds(piece, out);
        } else {
            of_piece = translate_run(piece, out);
            out += count * frame_bytes;
        }
        if (of_piece.good) last = of_piece;
    });
    if (counts && last.good) counters_.seen(header.source, sender, last.time, arrival_ns);
    return lost;
}

/// What a header says of lost data: 1 for its own, and the missing ones before it.
std::uint64_t Translator::lost_in(const LossPlan& plan, const std::byte* header, ByteOrder order,
                                  std::uint16_t id, Endpoint sender) {
    std::uint64_t lost = plan.has_flag && plan.flag.of(header, order) != 0 ? 1 : 0;
    if (plan.has_number)
        lost += counters_.missing(id, sender, plan.number.of(header, order), plan.number.mask);
    return lost;
}

KindsPlan::Kind Translator::kind_of(const std::byte* frame) const {
    return plan_.kinds->of[plan_.kinds->field.of(frame, plan_.frame.byte_order)];
}

/// Frames that are not ignored.
std::size_t Translator::used_frames(const std::byte* first, std::size_t count) const {
    std::size_t used = 0;
    for (std::size_t i = 0; i < count; ++i)
        used += kind_of(first + i * plan_.frame.bytes) != KindsPlan::Kind::ignored ? 1 : 0;
    return used;
}

/// Hits alone.
Translator::Last Translator::translate_run(const FrameStretch& piece, std::byte* out) const {
    return plan_.frame.byte_order == ByteOrder::big ? translate_piece<ByteOrder::big>(piece, out)
                                                    : translate_piece<ByteOrder::little>(piece, out);
}

/// Frames of all kinds. Moves `out` behind what it writes.
Translator::Last Translator::translate_kinds(const FrameStretch& piece, std::byte*& out) const {
    Last last;
    FrameStretch part = piece;
    for (std::size_t i = 0; i < piece.count; i += part.count) {
        part.frames = piece.frames + i * plan_.frame.bytes;
        const KindsPlan::Kind kind = kind_of(part.frames);
        part.count = 1;
        while (i + part.count < piece.count &&
               kind_of(part.frames + part.count * plan_.frame.bytes) == kind && kind == KindsPlan::Kind::hit)
            ++part.count;
        if (kind == KindsPlan::Kind::ignored) continue;
        Last of_part;
        if (kind == KindsPlan::Kind::hit) {
            of_part = translate_run(part, out);
        } else if (kind == KindsPlan::Kind::tag) {
            of_part = translate_tag(part, out);
        } else {
            std::memcpy(out, &plan_.bad_marker, sizeof plan_.bad_marker);
        }
        if (of_part.good) last = of_part;
        out += part.count * frame_bytes;
    }
    return last;
}

Translator::Last Translator::translate_tag(const FrameStretch& piece, std::byte* out) const {
    const KindsPlan& kinds = *plan_.kinds;
    const TimePlan& time = plan_.time;
    const ByteOrder order = plan_.frame.byte_order;
    std::uint64_t counts = kinds.counter.of(piece.frames, order);
    counts += counts < piece.window.threshold ? time.period : 0;
    if (time.roll_over == RollOver::upper && time.upper_in == LayoutSection::frame)
        counts += time.upper.of(piece.frames, order) * time.period;
    counts += piece.window.base;
    const auto ticks = static_cast<std::uint64_t>(static_cast<unsigned __int128>(counts) *
                                                  time.scale.numerator / time.scale.denominator);
    FrameWords words = plan_.tag;
    for (const LookupPlan* lookup : {&kinds.channel, &kinds.kind})
        words = joined(words, lookup->table[lookup->field.of(piece.frames, order)]);
    const std::uint64_t swapped = swap_bytes(ticks);
    words.low |= swapped << 16;
    words.high |= swapped >> 48;
    if (!kinds.value.parts.empty()) {
        const auto value = static_cast<std::uint32_t>(kinds.value.of(piece.frames, order));
        words.high |= std::uint64_t{__builtin_bswap32(value)} << 16;
    }
    std::memcpy(out, &words, sizeof words);
    return {counts, true};
}

/// The window of times that a header with `upper` gives.
Window Translator::window_in(const std::byte* header, ByteOrder order) const {
    const TimePlan& time = plan_.time;
    if (time.upper_in == LayoutSection::frame) return {};
    if (time.roll_over == RollOver::near) return {time.upper.of(header, order), time.period};
    Window window;
    if (time.roll_over == RollOver::upper) window.base = time.upper.of(header, order) * time.period;
    return window;
}

/// The counter in the first frame whose markers match. False if there is none.
bool Translator::find_count(const std::byte* data, std::size_t size, std::uint64_t& count) const {
    bool found = false;
    each_block(data, size, [&](const std::byte* /*block*/, const std::byte* frame, std::size_t frames) {
        for (std::size_t i = 0; i < frames && !found; ++i, frame += plan_.frame.bytes) {
            const bool tag = plan_.kinds && kind_of(frame) == KindsPlan::Kind::tag;
            const bool hit = !plan_.kinds || kind_of(frame) == KindsPlan::Kind::hit;
            found = tag || (hit && plan_.frame.markers_match(frame));
            if (!found) continue;
            count = (tag ? plan_.kinds->counter : plan_.time.counter).of(frame, plan_.frame.byte_order);
        }
    });
    return found;
}

template <ByteOrder Order>
Translator::Last Translator::translate_piece(const FrameStretch& piece, std::byte* out) const {
    const bool divided = plan_.time.scale.denominator != 1;
    if (plan_.time.roll_over == RollOver::upper && plan_.time.upper_in == LayoutSection::frame) {
        return divided ? translate_frames<Order, false, true, true>(piece, out)
                       : translate_frames<Order, false, true, false>(piece, out);
    }
    if (divided) return translate_frames<Order, false, false, true>(piece, out);
    // All fields of a short frame are loaded at once.
    return plan_.frame.bytes <= sizeof(std::uint64_t)
               ? translate_frames<Order, true, false, false>(piece, out)
               : translate_frames<Order, false, false, false>(piece, out);
}

template <ByteOrder Order, bool OneWord, bool FrameUpper, bool Divided>
Translator::Last Translator::translate_frames(const FrameStretch& piece, std::byte* out) const {
    // Copies: the compiler cannot know that what is written does not change the plan.
    const SectionPlan& frame_plan = plan_.frame;
    const FieldPlan bdm = frame_plan.bdm, du = frame_plan.du, x = frame_plan.x, y = frame_plan.y;
    const FieldPlan energy_plan = frame_plan.energy;
    const Placement placement(plan_.version);
    const std::size_t stride = frame_plan.bytes;
    const MarkerPlan* const markers = frame_plan.markers.data();
    const std::size_t marker_count = frame_plan.markers.size();
    const LookupPlan* const lookups = frame_plan.lookups.data();
    const std::size_t lookup_count = frame_plan.lookups.size();
    const JoinedPlan::FieldPart* const parts = plan_.time.counter.parts.data();
    const std::size_t part_count = plan_.time.counter.parts.size();
    const std::uint64_t flip = plan_.time.counter.flip;
    const FrameWords bad_marker = plan_.bad_marker;
    const ScalePlan scale = plan_.time.scale;
    const std::uint64_t period = plan_.time.period;
    const std::uint64_t threshold = piece.window.threshold;
    // Ticks at the base of the window, and what was cut off, so that each frame only adds its own counts.
    const auto base_parts = static_cast<unsigned __int128>(piece.window.base) * scale.numerator;
    const auto base_ticks = static_cast<std::uint64_t>(base_parts / scale.denominator);
    const auto rest = static_cast<std::uint64_t>(base_parts % scale.denominator);

    Last last;
    const std::byte* frame = piece.frames;
    for (std::size_t i = 0; i < piece.count; ++i, frame += stride, out += frame_bytes) {
        const std::uint64_t word = OneWord ? load_word<Order>(frame) : 0;
        const auto get = [&](const FieldPlan& field) {
            return OneWord ? field.in(word) : field.of<Order>(frame);
        };
        FrameWords words =
            joined(piece.base, placement.words(get(bdm), get(du), get(x), get(y), get(energy_plan)));
        for (std::size_t k = 0; k < lookup_count; ++k) {
            const FrameWords& found = lookups[k].table[get(lookups[k].field)];
            words.low |= found.low;
            words.high |= found.high;
        }
        std::uint64_t wrong = words.high & LayoutPlan::no_address_high;
        for (std::size_t k = 0; k < marker_count; ++k)
            wrong |= get(markers[k].field) ^ markers[k].value;

        std::uint64_t counts = get(parts[0].field);
        for (std::size_t k = 1; k < part_count; ++k)
            counts = counts << parts[k].bits | get(parts[k].field);
        counts ^= flip;
        counts += counts < threshold ? period : 0;
        if constexpr (FrameUpper) counts += plan_.time.upper.of<Order>(frame) * period;
        std::uint64_t ticks = counts * scale.numerator;
        if constexpr (Divided) {
            ticks = static_cast<std::uint64_t>(
                        static_cast<unsigned __int128>(ticks + rest) * scale.reciprocal >> 64) >>
                    scale.shift;
        }
        // The time is big-endian in bytes 2 to 9.
        const std::uint64_t time = swap_bytes(base_ticks + ticks);
        words.low |= time << 16;
        words.high |= time >> 48;
        if (wrong != 0) {
            words = bad_marker;
        } else {
            last = {piece.window.base + counts, true};
        }
        std::memcpy(out, &words, sizeof words);
    }
    return last;
}

}  // namespace petacq::net
