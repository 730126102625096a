// Singles, groups and coincidences of PETsys, binary (.ldat) and text. docs/reference/formats/petsys.md has
// the layout.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "config/base/ticks.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/byte_reader.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

/// What a file holds. Of a compact one, each photon has its hits behind their number.
enum class PetsysRecords { singles, groups, coincidences, compact_groups, compact_coincidences };

constexpr std::array<std::pair<const char*, PetsysRecords>, 5> petsys_words = {
    {{"singles", PetsysRecords::singles},
     {"groups", PetsysRecords::groups},
     {"coincidences", PetsysRecords::coincidences},
     {"groups-compact", PetsysRecords::compact_groups},
     {"coincidences-compact", PetsysRecords::compact_coincidences}}};

/// A hit as both forms have it.
struct PetsysHit {
    std::int64_t time_ps = 0;
    float energy = 0;
    std::int64_t channel = 0;
};

/// Which of how many hits of its photon.
struct PetsysPlace {
    std::uint64_t hits = 1;
    std::uint64_t number = 0;
};

/// The fields of a record one after the other.
class PetsysFields {
  public:
    virtual ~PetsysFields() = default;
    [[nodiscard]] virtual bool at_end() = 0;
    /// A record, or the numbers of hits of a compact photon or pair, begins with so many fields.
    virtual void begin(std::size_t fields) = 0;
    virtual PetsysHit hit() = 0;
    virtual std::uint64_t count() = 0;  ///< a number of 8 bits
    [[noreturn]] virtual void refuse(const std::string& what) const = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    [[nodiscard]] virtual std::uint64_t done() const = 0;
};

class PetsysBytes : public PetsysFields {
  public:
    explicit PetsysBytes(const std::filesystem::path& file) : bytes_(file) {}
    bool at_end() override { return bytes_.at_end(); }
    void begin(std::size_t /*fields*/) override {}
    PetsysHit hit() override {
        // Packed: no field is aligned.
        const auto time = bytes_.take<std::int64_t>();
        const auto energy = bytes_.take<float>();
        return {time, energy, bytes_.take<std::int32_t>()};
    }
    std::uint64_t count() override { return bytes_.take<std::uint8_t>(); }
    void refuse(const std::string& what) const override { bytes_.refuse(what); }
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] std::uint64_t done() const override { return bytes_.done(); }

  private:
    ByteReader bytes_;
};

class PetsysText : public PetsysFields {
  public:
    explicit PetsysText(const std::filesystem::path& file) : lines_(file), has_line_(lines_.next()) {}
    /// Of the line that begin() will take.
    [[nodiscard]] std::size_t fields() { return has_line_ ? lines_.fields('\t').size() : 0; }
    bool at_end() override {
        if (!has_line_) has_line_ = lines_.next();
        return !has_line_;
    }
    void begin(std::size_t fields) override {
        if (at_end()) lines_.refuse("the file ends within a photon; expected its hits: truncated");
        fields_ = &lines_.fields('\t');
        if (fields_->size() != fields)
            lines_.refuse(fmt::format("{} columns; expected {}, separated by tabs", fields_->size(), fields));
        has_line_ = false;
        at_ = 0;
    }
    PetsysHit hit() override {
        const auto time = next<std::int64_t>();
        const auto energy = next<float>();
        return {time, energy, next<std::int64_t>()};
    }
    std::uint64_t count() override { return next<std::uint8_t>(); }
    void refuse(const std::string& what) const override { lines_.refuse(what); }
    [[nodiscard]] std::uint64_t size() const override { return lines_.size(); }
    [[nodiscard]] std::uint64_t done() const override { return lines_.done(); }

  private:
    template <class Number>
    Number next() {
        const std::string_view text = (*fields_)[at_++];
        const auto number = number_from<Number>(text);
        if (!number) lines_.refuse(fmt::format("'{}': expected a number in column {}", text, at_));
        return *number;
    }

    LineReader lines_;
    bool has_line_;
    const std::vector<std::string_view>* fields_ = nullptr;
    std::size_t at_ = 0;
};

