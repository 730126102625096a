#include "tools/petlm/export/petsird/header.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/petlm/export/petsird/nuclide_codes.hpp"
#include "tools/petlm/export/petsird/schemas.hpp"

namespace petacq::petsird {
namespace {

constexpr const char* unknown_material = "crystals: not known";

/// How the file numbers what happens to groups of singles.
struct Policies {
    std::int64_t none = 0;
    std::int64_t reject_higher_multiples = 1;
    std::int64_t all_coincidences = 2;
    std::int64_t other = 4;
    std::int64_t other_triples = 2;
};
constexpr Policies policies_0_12{};
/// It says by flags what is not stored.
constexpr Policies policies_0_9{-1, 0, 1, 3, 1};

class HeaderWriter {
  public:
    explicit HeaderWriter(const HeaderFacts& facts)
        : facts_(facts), bins_(facts.bins), old_(facts.options.version == Version::v0_9_1) {
        for (const ModuleType& type : bins_.types)
            materials_.insert(type.material.value_or(unknown_material));
    }

    std::string write(std::vector<std::string>& not_held) {
        constexpr std::uint32_t format_of_yardl = 1;
        out_.bytes = "yardl";
        out_.bytes.append(reinterpret_cast<const char*>(&format_of_yardl), sizeof format_of_yardl);
        out_.text(schema_of(facts_.options.version));
        scanner(not_held);
        out_.flag(true);
        if (old_) {
            exam_0_9();
        } else {
            exam();
        }
        return std::move(out_.bytes);
    }

  private:
    // Scanner

    void scanner(std::vector<std::string>& not_held) {
        out_.text(facts_.efficiencies.scanner.name);
        geometry();
        out_.number(materials_.size());
        std::uint32_t id = 0;
        for (const std::string& name : materials_)
            out_.number(id++).text(name).f32(0).number(0).number(0);  // density, atoms, mass fractions
        out_.flag(false);                                             // alignment of the gantry
        if (!old_) out_.text("NONE");                                 // collimator
        tof();
        out_.number(bins_.type_count());
        for (std::uint32_t type = 0; type < bins_.type_count(); ++type)
            edges(bins_.energy_edges);
        out_.number(bins_.type_count());
        for (const ModuleType& type : bins_.types)
            out_.f32(facts_.options.energy_resolution.value_or(type.energy_resolution.value_or(0)));
        singles();
        policies();
        put_efficiencies(out_, facts_.efficiencies, bins_, facts_.options.version, not_held);
    }

    /// A box for each crystal. In their own coordinates modules face along x.
    void geometry() {
        constexpr std::array<std::array<int, 3>, 8> corners = {
            {{0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 0}, {1, 0, 0}, {1, 0, 1}, {1, 1, 1}, {1, 1, 0}}};
        out_.number(bins_.type_count());
        for (const ModuleType& type : bins_.types) {
            for (const auto& corner : corners)
                for (std::size_t axis = 0; axis < 3; ++axis)
                    out_.f32(corner[axis] * type.box_mm[axis]);
            const auto material = materials_.find(type.material.value_or(unknown_material));
            out_.number(static_cast<std::uint64_t>(std::distance(materials_.begin(), material)));
            out_.number(type.elements());
            for (const config::Vector3& at : type.corner_mm)
                matrix({1, 0, 0, at[0], 0, 1, 0, at[1], 0, 0, 1, at[2]});
            out_.number(0);  // elements that do not detect
            out_.number(type.modules());
            for (const Matrix& at : type.matrices)
                matrix(at);
        }
        out_.flag(false);  // volumes that do not detect
    }
    void matrix(const Matrix& values) {
        for (const double value : values)
            out_.f32(value);
    }
    void edges(std::span<const float> values) { out_.number(values.size()).f32s(values); }

    /// For pairs of types: of which the first is not the lower one, in 0.9.1 of all.
    template <class Put>
    void for_pairs_of_types(const Put& put) {
        out_.number(bins_.type_count());
        for (std::size_t a = 0; a < bins_.types.size(); ++a) {
            const std::size_t row = old_ ? bins_.types.size() : a + 1;
            out_.number(row);
            for (std::size_t b = 0; b < row; ++b)
                put(bins_.types[a], bins_.types[b]);
        }
    }

    void tof() {
        const double tick_mm = facts_.efficiencies.scanner.tick_ps * half_light_mm_per_ps;
        std::vector<float> of_bins;
        if (bins_.tof_bin_ticks == 0) {
            const double window_mm = (bins_.window_ticks + 0.5) * tick_mm;
            of_bins = {static_cast<float>(-window_mm), static_cast<float>(window_mm)};
        } else {
            for (std::uint32_t k = 0; k < 2 * bins_.tof_half + 2; ++k)
                of_bins.push_back(static_cast<float>((static_cast<double>(k) - bins_.tof_half - 0.5) *
                                                     (bins_.tof_bin_ticks * tick_mm)));
        }
        for_pairs_of_types([&](const ModuleType&, const ModuleType&) { edges(of_bins); });
        for_pairs_of_types([&](const ModuleType& a, const ModuleType& b) {
            double ps = facts_.options.tof_resolution_ps.value_or(0);
            if (!facts_.options.tof_resolution_ps && a.time_resolution_ps && b.time_resolution_ps)
                ps = std::hypot(*a.time_resolution_ps, *b.time_resolution_ps);
            out_.f32(ps * half_light_mm_per_ps);
        });
    }

