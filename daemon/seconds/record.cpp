#include "daemon/seconds/record.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

namespace petacq::daemon {

namespace {

using nlohmann::json;

constexpr std::array types{FieldType::u32, FieldType::u64, FieldType::i64, FieldType::f64};
constexpr std::array shapes{"", "modules", "pairs of modules", "crystals", "energies", "pairs of sectors"};

template <class Number>
constexpr FieldType type_of() {
    if constexpr (std::is_same_v<Number, double>) {
        return FieldType::f64;
    } else if constexpr (std::is_same_v<Number, std::int64_t>) {
        return FieldType::i64;
    } else if constexpr (std::is_same_v<Number, std::uint32_t>) {
        return FieldType::u32;
    } else {
        static_assert(std::is_same_v<Number, std::uint64_t>);
        return FieldType::u64;
    }
}

/// Sums over the crystals of each module.
std::vector<std::uint64_t> by_module(std::span<const std::uint32_t> crystals,
                                     std::span<const std::uint16_t> modules_of_crystals,
                                     std::size_t modules) {
    std::vector<std::uint64_t> sums(modules);
    for (std::size_t i = 0; i < crystals.size(); ++i)
        sums[modules_of_crystals[i]] += crystals[i];
    return sums;
}

/// Calls field(name, unit, help, value) for each field of a second: value is a number, or a span of numbers
/// by module, pair of modules or crystal. Numbers of 8 bytes come first, so that all are aligned.
template <class Field>
void for_each_field(const Second& s, std::span<const std::uint16_t> modules_of_crystals,
                    const gpu::Sectors& sectors, bool gammas, Field field) {
    const std::size_t modules = sectors.bdm_count;
    const auto of_modules = [&](const char* name, const char* unit, const char* help, const auto& numbers) {
        assert(numbers.size() == modules);
        field(name, unit, help, FieldShape::by_module, std::span(numbers));
    };
    const auto of_crystals = [&](const char* name, const char* unit, const char* help, const auto& numbers) {
        assert(numbers.size() == modules_of_crystals.size());
        field(name, unit, help, FieldShape::by_crystal, std::span(numbers));
    };
    const auto number = [&](const char* name, const char* unit, const char* help, const auto& one) {
        field(name, unit, help, FieldShape::number, std::span(&one, 1));
    };
    const auto ends = [&](auto get) {
        std::vector<decltype(get(gpu::PromptEnds{}))> numbers;
        for (const gpu::PromptEnds& e : s.sums.modules)
            numbers.push_back(get(e));
        return numbers;
    };
    using Ends = gpu::PromptEnds;

    const std::uint64_t length = s.range.ticks();
    number("start", "ticks", "Start of the second.", s.range.start);
    number("length", "ticks", "Its length; shorter than a second where the run starts or stops.", length);
#define PETACQ_FIELD(section, name, kind, unit, column, metric, help) \
    number(#name, unit, help, s.sums.counts.name);
    PETACQ_SINGLE_COUNTERS(PETACQ_FIELD)
#undef PETACQ_FIELD
    number("late", "frames", "Frames below the watermark.", s.late);
    number("lost", "datagrams", "Datagrams lost; NaN: unknown.", s.lost);
    number(
        "load", "",
        "L w: annihilations in a coincidence window, on average, besides that of its opener; NaN: unknown.",
        s.load);
    number("pile_up", "", "Factor for true pairs lost to multiples; NaN: unknown.", s.pile_up);
    number("delayeds_weight", "", "Random prompts for each delayed.", s.delayeds_weight);
    number("randoms", "pairs", "Random coincidences to be expected among the prompts; NaN: unknown.",
           s.randoms.total);
    if (gammas) {
        const std::uint64_t counted = s.sums.gammas.gammas();
        number("gammas", "gammas",
               "Gammas, each counted with its first triple, or once no later pair could use it.", counted);
        number("gammas_used", "gammas", "Those of them that are in a triple.", s.sums.gammas.used);
        number("triples", "triples", "Pairs of the second with a coincident gamma.", s.sums.gammas.triples);
        number("delayed_triples", "triples", "The same with a delayed gamma.", s.sums.gammas.delayed);
    }

    const auto singles = [&] {
        auto all = by_module(s.sums.unpaired, modules_of_crystals, modules);
        const auto grouped = by_module(s.sums.grouped, modules_of_crystals, modules);
        std::transform(all.begin(), all.end(), grouped.begin(), all.begin(), std::plus<>());
        return all;
    };
    of_modules("module_singles", "singles", "Decided singles.", singles());
    of_modules("module_prompts", "ends", "Ends of prompts.",
               by_module(s.sums.prompts, modules_of_crystals, modules));
    of_modules("module_dt", "ticks",
               "Sum over the ends of prompts: time of the other single less the time of this one.",
               ends([](const Ends& e) { return static_cast<std::int64_t>(e.dt); }));
    of_modules("module_abs_dt", "ticks", "Sum of its absolute value.",
               ends([](const Ends& e) { return e.abs_dt; }));
    of_modules("module_dt_squared", "ticks^2", "Sum of its square, modulo 2^64.",
               ends([](const Ends& e) { return e.dt_squared; }));
    of_modules("module_peak", "ends", "Ends of prompts with an energy within 20 % of 511 keV.",
               ends([](const Ends& e) { return e.peak; }));
    of_modules("module_peak_energy", "keV/16", "Sum of their energies.",
               ends([](const Ends& e) { return e.peak_energy; }));
    of_modules(
        "module_live", "",
        "Share of the second for which the data of the boards of the BDM arrived; lost datagrams, where the "
        "framing numbers them, and silent boards lower it. NaN: nobody has heard of the BDM.",
        s.live);
    of_modules("module_dead_time", "ticks", "Time in which the BDM was blind; NaN: unknown.", s.dead_time);
    of_modules("module_temperature", "degC", "Mean temperature; NaN: unknown.", s.temperature_C);

    const bool by_sector = sectors.shift != 0;
    const FieldShape pairs = by_sector ? FieldShape::by_sector_pair : FieldShape::by_module_pair;
    field("module_pairs", "prompts",
          by_sector ? "Prompts with the earlier single in sector a and the later one in b: [a][b]."
                    : "Prompts with the earlier single in BDM a and the later one in b: [a][b].",
          pairs, std::span(s.sums.module_pairs));
    field(
        "refused_pairs", "pairs",
        by_sector
            ? "Windows of two singles whose modules are too close or whose rings are too far apart, with the "
              "earlier single in sector a and the later one in b: [a][b]."
            : "Windows of two singles whose modules are too close or whose rings are too far apart, with the "
              "earlier single in BDM a and the later one in b: [a][b].",
        pairs, std::span(s.sums.refused_pairs));
    field("energies", "windows",
          "Under TakeWinnerIfIsGood, of one window in 16: at k x 64 + e those whose energy lies in bin e of "
          "16 keV; k = 0: "
          "of a single alone, k = 1 and 2: the lesser and the greater energy of two singles.",
          FieldShape::by_energy, std::span(s.sums.energies));
    of_crystals("crystal_unpaired", "singles", "Singles alone in their window.", s.sums.unpaired);
    of_crystals("crystal_grouped", "singles",
                "The other decided singles; all of them if no coincidences are looked for.", s.sums.grouped);
    of_crystals("crystal_prompts", "ends", "Ends of prompts.", s.sums.prompts);
    of_crystals("crystal_delayeds", "ends", "Ends of delayeds.", s.sums.delayeds);
}

/// A double would be cut off, and one that no integer holds is undefined.
std::size_t whole_number(const json& value) {
    if (!value.is_number_unsigned())
        throw std::invalid_argument("a field with a shape or an offset that is not a whole number");
    return value.get<std::size_t>();
}

FieldShape shape_of(const json& shape, std::size_t& count) {
    count = 1;
    if (shape.empty()) return FieldShape::number;
    if (shape.size() != 1) throw std::invalid_argument("a field with a shape of several dimensions");
    count = whole_number(shape.at(0));
    return FieldShape::by_crystal;
}

}  // namespace

const char* name_of(FieldType type) {
    constexpr std::array names{"<u4", "<u8", "<i8", "<f8"};
    return names.at(static_cast<std::size_t>(type));
}

std::size_t bytes_of(FieldType type) {
    return type == FieldType::u32 ? 4 : 8;
}

SecondRecord::SecondRecord(const config::Geometry& geometry, bool gammas)
    : gammas_(gammas),
      modules_of_crystals_(gpu::modules_of_crystals(geometry)),
      sectors_(gpu::Sectors::of(geometry)) {
    std::size_t offset = 0;
    const auto add = [&]<class Number, std::size_t extent>(const char* name, const char* unit,
                                                           const char* help, FieldShape shape,
                                                           std::span<const Number, extent> numbers) {
        fields_.push_back({name, type_of<Number>(), shape, numbers.size(), offset, unit, help});
        offset += numbers.size_bytes();
    };
    for_each_field(Second::none(geometry), modules_of_crystals_, sectors_, gammas_, add);
    bytes_ = static_cast<std::uint32_t>((offset + 63) / 64 * 64);
}

json SecondRecord::description() const {
    json all = json::array();
    for (const SecondField& f : fields_) {
        all.push_back({{"name", f.name},
                       {"type", name_of(f.type)},
                       {"shape", f.shape == FieldShape::number ? json::array() : json::array({f.count})},
                       {"of", shapes.at(static_cast<std::size_t>(f.shape))},
                       {"offset", f.offset},
                       {"unit", f.unit},
                       {"help", f.help}});
    }
    return all;
}

void SecondRecord::write(const Second& second, std::span<std::byte> record) const {
    assert(record.size() == bytes_);
    std::byte* at = record.data();
    const auto copy = [&](const char*, const char*, const char*, FieldShape, const auto& numbers) {
        std::memcpy(at, numbers.data(), numbers.size_bytes());
        at += numbers.size_bytes();
    };
    for_each_field(second, modules_of_crystals_, sectors_, gammas_, copy);
    std::fill(at, record.data() + record.size(), std::byte{0});
}

std::vector<SecondField> fields_of(const json& description, std::size_t record_bytes) {
    std::vector<SecondField> fields;
    try {
        for (const json& f : description) {
            SecondField field;
            const auto type = std::find_if(types.begin(), types.end(),
                                           [&](FieldType t) { return f.at("type") == name_of(t); });
            if (type == types.end()) continue;
            field.type = *type;
            field.name = f.at("name").get<std::string>();
            field.offset = whole_number(f.at("offset"));
            field.shape = shape_of(f.at("shape"), field.count);
            for (const FieldShape shape : {FieldShape::by_module, FieldShape::by_module_pair,
                                           FieldShape::by_energy, FieldShape::by_sector_pair}) {
                if (f.value("of", "") == shapes.at(static_cast<std::size_t>(shape))) field.shape = shape;
            }
            field.unit = f.value("unit", "");
            field.help = f.value("help", "");
            if (field.count == 0) throw std::invalid_argument("the field " + field.name + " has no numbers");
            if (field.count > record_bytes / bytes_of(field.type) ||
                field.offset > record_bytes - field.bytes())
                throw std::invalid_argument("the field " + field.name + " lies outside the record");
            fields.push_back(field);
        }
    } catch (const json::exception& error) {
        throw std::invalid_argument(std::string("fields: ") + error.what());
    }
    const auto leads = [&](std::size_t i, const char* name) {
        return fields.size() > i && fields[i].name == name && fields[i].type == FieldType::u64 &&
               fields[i].count == 1 && fields[i].offset == i * sizeof(std::uint64_t);
    };
    if (!leads(0, "start") || !leads(1, "length"))
        throw std::invalid_argument("the fields do not begin with start and length");
    return fields;
}

}  // namespace petacq::daemon