class PetsysFile {
  public:
    PetsysFile(const ForeignInput& input)
        : picoseconds_(config::TimeUnit::ps, input.scanner.tick_ps),
          keV_per_unit_(*input.options.keV_per_unit),
          numbers_(crystal_number_table(*input.options.crystals, input.scanner.geometry.crystal_count())) {
        std::optional<PetsysRecords> stated;
        for (const auto& [word, records] : petsys_words)
            if (input.options.records == word) stated = records;
        if (!input.options.records.empty() && !stated) {
            throw UsageError(
                fmt::format("--records {}: expected singles, groups, coincidences, groups-compact or "
                            "coincidences-compact",
                            input.options.records));
        }
        if (input.file.extension() == ".ldat") {
            if (!stated) {
                throw UsageError(input.file.string() +
                                 ": does not tell what it holds; expected --records singles, "
                                 "groups, coincidences, groups-compact or coincidences-compact");
            }
            records_ = *stated;
            fields_ = std::make_unique<PetsysBytes>(input.file);
            check_size(input.file);
            return;
        }
        auto text = std::make_unique<PetsysText>(input.file);
        const auto found = kind_of_text(text->fields());
        if (!found) {
            text->refuse(
                fmt::format("{} columns; expected 3 (singles), 5 (groups), 10 (coincidences), 1 or 2 (their "
                            "compact forms), separated by tabs",
                            text->fields()));
        }
        if (stated && *stated != *found)
            text->refuse(fmt::format("{} columns; expected {}, as --records says", text->fields(),
                                     input.options.records));
        records_ = *found;
        fields_ = std::move(text);
    }

    [[nodiscard]] bool of_pairs() const {
        return records_ == PetsysRecords::coincidences || records_ == PetsysRecords::compact_coincidences;
    }
    bool take(gpu::RecordVector<gpu::Single>& out) {
        while (!fields_->at_end()) {
            if (records_ == PetsysRecords::compact_groups) {
                fields_->begin(1);
                const std::uint64_t hits = hits_of_photon();
                out.push_back(first_of(hits));
                return true;
            }
            PetsysPlace place;
            fields_->begin(records_ == PetsysRecords::groups ? 5 : 3);
            if (records_ == PetsysRecords::groups) place = take_place();
            const PetsysHit hit = fields_->hit();
            if (!counts(place.number == 0)) continue;
            out.push_back(single(hit));
            return true;
        }
        return false;
    }
    bool take(gpu::RecordVector<gpu::Coincidence>& out) {
        while (!fields_->at_end()) {
            gpu::Single a;
            gpu::Single b;
            if (records_ == PetsysRecords::compact_coincidences) {
                fields_->begin(2);
                const std::uint64_t hits_a = hits_of_photon();
                const std::uint64_t hits_b = hits_of_photon();
                a = first_of(hits_a);
                b = first_of(hits_b);
            } else {
                fields_->begin(10);
                const PetsysPlace place_a = take_place();
                const PetsysHit hit_a = fields_->hit();
                const PetsysPlace place_b = take_place();
                const PetsysHit hit_b = fields_->hit();
                if (!counts(place_a.number == 0 && place_b.number == 0)) continue;
                a = single(hit_a);
                b = single(hit_b);
            }
            const auto pair = pair_of(a, b, gpu::Kind::prompt);
            if (!pair) fields_->refuse(too_far_apart);
            out.push_back(*pair);
            return true;
        }
        return false;
    }
    [[nodiscard]] const PetsysFields& fields() const { return *fields_; }
    [[nodiscard]] std::vector<std::string> remarks() const {
        if (left_out_ == 0) return {};
        return {fmt::format(
            "{} further hits of photons that were spread over several channels were left out: of each "
            "photon the hit with most energy was taken",
            left_out_)};
    }

