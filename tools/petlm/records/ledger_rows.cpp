#include "tools/petlm/records/ledger_rows.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon/run/directory.hpp"

namespace petacq::petlm {
namespace {

/// Rows held in memory: a year has thirty million.
constexpr std::size_t max_kept = 4096;
/// Larger than any row has, and small enough that sums of many rows do not overflow.
constexpr std::int64_t max_count = std::int64_t{1} << 40U;

template <class Number>
bool parse(std::string_view text, Number& number) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');)
        fields.push_back(field);
    if (!line.empty() && line.back() == ',') fields.emplace_back();
    return fields;
}

/// Reads whole lines of bounded length, whatever the file contains.
class Lines {
  public:
    explicit Lines(std::istream& in) : in_(in), buffer_(std::size_t{1} << 16U) {}
    /// None at the end, and where the next line is incomplete or too long.
    std::optional<std::string> next() {
        in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        at_end_ = in_.eof() && in_.gcount() == 0;
        if (!in_ || in_.eof()) return std::nullopt;  // eof: the line has no end
        return std::string(buffer_.data(), static_cast<std::size_t>(in_.gcount()) - 1);
    }
    /// The last next() found nothing after the previous line.
    [[nodiscard]] bool at_end() const { return at_end_; }

  private:
    std::istream& in_;
    std::vector<char> buffer_;
    bool at_end_ = false;
};

}  // namespace

LedgerOverTime ledger_over_time(const std::filesystem::path& run) {
    const auto file = run / daemon::ledger_file;
    const std::string name = file.filename().string();
    LedgerOverTime ledger;
    errno = 0;
    std::ifstream in(file);
    if (!in) {
        // Runs may have none.
        if (errno != ENOENT)
            ledger.trouble = name + " cannot be read: " + std::generic_category().message(errno);
        return ledger;
    }
    Lines lines(in);
    const auto first = lines.next();
    const std::vector<std::string> names = fields_of(first.value_or(""));
    const bool each_once = std::set<std::string>(names.begin(), names.end()).size() == names.size();
    if (!first || names.size() < 3 || names[0] != "from_ticks" || names[1] != "to_ticks" || !each_once) {
        ledger.trouble =
            in.bad() ? name + " cannot be read: " + std::generic_category().message(errno)
            : !first ? name + " has no whole line"
                     : name + ": expected from_ticks,to_ticks and counters, each once, in its first line";
        return ledger;
    }
    LedgerRows rows;
    std::vector<bool> known(names.size(), true);
    std::size_t number = 2;
    for (auto line = lines.next(); line; line = lines.next(), ++number) {
        const std::vector<std::string> fields = fields_of(*line);
        bool good = fields.size() == names.size();
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        good = good && parse(fields[0], from) && parse(fields[1], to) && to >= from &&
               (rows.to_ticks.empty() || from == rows.to_ticks.back());
        std::vector<std::int64_t> counts(names.size());
        for (std::size_t i = 2; good && i < names.size(); ++i) {
            if (fields[i].empty()) continue;
            good = parse(fields[i], counts[i]) && counts[i] > -max_count && counts[i] < max_count;
        }
        if (!good) break;
        rows.from_ticks.push_back(from);
        rows.to_ticks.push_back(to);
        for (std::size_t i = 2; i < names.size(); ++i) {
            rows.counters[names[i]].push_back(counts[i]);
            if (fields[i].empty()) known[i] = false;
        }
        if (rows.size() >= 2 * max_kept) rows = thinned(rows, max_kept);
    }
    ledger.lines = number - 2;
    if (!lines.at_end()) {
        ledger.trouble = name + ": line " + std::to_string(number) +
                         (in.bad() ? " cannot be read" : " is cut off or damaged") + ": expected " +
                         std::to_string(names.size()) +
                         " whole numbers, and to follow the line before. What comes after line " +
                         std::to_string(number - 1) + " is not shown.";
    }
    if (rows.to_ticks.empty()) return ledger;
    for (std::size_t i = 2; i < names.size(); ++i) {
        if (!known[i]) rows.counters.erase(names[i]);
    }
    ledger.rows = std::move(rows);
    return ledger;
}

LedgerRows thinned(const LedgerRows& rows, std::size_t most) {
    if (rows.size() <= most) return rows;
    // At least 1, so that rows without length are added together, too.
    const std::uint64_t least =
        std::max<std::uint64_t>(1, (rows.to_ticks.back() - rows.from_ticks.front()) / most);
    LedgerRows out;
    for (const auto& [name, counts] : rows.counters)
        out.counters[name];
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool more = i != 0 && out.to_ticks.back() - out.from_ticks.back() < least;
        if (!more) out.from_ticks.push_back(rows.from_ticks[i]);
        out.to_ticks.resize(out.from_ticks.size());
        out.to_ticks.back() = rows.to_ticks[i];
        for (auto& [name, counts] : out.counters) {
            counts.resize(out.from_ticks.size());
            counts.back() += rows.counters.at(name)[i];
        }
    }
    return out;
}

}  // namespace petacq::petlm
