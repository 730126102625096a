#include "config/layout/layout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/json_schema.hpp"
#include "config/base/schemas.hpp"

namespace petacq::config {

using nlohmann::json;

namespace {

constexpr unsigned table_bits = 16;  // most bits of a value that is looked up

[[noreturn]] void reject(const std::string& path, const std::string& message) {
    throw Error(path + ": " + message);
}

std::uint64_t max_in(unsigned bits) {
    return bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
}

template <class Field>
unsigned bits_of(const std::vector<Field>& fields) {
    unsigned sum = 0;
    for (const Field& field : fields)
        sum += field.bits;
    return sum;
}

/// Reads the parts of a layout, and checks each against the size of its section.
class Reader {
  public:
    explicit Reader(Layout& layout) : layout_(layout) {}

    [[nodiscard]] LayoutField field(const json& j, LayoutSection in, const std::string& path) const {
        LayoutField f;
        j.at("offset").get_to(f.offset);
        j.at("bytes").get_to(f.bytes);
        j.at("low_bit").get_to(f.low_bit);
        const std::uint32_t word_bits = 8 * f.bytes;
        if (f.low_bit >= word_bits) {
            reject(path + "/low_bit", "expected less than the " + std::to_string(word_bits) +
                                          " bits of the word, found " + std::to_string(f.low_bit));
        }
        f.bits = j.at("bits").is_null() ? word_bits - f.low_bit : j.at("bits").get<std::uint32_t>();
        if (f.low_bit + f.bits > word_bits) {
            reject(path + "/bits", "expected at most " + std::to_string(word_bits - f.low_bit) +
                                       " from low_bit on in a word of " + std::to_string(f.bytes) +
                                       " bytes, found " + std::to_string(f.bits));
        }
        if (f.offset + f.bytes > bytes_of(in)) {
            reject(path, "expected a word within the " + std::to_string(bytes_of(in)) + " bytes of the " +
                             (in == LayoutSection::frame ? "frame" : std::string(name_of(in)) + " header") +
                             ", found one that ends at byte " + std::to_string(f.offset + f.bytes));
        }
        return f;
    }

    [[nodiscard]] std::vector<LayoutField> fields(const json& j, LayoutSection in,
                                                  const std::string& path) const {
        std::vector<LayoutField> all;
        for (std::size_t i = 0; i < j.size(); ++i)
            all.push_back(field(j[i], in, path + '/' + std::to_string(i)));
        if (bits_of(all) > 64)
            reject(path, "expected at most 64 bits in all, found " + std::to_string(bits_of(all)));
        return all;
    }

    [[nodiscard]] std::vector<LayoutCounter> counter(const json& j, const std::string& path) const {
        const std::vector<LayoutField> parts = fields(j, LayoutSection::frame, path);
        std::vector<LayoutCounter> all;
        for (std::size_t i = 0; i < parts.size(); ++i)
            all.push_back({parts[i], j[i].at("invert").get<bool>()});
        return all;
    }

    [[nodiscard]] std::optional<LayoutField> optional_field(
        const json& j, const std::string& path, LayoutSection in = LayoutSection::datagram) const {
        if (j.is_null()) return std::nullopt;
        return field(j, in, path);
    }

    /// Reads the fields in the header of a datagram or block that report lost data.
    void loss(const json& j, LayoutSection in, Layout::Section& section) const {
        const std::string path = '/' + std::string(name_of(in));
        section.lost = optional_field(j.at("lost"), path + "/lost", in);
        section.number = optional_field(j.at("number"), path + "/number", in);
    }

