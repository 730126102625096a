// CASToR list-mode. docs/reference/formats/castor.md has the layout.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "config/base/ticks.hpp"
#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/castor_lines.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"
#include "tools/petlm/import/byte_reader.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

/// What the header says of the events.
class CastorHeader {
  public:
    explicit CastorHeader(std::filesystem::path path) : path_(std::move(path)) {
        LineReader lines(path_);
        while (lines.next()) {
            std::string_view line = lines.line();
            line = line.substr(0, line.find('#'));
            const std::size_t colon = line.find(':');
            if (colon == std::string_view::npos) continue;
            keys_[lower(trimmed(line.substr(0, colon)))] = std::string(trimmed(line.substr(colon + 1)));
        }
        const std::string mode = lower(text("data mode"));
        if (mode != "list-mode" && mode != "list" && mode != "listmode" && mode != "0")
            refuse("Data mode", "list-mode", text("data mode"));
        if (lower(text("data type")) != "pet" && text("data type") != "1")
            refuse("Data type", "PET", text("data type"));
        if (keys_.contains("isotope")) isotope = text("isotope");
        events = whole("number of events");
        start_s = number("start time (s)");
        duration_s = number("duration (s)");
        rounding_s = rounding_of("start time (s)") + rounding_of("duration (s)");
        attenuation = flag("attenuation correction flag");
        kind = flag("coincidence kind flag");
        scatter = flag("scatter correction flag");
        randoms = flag("random correction flag");
        normalisation = flag("normalization correction flag");
        tof = flag("tof information flag");
        for (const auto& [key, value] : keys_) {
            const bool known = key.starts_with("attenuation") || key.starts_with("coincidence kind") ||
                               key.starts_with("scatter") || key.starts_with("random") ||
                               key.starts_with("normalization") || key.starts_with("tof");
            if (key.ends_with("flag") && !known && value != "0")
                refuse(key.c_str(), "0: its field in the events is not known", value);
        }
        if (keys_.contains("maximum number of lines per event") &&
            text("maximum number of lines per event") != "1") {
            refuse("Maximum number of lines per event", "1", text("maximum number of lines per event"));
        }
    }
    [[nodiscard]] std::filesystem::path data() const { return path_.parent_path() / text("data filename"); }
    [[nodiscard]] std::uint64_t bytes_of_event() const {
        const std::uint64_t floats = (attenuation ? 1 : 0) + (scatter ? 1 : 0) + (randoms ? 1 : 0) +
                                     (normalisation ? 1 : 0) + (tof ? 1 : 0);
        return 4 + 4 * floats + (kind ? 1 : 0) + 8;
    }

    std::string isotope;  ///< "": not told
    std::uint64_t events = 0;
    double start_s = 0;
    double duration_s = 0;
    double rounding_s = 0;  ///< by which start or end may be wrong, as the header has few digits
    bool attenuation = false;
    bool kind = false;
    bool scatter = false;
    bool randoms = false;
    bool normalisation = false;
    bool tof = false;

  private:
    [[noreturn]] void refuse(const char* key, const std::string& expected, const std::string& found) const {
        throw BadInput(fmt::format("{}: {}: expected {}, found '{}'", path_.string(), key, expected, found));
    }
    [[nodiscard]] const std::string& text(const char* key) const {
        const auto found = keys_.find(key);
        if (found == keys_.end())
            throw BadInput(fmt::format("{}: no key '{}'; expected the header of a CASToR data file",
                                       path_.string(), key));
        return found->second;
    }
    [[nodiscard]] std::uint64_t whole(const char* key) const {
        const auto value = number_from<std::uint64_t>(text(key));
        if (!value) refuse(key, "a whole number", text(key));
        return *value;
    }
    [[nodiscard]] double number(const char* key) const {
        constexpr double longest_s = 4294968;  // times are milliseconds of 32 bits
        const auto value = number_from<double>(text(key));
        if (!value || !(*value >= 0 && *value <= longest_s))
            refuse(key, fmt::format("0 to {} seconds", longest_s), text(key));
        return *value;
    }
    /// Half a unit of the sixth digit of a number that has no more of them: so many has an ostream of C++
    /// that nobody asked for more.
    [[nodiscard]] double rounding_of(const char* key) const {
        constexpr int digits_of_ostream = 6;
        const std::string& written = text(key);
        const std::string_view digits = std::string_view(written).substr(0, written.find_first_of("eE"));
        const double value = number(key);
        const std::size_t first = digits.find_first_of("123456789");
        if (first == std::string_view::npos) return 0;
        const auto count = std::count_if(digits.begin() + static_cast<std::ptrdiff_t>(first), digits.end(),
                                         [](char c) { return c != '.'; });
        if (count > digits_of_ostream) return 0;
        return 0.5 * std::pow(10.0, std::floor(std::log10(value)) + 1 - digits_of_ostream);
    }
    [[nodiscard]] bool flag(const char* key) const {
        if (!keys_.contains(key)) return false;
        if (text(key) != "0" && text(key) != "1") refuse(key, "0 or 1", text(key));
        return text(key) == "1";
    }

