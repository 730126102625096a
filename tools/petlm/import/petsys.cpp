// Singles, groups and coincidences of PETsys, binary (.ldat) and text. docs/reference/formats/petsys.md has
// the layout.
#include <fmt/format.h>
#include <fmt/ranges.h>

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
        while (true) {
            const auto photon = records_ == PetsysRecords::groups ? next_group() : next_photon();
            if (!photon) return at_end();
            if (photon->hits == 0) continue;
            out.push_back(photon->single);
            ++taken_;
            return true;
        }
    }
    bool take(gpu::RecordVector<gpu::Coincidence>& out) {
        while (true) {
            const auto photons = records_ == PetsysRecords::coincidences ? next_pair() : next_compact_pair();
            if (!photons) return at_end();
            const auto& [a, b] = *photons;
            if (a.hits == 0 || b.hits == 0) {
                ++lost_pairs_;
                continue;
            }
            const auto pair = pair_of(a.single, b.single, gpu::Kind::prompt);
            if (!pair) fields_->refuse(too_far_apart);
            out.push_back(*pair);
            ++taken_;
            return true;
        }
    }
    [[nodiscard]] const PetsysFields& fields() const { return *fields_; }
    [[nodiscard]] std::vector<std::string> remarks() const {
        std::vector<std::string> out = left_out();
        if (further_ != 0) {
            out.push_back(
                fmt::format("{} further hits of photons that were spread over several channels were added: a "
                            "photon has the sum of the energies, and time and crystal of its first hit",
                            further_));
        }
        return out;
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
    /// What the good ones of its hits make. Without one it is nothing.
    struct PetsysPhoton {
        gpu::Single single;
        std::uint64_t hits = 0;
    };
    void add(PetsysPhoton& photon, const PetsysHit& hit) {
        const auto single = single_of(hit);
        if (!single) return;
        if (photon.hits++ == 0) {
            photon.single = *single;
        } else {
            photon.single.energy += single->energy;
            ++further_;
        }
    }
    /// Of a record of singles, or of compact groups.
    std::optional<PetsysPhoton> next_photon() {
        if (fields_->at_end()) return std::nullopt;
        std::uint64_t hits = 1;
        if (records_ == PetsysRecords::compact_groups) {
            fields_->begin(1);
            hits = hits_of_photon();
        }
        return compact_photon(hits);
    }
    PetsysPhoton compact_photon(std::uint64_t hits) {
        PetsysPhoton photon;
        for (std::uint64_t i = 0; i < hits; ++i) {
            fields_->begin(3);
            add(photon, fields_->hit());
        }
        return photon;
    }
    std::optional<std::pair<PetsysPhoton, PetsysPhoton>> next_compact_pair() {
        if (fields_->at_end()) return std::nullopt;
        fields_->begin(2);
        const std::uint64_t hits_a = hits_of_photon();
        const std::uint64_t hits_b = hits_of_photon();
        PetsysPhoton a = compact_photon(hits_a);
        PetsysPhoton b = compact_photon(hits_b);
        return std::pair{a, b};
    }
    /// A photon has a record for each of its hits. The next photon begins with its hit 0.
    std::optional<PetsysPhoton> next_group() {
        std::optional<PetsysPhoton> photon;
        while (waiting_ || !fields_->at_end()) {
            if (!waiting_) waiting_ = take_group();
            if (photon && waiting_->place.number == 0) break;
            if (!photon) photon.emplace();
            add(*photon, waiting_->hit);
            waiting_.reset();
        }
        return photon;
    }
    /// A pair has a record for each hit of one photon with the first of the other.
    std::optional<std::pair<PetsysPhoton, PetsysPhoton>> next_pair() {
        std::optional<std::pair<PetsysPhoton, PetsysPhoton>> pair;
        while (waiting_ || !fields_->at_end()) {
            if (!waiting_) {
                fields_->begin(10);
                waiting_ = take_hit();
                waiting_b_ = take_hit();
            }
            const bool first = waiting_->place.number == 0 && waiting_b_.place.number == 0;
            if (pair && first) break;
            if (!pair) pair.emplace();
            if (first || waiting_->place.number != 0) add(pair->first, waiting_->hit);
            if (first || waiting_b_.place.number != 0) add(pair->second, waiting_b_.hit);
            waiting_.reset();
        }
        return pair;
    }
    struct PlacedHit {
        PetsysPlace place;
        PetsysHit hit;
    };
    PlacedHit take_group() {
        fields_->begin(5);
        return take_hit();
    }
    PlacedHit take_hit() {
        const PetsysPlace place = take_place();
        return {place, fields_->hit()};
    }
    /// Nothing for a hit that is left out: noise has energies below 0, and channels may have no crystal.
    std::optional<gpu::Single> single_of(const PetsysHit& hit) {
        const double energy = static_cast<double>(hit.energy) * keV_per_unit_;
        if (!(std::abs(energy) < 1e30))
            fields_->refuse(fmt::format("an energy of {}; expected a finite number", hit.energy));
        const auto ticks =
            picoseconds_.ticks(static_cast<std::uint64_t>(hit.time_ps), config::Rounding::nearest);
        if (hit.time_ps < 0 || !ticks)
            fields_->refuse(
                fmt::format("a time of {} ps; expected 0 or more, and less than 2^63 ticks", hit.time_ps));
        const auto crystal =
            hit.channel < 0 ? std::nullopt : numbers_.crystal(static_cast<std::uint64_t>(hit.channel));
        if (!crystal) {
            if (no_crystal_++ == 0) first_without_crystal_ = hit.channel;
            return std::nullopt;
        }
        if (energy < 0) {
            ++below_zero_;
            return std::nullopt;
        }
        return gpu::Single{*ticks, *crystal, static_cast<float>(energy)};
    }
    [[nodiscard]] std::vector<std::string> left_out() const {
        std::vector<std::string> out;
        if (no_crystal_ != 0) {
            out.push_back(
                fmt::format("{} hits were left out, as --crystals does not have their channels, the "
                            "first of them channel {}; expected {}",
                            no_crystal_, first_without_crystal_, numbers_.expectation()));
        }
        if (below_zero_ != 0)
            out.push_back(fmt::format("{} hits were left out, as their energies are below 0", below_zero_));
        if (lost_pairs_ != 0)
            out.push_back(fmt::format("{} pairs were left out, as a photon had no other hit", lost_pairs_));
        return out;
    }
    /// False, as there is no record more.
    [[nodiscard]] bool at_end() const {
        const std::vector<std::string> why = left_out();
        if (taken_ == 0 && !why.empty())
            fields_->refuse(fmt::format("no record is left: {}", fmt::join(why, "; ")));
        return false;
    }

    config::WholeTimes picoseconds_;
    double keV_per_unit_;  // NOLINT(readability-identifier-naming): a unit
    CrystalNumbers numbers_;
    PetsysRecords records_ = PetsysRecords::singles;
    std::unique_ptr<PetsysFields> fields_;
    std::optional<PlacedHit> waiting_;  ///< read, and not of the photon before
    PlacedHit waiting_b_;               ///< with it, of the other photon of the pair
    std::uint64_t taken_ = 0;
    std::uint64_t further_ = 0;
    std::uint64_t no_crystal_ = 0;
    std::int64_t first_without_crystal_ = 0;
    std::uint64_t below_zero_ = 0;
    std::uint64_t lost_pairs_ = 0;
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
