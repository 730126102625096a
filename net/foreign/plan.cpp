#include "net/foreign/plan.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>

#include "config/base/error.hpp"

namespace petacq::net {

namespace {

using config::ByteOrder;
using config::LayoutField;
using config::LayoutSection;

// The arrival of a datagram tells the period of its frames: the period must be longer than what datagrams
// wait in boards, switches and sockets.
constexpr double min_period_ms = 20;

FieldPlan plan_of(const LayoutField& f, std::size_t section_bytes, ByteOrder order) {
    // The eight bytes stay within the section where it is long enough.
    const std::size_t last = section_bytes > 8 ? section_bytes - 8 : 0;
    FieldPlan p;
    p.offset = static_cast<std::uint32_t>(std::min<std::size_t>(f.offset, last));
    const std::uint32_t before = f.offset - p.offset;
    p.shift = f.low_bit + 8 * (order == ByteOrder::little ? before : 8 - before - f.bytes);
    p.mask = f.bits == 64 ? UINT64_MAX : (std::uint64_t{1} << f.bits) - 1;
    return p;
}

MarkerPlan plan_of(const config::LayoutMarker& m, const SectionPlan& section) {
    return {plan_of(m.field, section.bytes, section.byte_order), m.value};
}

JoinedPlan plan_of(const std::vector<LayoutField>& fields, const SectionPlan& section) {
    JoinedPlan joined;
    for (const LayoutField& f : fields)
        joined.parts.push_back({plan_of(f, section.bytes, section.byte_order), f.bits});
    return joined;
}

JoinedPlan plan_of(const std::vector<config::LayoutCounter>& fields, const SectionPlan& section) {
    JoinedPlan joined = plan_of(std::vector<LayoutField>(fields.begin(), fields.end()), section);
    for (const config::LayoutCounter& f : fields) {
        const std::uint64_t ones = f.bits == 64 ? UINT64_MAX : (std::uint64_t{1} << f.bits) - 1;
        joined.flip = (f.bits == 64 ? 0 : joined.flip << f.bits) | (f.invert ? ones : 0);
    }
    return joined;
}

LossPlan loss_of(const config::Layout::Section& s, const SectionPlan& section) {
    const auto plan = [&](const std::optional<LayoutField>& f) {
        return f ? plan_of(*f, section.bytes, section.byte_order) : FieldPlan();
    };
    return {s.lost.has_value(), s.number.has_value(), plan(s.lost), plan(s.number)};
}

/// A value of a tag: the words to add to it, for each value of the field.
LookupPlan tag_lookup(const config::LayoutValue& v, const SectionPlan& frame, FrameVersion version,
                      void (*set)(TagFrame&, std::uint32_t)) {
    LookupPlan lookup;
    if (!v.constant) lookup.field = plan_of(v.field, frame.bytes, frame.byte_order);
    for (std::uint64_t bits = 0; bits <= lookup.field.mask; ++bits) {
        TagFrame tag{0, 0, 0, 0, 0, 0};
        set(tag, v.of(bits).value_or(0));
        std::byte bytes[frame_bytes];
        encode_tag(tag, bytes, version);
        lookup.table.push_back(load_frame(bytes));
    }
    return lookup;
}

KindsPlan plan_of(const config::LayoutKinds& k, const SectionPlan& frame, FrameVersion version) {
    KindsPlan p;
    p.field = plan_of(k.field, frame.bytes, frame.byte_order);
    p.of = k.of;
    if (k.counter.empty()) return p;
    p.channel = tag_lookup(k.channel, frame, version,
                           [](TagFrame& t, std::uint32_t v) { t.channel = static_cast<std::uint8_t>(v); });
    p.kind = tag_lookup(k.kind, frame, version,
                        [](TagFrame& t, std::uint32_t v) { t.kind = static_cast<std::uint8_t>(v); });
    p.value = plan_of(k.value, frame);
    p.counter = plan_of(k.counter, frame);
    return p;
}

SectionPlan plan_of(const config::Layout::Section& s) {
    SectionPlan p;
    p.bytes = s.bytes;
    p.byte_order = s.byte_order;
    for (const config::LayoutMarker& m : s.markers)
        p.markers.push_back(plan_of(m, p));
    return p;
}

/// The words of a frame that is 0 but for what `set` sets.
FrameWords words_of(FrameVersion version, const std::function<void(Frame&)>& set) {
    Frame frame{};
    set(frame);
    std::byte bytes[frame_bytes];
    encode_frame(frame, bytes, version);
    return load_frame(bytes);
}

void add(FrameWords& to, FrameWords words) {
    to.low |= words.low;
    to.high |= words.high;
}

std::uint8_t wrong_marker(const FrameCheck& frames) {
    std::uint8_t marker = 0;
    while (marker == frames.head_marker || marker == frames.tag_marker)
        ++marker;
    return marker;
}

/// Bits that make the address of a frame invalid, whatever bits its other fields add.
FrameWords no_address(const FrameCheck& frames) {
    return words_of(frames.version, [&](Frame& f) {
        const std::uint32_t most = config::max_bdm_count(frames.version);
        if (frames.bdm_count < most) {
            f.bdm = static_cast<std::uint16_t>(most - 1);
        } else if (frames.position_size < 256) {
            f.x = 255;
        } else if (frames.du_count < 16) {
            f.du = 15;
        } else {
            f.time = LayoutPlan::no_address_time;
        }
    });
}

class Planner {
  public:
    Planner(LayoutPlan& plan, const FrameCheck& frames)
        : plan_(plan), version_(frames.version), no_address_(no_address(frames)) {}