    std::filesystem::path path_;
    std::map<std::string, std::string> keys_;
};

CrystalNumbers castor_numbers(const ForeignInput& input) {
    const config::Scanner& scanner = input.scanner;
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const auto& given = input.options.crystals;
    if (!given) {
        // As petlm export numbers them.
        const CastorIds ids{CrystalKinds(scanner)};
        CrystalNumbers numbers(crystals, input.file);
        for (std::uint32_t id = 0; id < crystals; ++id)
            numbers.add(id, ids.crystals()[id]);
        return numbers;
    }
    if (given->extension() != ".lut") return crystal_number_table(*given, crystals);
    ByteReader table(*given);
    CrystalsByPlace places(scanner, *given);
    CrystalNumbers numbers(crystals, *given);
    for (std::uint64_t id = 0; !table.at_end(); ++id) {
        const auto entry = table.take<std::array<float, 6>>();
        numbers.add(id, places.crystal_at({entry[0], entry[1], entry[2]}, fmt::format("crystal {}", id)));
    }
    return numbers;
}

class CastorEvents {
  public:
    CastorEvents(const ForeignInput& input, CastorHeader header)
        : header_(std::move(header)),
          data_(header_.data()),
          kind_(input.kind),
          tick_ps_(input.scanner.tick_ps),
          milliseconds_(config::TimeUnit::ms, tick_ps_),
          numbers_(castor_numbers(input)),
          first_ms_(static_cast<std::uint64_t>(std::floor(header_.start_s * 1000 + 1e-6))),
          end_ms_(
              static_cast<std::uint64_t>(std::ceil((header_.start_s + header_.duration_s) * 1000 - 1e-6))) {
        const std::uint64_t record = header_.bytes_of_event();
        if (data_.size() % record != 0 || data_.size() / record != header_.events) {
            throw BadInput(fmt::format("{}: {} bytes; expected {} events of {} bytes, as {} says",
                                       data_.path().string(), data_.size(), header_.events, record,
                                       input.file.string()));
        }
        stated_ = times();
        constexpr double finest_s = 1e-6;  // that anybody states
        if (header_.rounding_s >= finest_s) widen();
    }
    bool take(gpu::RecordVector<gpu::Coincidence>& out) {
        if (data_.at_end()) return false;
        const auto ms = data_.take<std::uint32_t>();
        if (ms < first_ms_ || ms >= end_ms_)
            data_.refuse(
                fmt::format("a time of {} ms; expected {} to {}, by start and duration in the header", ms,
                            first_ms_, end_ms_));
        if (header_.attenuation) data_.take<float>();
        if (header_.kind) data_.take<std::uint8_t>();
        for (const bool there : {header_.scatter, header_.randoms, header_.normalisation})
            if (there) data_.take<float>();
        const float tof_ps = header_.tof ? data_.take<float>() : 0;
        const std::uint32_t id1 = crystal();
        const std::uint32_t id2 = crystal();
        const double apart = std::round(std::abs(static_cast<double>(tof_ps)) / tick_ps_);
        if (!(apart <= UINT32_MAX))
            data_.refuse(fmt::format("a time of flight of {} ps; expected less than 2^32 ticks", tof_ps));
        // TOF is the arrival at the first crystal less that at the second.
        gpu::Single a{ticks(ms), id1, 0};
        gpu::Single b{ticks(ms), id2, 0};
        (tof_ps > 0 ? a : b).time += static_cast<std::uint64_t>(apart);
        const auto pair = pair_of(a, b, kind_);
        if (!pair) data_.refuse(too_far_apart);
        out.push_back(*pair);
        return true;
    }
    [[nodiscard]] const CastorHeader& header() const { return header_; }
    [[nodiscard]] const ByteReader& data() const { return data_; }
    /// What the header says, if events have widened times().
    [[nodiscard]] const daemon::Intervals& stated() const { return stated_; }
    [[nodiscard]] std::vector<std::string> remarks() const {
        if (stated_ == times()) return {};
        return {
            fmt::format("{}: start and duration in the header have six digits; events are at {} to {} ms, "
                        "within what they were rounded from",
                        data_.path().string(), first_ms_, end_ms_)};
    }
    /// Whole milliseconds in which records may be.
    [[nodiscard]] daemon::Intervals times() const {
        return daemon::Intervals(
            gpu::TickRange{ticks(first_ms_), std::max(ticks(end_ms_), ticks(first_ms_))});
    }