    [[nodiscard]] std::optional<LayoutKinds> kinds(const json& frame, unsigned counter_bits) const {
        const json& j = frame.at("kinds");
        const json& tag = frame.at("tag");
        const bool has_tags = !j.is_null() && !j.at("tags").empty();
        if (has_tags == tag.is_null()) {
            reject("/frame/tag", has_tags ? "missing; expected what the tags of /frame/kinds hold"
                                          : "expected values of tags in /frame/kinds/tags, found none");
        }
        if (j.is_null()) return std::nullopt;
        LayoutKinds k;
        k.field = field(j, LayoutSection::frame, "/frame/kinds");
        if (k.field.bits > 8)
            reject("/frame/kinds/bits", "expected at most 8, found " + std::to_string(k.field.bits));
        k.of.resize(max_in(k.field.bits) + 1, LayoutKinds::Kind::unknown);
        for (const auto& [name, kind] :
             {std::pair("hits", LayoutKinds::Kind::hit), std::pair("tags", LayoutKinds::Kind::tag),
              std::pair("ignore", LayoutKinds::Kind::ignored)})
            add_kind(j.at(name), kind, std::string("/frame/kinds/") + name, k);
        if (!has_tags) return k;
        k.channel = value(tag.at("channel"), 15, "/frame/tag/channel");
        k.kind = value(tag.at("kind"), 255, "/frame/tag/kind");
        k.value = fields(tag.at("value"), LayoutSection::frame, "/frame/tag/value");
        if (bits_of(k.value) > 32) {
            reject("/frame/tag/value",
                   "expected at most 32 bits in all, found " + std::to_string(bits_of(k.value)));
        }
        k.counter = counter(tag.at("counter"), "/frame/tag/counter");
        if (bits_of(k.counter) != counter_bits) {
            reject("/frame/tag/counter", "expected the " + std::to_string(counter_bits) +
                                             " bits of /time/counter, found " +
                                             std::to_string(bits_of(k.counter)));
        }
        for (const LayoutValue* v : {&k.channel, &k.kind}) {
            if (!v->constant && v->in != LayoutSection::frame)
                reject(v == &k.kind ? "/frame/tag/kind/in" : "/frame/tag/channel/in", "expected \"frame\"");
        }
        return k;
    }

    [[nodiscard]] LayoutMarker marker(const json& j, LayoutSection in, const std::string& path) const {
        LayoutMarker m{field(j, in, path), j.at("value").get<std::uint64_t>()};
        if (m.value > max_in(m.field.bits)) {
            reject(path + "/value", "expected a value of " + std::to_string(m.field.bits) + " bits, found " +
                                        std::to_string(m.value));
        }
        return m;
    }

    [[nodiscard]] std::vector<LayoutMarker> markers(const json& j, LayoutSection in,
                                                    const std::string& path) const {
        std::vector<LayoutMarker> all;
        for (std::size_t i = 0; i < j.size(); ++i)
            all.push_back(marker(j[i], in, path + '/' + std::to_string(i)));
        return all;
    }

    /// `most`: the largest value that a frame of petacqd can hold.
    [[nodiscard]] LayoutValue value(const json& j, std::uint32_t most, const std::string& path) const {
        LayoutValue v;
        if (j.is_number()) {
            v.constant = j.get<std::uint32_t>();
            check_most(*v.constant, most, path);
            return v;
        }
        v.in = from_name<LayoutSection>(j.at("in").get_ref<const std::string&>());
        v.field = field(j, v.in, path);
        for (std::size_t i = 0; i < j.at("pick").size(); ++i) {
            const json& p = j.at("pick")[i];
            v.pick.push_back({p.at("low_bit").get<std::uint32_t>(), p.at("bits").get<std::uint32_t>()});
            if (v.pick.back().low_bit + v.pick.back().bits > v.field.bits) {
                reject(path + "/pick/" + std::to_string(i),
                       "expected bits within the " + std::to_string(v.field.bits) + " of the field");
            }
        }
        if (!v.pick.empty() && v.bits() > table_bits)
            reject(path + "/pick", "expected at most 16 bits in all, found " + std::to_string(v.bits()));
        j.at("add").get_to(v.add);
        j.at("divide").get_to(v.divide);
        if (!j.at("modulo").is_null()) v.modulo = j.at("modulo").get<std::uint32_t>();
        for (const json& entry : j.at("table")) {
            auto& last = v.table.emplace_back();
            if (!entry.is_null()) last = entry.get<std::uint32_t>();
        }
        if (v.is_plain()) {
            if (max_in(v.field.bits) > most) {
                reject(path + "/bits", "expected at most " + std::to_string(std::bit_width(most)) +
                                           " bits without a table, found " + std::to_string(v.field.bits));
            }
            return v;
        }
        check_lookup(v.field, path);
        for (std::size_t i = 0; i < v.table.size(); ++i) {
            if (v.table[i]) check_most(*v.table[i], most, path + "/table/" + std::to_string(i));
        }
        if (v.table.empty()) {
            std::uint64_t largest = max_in(v.bits()) / v.divide;
            if (v.modulo) largest = std::min<std::uint64_t>(largest, *v.modulo - 1);
            if (largest > most) {
                reject(path, "expected values of at most " + std::to_string(most) + ", found up to " +
                                 std::to_string(largest) + " (modulo or a table limits them)");
            }
        }
        return v;
    }