    void place(const config::LayoutValue& v, FieldPlan SectionPlan::*direct,
               const std::function<void(Frame&, std::uint32_t)>& set) {
        if (v.constant) {
            add(plan_.constants, words_of(version_, [&](Frame& f) { set(f, *v.constant); }));
            return;
        }
        SectionPlan& section = section_of(v.in);
        const FieldPlan field = plan_of(v.field, section.bytes, section.byte_order);
        if (v.is_plain()) {
            section.*direct = field;
            return;
        }
        fill(lookup_of(section, field), [&](std::uint64_t bits) {
            const std::optional<std::uint32_t> value = v.of(bits);
            return value ? words_of(version_, [&](Frame& f) { set(f, *value); }) : no_address_;
        });
    }

    void place(const config::LayoutTemperature& t) {
        const auto words = [&](std::uint64_t bits) {
            return words_of(version_, [&](Frame& f) { f.temperature_16ths = t.of(bits); });
        };
        if (t.constant) {
            add(plan_.constants, words(0));
            return;
        }
        SectionPlan& section = section_of(t.in);
        fill(lookup_of(section, plan_of(t.field, section.bytes, section.byte_order)), words);
    }

  private:
    SectionPlan& section_of(LayoutSection in) {
        if (in == LayoutSection::datagram) return plan_.datagram;
        return in == LayoutSection::block ? plan_.block : plan_.frame;
    }

    /// Fields of a frame that follow from the same bits share a table.
    static LookupPlan& lookup_of(SectionPlan& section, const FieldPlan& field) {
        for (LookupPlan& lookup : section.lookups) {
            const FieldPlan& other = lookup.field;
            if (other.offset == field.offset && other.shift == field.shift && other.mask == field.mask)
                return lookup;
        }
        section.lookups.push_back({field, std::vector<FrameWords>(field.mask + 1)});
        return section.lookups.back();
    }

    static void fill(LookupPlan& lookup, const std::function<FrameWords(std::uint64_t)>& of) {
        for (std::uint64_t bits = 0; bits < lookup.table.size(); ++bits)
            add(lookup.table[bits], of(bits));
    }