  private:
    /// To the events that lie outside by no more than the header is rounded.
    void widen() {
        const double start_ms = header_.start_s * 1000;
        const double end_ms = start_ms + header_.duration_s * 1000;
        const double rounding_ms = header_.rounding_s * 1000;
        const double lowest = std::max(0.0, std::floor(start_ms - rounding_ms));
        const double highest = std::ceil(end_ms + rounding_ms);
        if (!(lowest < static_cast<double>(first_ms_) || highest > static_cast<double>(end_ms_))) return;
        std::uint64_t first = first_ms_;
        std::uint64_t end = end_ms_;
        ByteReader events(data_.path());
        while (!events.at_end()) {
            const std::uint64_t ms = events.take<std::uint32_t>();
            events.skip(header_.bytes_of_event() - sizeof(std::uint32_t));
            if (static_cast<double>(ms) >= lowest) first = std::min(first, ms);
            if (static_cast<double>(ms) < highest) end = std::max(end, ms + 1);
        }
        first_ms_ = first;
        end_ms_ = end;
    }
    /// The first tick of a millisecond.
    [[nodiscard]] std::uint64_t ticks(std::uint64_t ms) const {
        return milliseconds_.ticks(ms, config::Rounding::up).value_or(INT64_MAX);
    }
    std::uint32_t crystal() {
        const auto number = data_.take<std::uint32_t>();
        const auto crystal = numbers_.crystal(number);
        if (!crystal) data_.refuse(fmt::format("crystal {}; expected {}", number, numbers_.expectation()));
        return *crystal;
    }

    CastorHeader header_;
    ByteReader data_;
    gpu::Kind kind_;
    double tick_ps_;
    config::WholeTimes milliseconds_;
    CrystalNumbers numbers_;
    std::uint64_t first_ms_;
    std::uint64_t end_ms_;
    daemon::Intervals stated_;
};

/// CASToR takes INF for one that does not decay.
bool names_no_isotope(const std::string& isotope) {
    return isotope.empty() || lower(isotope) == "inf" || lower(isotope) == "unknown";
}

}  // namespace

ForeignFile open_castor(const ForeignInput& input) {
    const auto events = std::make_shared<CastorEvents>(input, CastorHeader(input.file));
    ForeignFile file;
    file.records = TakeRecords<gpu::Coincidence>([events](auto& out) { return events->take(out); });
    file.bytes = events->data().size();
    file.bytes_done = [events] { return events->data().done(); };
    file.coverage.intervals = events->times();
    file.stated = events->stated();
    file.remarks = [events] { return events->remarks(); };
    file.coverage.loss.seconds_complete = false;
    file.coverage.unknown = {unknown_clock, unknown_rules, unknown_energies,
                             "times of its pairs within a millisecond"};
    if (!events->header().tof) file.coverage.unknown.emplace_back(unknown_dt);
    const std::string& isotope = events->header().isotope;
    if (const config::Nuclide* const known = config::find_nuclide(isotope)) {
        file.coverage.activity =
            daemon::StatedActivity{known->name, known->half_life_s, known->branching_ratio, {}, {}};
    } else if (!names_no_isotope(isotope)) {
        file.coverage.unknown.emplace_back(daemon::unknown_half_life);
    }
    return file;
}

}  // namespace petacq::petlm