    [[nodiscard]] LayoutTemperature temperature(const json& j, const std::string& path) const {
        LayoutTemperature t;
        if (j.is_number()) {
            t.constant = j.get<double>();
            return t;
        }
        t.in = from_name<LayoutSection>(j.at("in").get_ref<const std::string&>());
        t.field = field(j, t.in, path);
        check_lookup(t.field, path);
        j.at("signed").get_to(t.is_signed);
        j.at("degrees_per_count").get_to(t.degrees_per_count);
        j.at("degrees_at_zero").get_to(t.degrees_at_zero);
        return t;
    }

    [[nodiscard]] LayoutTime time(const json& j) const {
        LayoutTime t;
        t.counter = counter(j.at("counter"), "/time/counter");
        j.at("numerator").get_to(t.numerator);
        j.at("denominator").get_to(t.denominator);
        t.roll_over = from_name<RollOver>(j.at("roll_over").get_ref<const std::string&>());
        t.upper_in = from_name<LayoutSection>(j.at("upper_in").get_ref<const std::string&>());
        const std::uint64_t most = max_in(bits_of(t.counter));
        t.period = most + 1;  // 0 for 64 bits
        if (!j.at("period").is_null()) {
            t.period = j.at("period").get<std::uint64_t>();
            if (t.period - 1 > most) {
                reject("/time/period", "expected at most the " + std::to_string(most) +
                                           " counts that the counter can hold and one more, found " +
                                           std::to_string(t.period));
            }
        }
        const bool has_upper = t.roll_over == RollOver::upper || t.roll_over == RollOver::near;
        if (t.roll_over != RollOver::none && t.period == 0)
            reject("/time/roll_over", "expected \"none\" with a counter of 64 bits");
        if (has_upper == j.at("upper").empty()) {
            reject("/time/upper",
                   has_upper ? "expected one field or more with roll_over \"" +
                                   std::string(name_of(t.roll_over)) + '"'
                             : "expected none with roll_over \"" + std::string(name_of(t.roll_over)) + '"');
        }
        if (t.roll_over == RollOver::near && t.upper_in == LayoutSection::frame)
            reject("/time/upper_in", "expected \"datagram\" or \"block\" with roll_over \"near\"");
        t.upper = fields(j.at("upper"), t.upper_in, "/time/upper");
        check_arithmetic(t);
        return t;
    }

  private:
    [[nodiscard]] std::uint32_t bytes_of(LayoutSection in) const {
        if (in == LayoutSection::datagram) return layout_.datagram.bytes;
        return in == LayoutSection::block ? layout_.block.bytes : layout_.frame.bytes;
    }

    static void add_kind(const json& values, LayoutKinds::Kind kind, const std::string& path,
                         LayoutKinds& to) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto value = values[i].get<std::size_t>();
            if (value >= to.of.size()) {
                reject(path + '/' + std::to_string(i), "expected a value of " +
                                                           std::to_string(to.field.bits) + " bits, found " +
                                                           std::to_string(value));
            }
            if (to.of[value] != LayoutKinds::Kind::unknown)
                reject(path + '/' + std::to_string(i),
                       "expected each value once, found " + std::to_string(value) + " again");
            to.of[value] = kind;
        }
    }

    static void check_most(std::uint32_t value, std::uint32_t most, const std::string& path) {
        if (value > most)
            reject(path, "expected at most " + std::to_string(most) + ", found " + std::to_string(value));
    }

    static void check_lookup(const LayoutField& field, const std::string& path) {
        if (field.bits > table_bits) {
            reject(path + "/bits", "expected at most " + std::to_string(table_bits) +
                                       " bits for arithmetic or a table, found " +
                                       std::to_string(field.bits));
        }
    }

    /// With a denominator, a frame's counts times the numerator must stay below 2^62 (net/foreign/plan.hpp).
    static void check_arithmetic(const LayoutTime& t) {
        if (t.denominator == 1) return;
        unsigned bits = static_cast<unsigned>(std::bit_width(t.numerator)) + bits_of(t.counter) + 1;
        if (t.roll_over == RollOver::upper && t.upper_in == LayoutSection::frame) bits += bits_of(t.upper);
        bits = std::max(bits, static_cast<unsigned>(std::bit_width(t.denominator)));
        if (bits > 62) {
            reject("/time/denominator",
                   "expected 1, or a numerator and a counter of at most 61 bits together; "
                   "found " +
                       std::to_string(bits - 1));
        }
    }

    Layout& layout_;
};

const json& layout_schema() {
    static const json schema = json::parse(layout_schema_text());
    return schema;
}

}  // namespace