    LayoutPlan& plan_;
    const FrameVersion version_;
    const FrameWords no_address_;
};

ScalePlan scale_of(const config::LayoutTime& t) {
    ScalePlan s;
    s.numerator = t.numerator;
    s.denominator = t.denominator;
    if (t.denominator == 1) return s;
    const auto log = static_cast<unsigned>(std::bit_width(t.denominator - 1));
    const auto power = static_cast<unsigned __int128>(1) << (63 + log);
    s.reciprocal = static_cast<std::uint64_t>((power + t.denominator - 1) / t.denominator);
    s.shift = log - 1;
    return s;
}

void check_period(const config::LayoutTime& t, double counts_per_ns) {
    if (t.roll_over != config::RollOver::count) return;
    const double ms = static_cast<double>(t.period) / counts_per_ns * 1e-6;
    if (ms >= min_period_ms) return;
    throw config::Error("/time/roll_over: expected a period of at least " +
                        std::to_string(static_cast<int>(min_period_ms)) +
                        " ms to count the roll-overs of, found " + std::to_string(ms) + " ms");
}

}  // namespace

LayoutPlan::LayoutPlan(const config::Layout& l, const FrameCheck& check, double tick_ps)
    : datagram(plan_of(l.datagram)),
      block(plan_of(l.block)),
      frame(plan_of(l.frame)),
      trailer_bytes(l.trailer_bytes),
      has_blocks(l.block.bytes != 0),
      sequenced(l.sequence.has_value()),
      has_length(l.length.has_value()),
      has_end_of_stream(l.end_of_stream.has_value()),
      version(check.version) {
    const auto in_datagram = [&](const LayoutField& f) {
        return plan_of(f, datagram.bytes, datagram.byte_order);
    };
    if (l.length) length = in_datagram(*l.length);
    if (l.end_of_stream) end_of_stream = plan_of(*l.end_of_stream, datagram);
    if (l.sequence) {
        source = in_datagram(*l.source);
        sequence = in_datagram(*l.sequence);
        sequence_bits = l.sequence->bits;
    }
    if (has_blocks) frames = plan_of(l.frames, block.bytes, block.byte_order);
    datagram_loss = loss_of(l.datagram, datagram);
    block_loss = loss_of(l.block, block);
    if (l.kinds) {
        kinds = plan_of(*l.kinds, frame, check.version);
        std::byte bytes[frame_bytes];
        encode_tag({check.tag_marker, 0, 0, 0, 0, check.tail_marker}, bytes, check.version);
        tag = load_frame(bytes);
    }

    constants = words_of(check.version, [&](Frame& f) {
        f.head_marker = check.head_marker;
        f.tail_marker = check.tail_marker;
    });
    bad_marker = words_of(check.version, [&](Frame& f) {
        f.head_marker = wrong_marker(check);
        f.tail_marker = check.tail_marker;
    });
    Planner planner(*this, check);
    planner.place(l.bdm, &SectionPlan::bdm,
                  [](Frame& f, std::uint32_t v) { f.bdm = static_cast<std::uint16_t>(v); });
    planner.place(l.du, &SectionPlan::du,
                  [](Frame& f, std::uint32_t v) { f.du = static_cast<std::uint8_t>(v); });
    planner.place(l.x, &SectionPlan::x,
                  [](Frame& f, std::uint32_t v) { f.x = static_cast<std::uint8_t>(v); });
    planner.place(l.y, &SectionPlan::y,
                  [](Frame& f, std::uint32_t v) { f.y = static_cast<std::uint8_t>(v); });
    planner.place(l.energy, &SectionPlan::energy,
                  [](Frame& f, std::uint32_t v) { f.energy = static_cast<std::uint16_t>(v); });
    planner.place(l.temperature);

    time.counter = plan_of(l.time.counter, frame);
    const SectionPlan& upper_in = l.time.upper_in == LayoutSection::datagram ? datagram
                                  : l.time.upper_in == LayoutSection::block  ? block
                                                                             : frame;
    time.upper = plan_of(l.time.upper, upper_in);
    time.upper_in = l.time.upper_in;
    time.roll_over = l.time.roll_over;
    time.period = l.time.period;
    time.scale = scale_of(l.time);
    time.counts_per_ns =
        1e3 / tick_ps * static_cast<double>(l.time.denominator) / static_cast<double>(l.time.numerator);
    check_period(l.time, time.counts_per_ns);
}

}  // namespace petacq::net