  private:
    static std::optional<PetsysRecords> kind_of_text(std::size_t columns) {
        switch (columns) {
            case 0:  // an empty file
            case 3:
                return PetsysRecords::singles;
            case 5:
                return PetsysRecords::groups;
            case 10:
                return PetsysRecords::coincidences;
            case 1:
                return PetsysRecords::compact_groups;
            case 2:
                return PetsysRecords::compact_coincidences;
            default:
                return std::nullopt;
        }
    }
    void check_size(const std::filesystem::path& file) const {
        std::uint64_t record = 1;
        if (records_ == PetsysRecords::singles) record = 16;
        if (records_ == PetsysRecords::groups) record = 18;
        if (records_ == PetsysRecords::coincidences) record = 36;
        if (fields_->size() % record != 0) {
            throw BadInput(
                fmt::format("{}: {} bytes; expected a multiple of {}, the size of a record: truncated, or of "
                            "another kind than --records says",
                            file.string(), fields_->size(), record));
        }
    }
    PetsysPlace take_place() {
        PetsysPlace place;
        place.hits = fields_->count();
        place.number = fields_->count();
        if (place.number >= place.hits) {
            fields_->refuse(
                fmt::format("hit {} of {}; expected a number below that of the hits: a file of another kind?",
                            place.number, place.hits));
        }
        return place;
    }
    std::uint64_t hits_of_photon() {
        const std::uint64_t hits = fields_->count();
        if (hits == 0) fields_->refuse("a photon of 0 hits; expected 1 or more: a file of another kind?");
        return hits;
    }
    /// Of the hits of a compact photon. The first one has most energy.
    gpu::Single first_of(std::uint64_t hits) {
        gpu::Single first;
        for (std::uint64_t i = 0; i < hits; ++i) {
            fields_->begin(3);
            const PetsysHit hit = fields_->hit();
            if (counts(i == 0)) first = single(hit);
        }
        return first;
    }
    bool counts(bool first) {
        if (!first) ++left_out_;
        return first;
    }
    [[nodiscard]] gpu::Single single(const PetsysHit& hit) const {
        const double energy = static_cast<double>(hit.energy) * keV_per_unit_;
        if (!(energy >= 0 && energy < 1e30))
            fields_->refuse(
                fmt::format("an energy of {}; expected a finite number of at least 0", hit.energy));
        const auto ticks =
            picoseconds_.ticks(static_cast<std::uint64_t>(hit.time_ps), config::Rounding::nearest);
        if (hit.time_ps < 0 || !ticks)
            fields_->refuse(
                fmt::format("a time of {} ps; expected 0 or more, and less than 2^63 ticks", hit.time_ps));
        const auto crystal =
            hit.channel < 0 ? std::nullopt : numbers_.crystal(static_cast<std::uint64_t>(hit.channel));
        if (!crystal)
            fields_->refuse(fmt::format("channel {}; expected {}", hit.channel, numbers_.expectation()));
        return {*ticks, *crystal, static_cast<float>(energy)};
    }

    config::WholeTimes picoseconds_;
    double keV_per_unit_;  // NOLINT(readability-identifier-naming): a unit
    CrystalNumbers numbers_;
    PetsysRecords records_ = PetsysRecords::singles;
    std::unique_ptr<PetsysFields> fields_;
    std::uint64_t left_out_ = 0;
};

}  // namespace

ForeignFile open_petsys(const ForeignInput& input) {
    const auto& factor = input.options.keV_per_unit;
    if (!factor || !(*factor > 0 && *factor < 1e9)) {
        throw UsageError(
            "petsys: expected --kev-per-unit: the keV for a unit of the energies in the file (nanoseconds "
            "over "
            "the threshold, or units of charge), a number above 0");
    }
    const auto hits = std::make_shared<PetsysFile>(input);
    ForeignFile file;
    if (hits->of_pairs()) {
        file.records = TakeRecords<gpu::Coincidence>([hits](auto& out) { return hits->take(out); });
    } else {
        file.records = TakeRecords<gpu::Single>([hits](auto& out) { return hits->take(out); });
    }
    file.bytes = hits->fields().size();
    file.bytes_done = [hits] { return hits->fields().done(); };
    file.remarks = [hits] { return hits->remarks(); };
    file.coverage.unknown = {unknown_times, unknown_clock, unknown_rules};
    file.coverage.loss.seconds_complete = false;
    return file;
}

}  // namespace petacq::petlm