std::uint32_t LayoutValue::bits() const {
    if (pick.empty()) return field.bits;
    std::uint32_t sum = 0;
    for (const Bits& part : pick)
        sum += part.bits;
    return sum;
}

std::optional<std::uint32_t> LayoutValue::of(std::uint64_t word) const {
    if (constant) return constant;
    std::uint64_t picked = pick.empty() ? word : 0;
    for (const Bits& part : pick)
        picked = picked << part.bits | (word >> part.low_bit & max_in(part.bits));
    std::uint64_t v = ((picked + add) & max_in(bits())) / divide;
    if (modulo) v %= *modulo;
    if (table.empty()) return static_cast<std::uint32_t>(v);
    return v < table.size() ? table[v] : std::nullopt;
}

std::int16_t LayoutTemperature::of(std::uint64_t bits) const {
    auto count = static_cast<double>(bits);
    if (is_signed && (bits >> (field.bits - 1)) != 0) count -= std::ldexp(1.0, static_cast<int>(field.bits));
    const double degrees = constant ? *constant : degrees_at_zero + degrees_per_count * count;
    // The range of eight bits of whole degrees.
    return static_cast<std::int16_t>(std::lround(std::clamp(degrees * 16, -2048.0, 2047.0)));
}

Layout layout_from_json(const json& document, std::uint32_t max_bdm_count) {
    json full = document;
    apply_schema(layout_schema(), full);
    const json& datagram = full.at("datagram");
    const json& block = full.at("block");
    const json& frame = full.at("frame");
    const auto order = [](const json& section) {
        return from_name<ByteOrder>(section.at("byte_order").get_ref<const std::string&>());
    };

    Layout l;
    const Reader read(l);
    full.at("name").get_to(l.name);
    datagram.at("header_bytes").get_to(l.datagram.bytes);
    datagram.at("trailer_bytes").get_to(l.trailer_bytes);
    frame.at("bytes").get_to(l.frame.bytes);
    l.datagram.byte_order = order(datagram);
    l.frame.byte_order = order(frame);
    if (!block.is_null()) {
        block.at("header_bytes").get_to(l.block.bytes);
        l.block.byte_order = order(block);
        l.frames = read.field(block.at("frames"), LayoutSection::block, "/block/frames");
        read.loss(block, LayoutSection::block, l.block);
    }
    l.datagram.markers = read.markers(datagram.at("markers"), LayoutSection::datagram, "/datagram/markers");
    l.frame.markers = read.markers(frame.at("markers"), LayoutSection::frame, "/frame/markers");
    l.length = read.optional_field(datagram.at("length"), "/datagram/length");
    l.source = read.optional_field(datagram.at("source"), "/datagram/source");
    l.sequence = read.optional_field(datagram.at("sequence"), "/datagram/sequence");
    read.loss(datagram, LayoutSection::datagram, l.datagram);
    if (l.datagram.number && l.sequence)
        reject("/datagram/number", "expected null with a sequence number, which tells the same");
    if (l.datagram.number && l.block.number) reject("/block/number", "expected null with /datagram/number");
    if (l.source && l.source->bits > 16)
        reject("/datagram/source/bits", "expected at most 16, found " + std::to_string(l.source->bits));
    if (l.source.has_value() != l.sequence.has_value()) {
        reject(l.source ? "/datagram/sequence" : "/datagram/source",
               "missing; expected both a source and a sequence number, or neither");
    }
    if (!datagram.at("end_of_stream").is_null()) {
        l.end_of_stream =
            read.marker(datagram.at("end_of_stream"), LayoutSection::datagram, "/datagram/end_of_stream");
    }
    l.bdm = read.value(frame.at("bdm"), max_bdm_count - 1, "/frame/bdm");
    l.du = read.value(frame.at("du"), 15, "/frame/du");
    l.x = read.value(frame.at("x"), 255, "/frame/x");
    l.y = read.value(frame.at("y"), 255, "/frame/y");
    l.energy = read.value(frame.at("energy"), 65'535, "/frame/energy");
    l.temperature = read.temperature(frame.at("temperature"), "/frame/temperature");
    l.time = read.time(full.at("time"));
    l.kinds = read.kinds(frame, bits_of(l.time.counter));
    return l;
}

Layout load_layout(const std::filesystem::path& file, std::uint32_t max_bdm_count) {
    const json document = read_json_file(file);
    return naming_file(file, [&] { return layout_from_json(document, max_bdm_count); });
}

}  // namespace petacq::config