    void singles() {
        constexpr std::int64_t of_all_crystals = 2;
        out_.integer(facts_.singles ? of_all_crystals : 0);
        if (!old_) out_.number(0);  // units of several modules
        out_.number(facts_.singles ? bins_.type_count() : 0);
        const std::array<float, 2> window = {bins_.lowest_keV(), bins_.highest_keV()};
        for (std::uint32_t type = 0; facts_.singles && type < bins_.type_count(); ++type)
            edges(window);
    }

    void policies() {
        const Policies& of = old_ ? policies_0_9 : policies_0_12;
        const config::Coincidence& rules = *facts_.coverage.rules.coincidence;
        const auto known = [&](const char* rule) {
            const auto& unknown = facts_.coverage.unknown;
            return std::find(unknown.begin(), unknown.end(), rule) == unknown.end();
        };
        std::int64_t policy = of.other;
        if (rules.window_mode == config::WindowMode::single && known("window_mode") &&
            known("multiples_policy")) {
            if (rules.multiples_policy == config::MultiplesPolicy::remove_multiples)
                policy = of.reject_higher_multiples;
            if (rules.multiples_policy == config::MultiplesPolicy::take_all_goods)
                policy = of.all_coincidences;
        }
        const bool triples = bins_.gamma_energy.has_value();
        out_.integer(0);  // singles
        out_.integer(policy);
        out_.integer(facts_.delayeds || old_ ? policy : of.none);
        // A pair may have several gammas, and is a prompt, too.
        out_.integer(triples ? of.other_triples : 0);
        out_.integer(0);  // groups of four
        if (!old_) return;
        for (const bool stored : {false, true, facts_.delayeds, triples, false})
            out_.flag(stored);
    }

    // Examination

    void time(std::chrono::system_clock::time_point at) {
        const auto ms = std::chrono::round<std::chrono::milliseconds>(at.time_since_epoch()).count();
        out_.integer(ms * 1'000'000);
    }
    void signals() {
        out_.number(facts_.signals.size());
        for (const Signal& signal : facts_.signals)
            out_.integer(signal.type).text(signal.description).number(signal.id);
    }

    void exam_0_9() {
        out_.flag(false).text(facts_.subject);  // name and id of the subject
        out_.text("").text("");                 // name and address of the institution
        out_.flag(!facts_.note.empty());
        if (!facts_.note.empty()) out_.text(facts_.note);
        out_.flag(facts_.start.has_value());
        if (facts_.start) time(*facts_.start);
        signals();
    }

    void exam() {
        out_.text("PT");
        for (int id = 0; id < 4; ++id)
            out_.text("");
        time(facts_.start.value_or(std::chrono::system_clock::time_point{}));  // of the study
        out_.flag(facts_.start.has_value());
        if (facts_.start) time(*facts_.start);
        out_.text(facts_.subject).text("").f32(0).f32(0).f32(0);  // id, sex, size, weight, body mass index
        for (int sequence = 0; sequence < 3; ++sequence)          // orientation
            code("", "", "");
        radiopharmaceuticals();
        signals();
    }
    /// Its value, its scheme, and what it means.
    void code(const std::string& value, const std::string& scheme, const std::string& meaning) {
        out_.text(value).text("").text(scheme).text("").text(meaning);
    }
    /// The dose is that at the start time: the activity at the time of the assay.
    void radiopharmaceuticals() {
        const auto& said = facts_.coverage.activity;
        out_.number(said ? 1 : 0);
        if (!said) return;
        const auto when = said->assay ? said->assay : facts_.start;
        out_.f32(0);  // volume
        for (int edge = 0; edge < 2; ++edge)
            time(when.value_or(std::chrono::system_clock::time_point{}));
        out_.f32(said->activity_MBq.value_or(0)).text("").f32(0);  // dose, event, specific activity
        code("", "", "");                                          // the radiopharmaceutical
        const NuclideCode of = code_of(said->nuclide);
        code(of.value, of.scheme, said->nuclide);
    }

    const HeaderFacts& facts_;
    const Bins& bins_;
    bool old_;
    std::set<std::string> materials_;
    Coded out_;
};

}  // namespace

std::string head_of(const HeaderFacts& facts, std::vector<std::string>& not_held) {
    return HeaderWriter(facts).write(not_held);
}

}  // namespace petacq::petsird
