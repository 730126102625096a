#include "tools/petlm/plot/seconds_rows.hpp"

#include <algorithm>
#include <cmath>
#include <system_error>

#include "daemon/run/directory.hpp"
#include "daemon/seconds/reader.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t max_rows_of_seconds = 400;

/// The mean of the known numbers; NaN if there are none.
double mean_of(const daemon::FieldValues& values) {
    double sum = 0;
    std::size_t known = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values.number(i))) continue;
        sum += values.number(i);
        ++known;
    }
    return known == 0 ? std::nan("") : sum / static_cast<double>(known);
}

/// The means of the modules in the seconds of a row.
struct Temperatures {
    double sum = 0;
    std::size_t known = 0;
    double coldest = std::nan("");
    double hottest = std::nan("");

    void add(const daemon::FieldValues& values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double t = values.number(i);
            if (std::isnan(t)) continue;
            sum += t;
            ++known;
            coldest = std::fmin(coldest, t);  // NaN: the other one
            hottest = std::fmax(hottest, t);
        }
    }
};

/// Neighbouring seconds that make one row.
class Row {
  public:
    void add(const daemon::SecondsReader& reader) {
        const auto number = [&](const char* name) {
            const daemon::SecondField* const field = reader.find(name);
            return field == nullptr ? std::nan("") : mean_of(reader.values(*field));
        };
        if (seconds_++ == 0) from_ = reader.start();
        to_ = reader.start() + reader.length();
        const auto length = static_cast<double>(reader.length());
        length_ += length;
        const double delayeds = number("delayeds");
        prompts_ += number("prompts");
        delayeds_ += delayeds;
        // Without delayeds, their weight does not matter.
        of_delayeds_ += delayeds == 0 ? 0 : delayeds * number("delayeds_weight");
        randoms_ += number("randoms");
        pile_up_ += number("pile_up") * length;
        dead_time_ += number("module_dead_time");
        if (const auto* field = reader.find("module_temperature")) temperatures_.add(reader.values(*field));
    }
    [[nodiscard]] std::uint64_t seconds() const { return seconds_; }
    void append_to(SecondsRows& rows) const {
        rows.from_ticks.push_back(from_);
        rows.to_ticks.push_back(to_);
        rows.prompts.push_back(prompts_);
        rows.delayeds.push_back(delayeds_);
        rows.of_delayeds.push_back(of_delayeds_);
        rows.randoms.push_back(randoms_);
        rows.pile_up.push_back(pile_up_ / length_);
        rows.dead_time.push_back(dead_time_ / length_);
        const Temperatures& t = temperatures_;
        rows.temperature.push_back(t.known == 0 ? std::nan("") : t.sum / static_cast<double>(t.known));
        rows.coldest.push_back(t.coldest);
        rows.hottest.push_back(t.hottest);
    }

  private:
    std::uint64_t seconds_ = 0;
    std::uint64_t from_ = 0;
    std::uint64_t to_ = 0;
    double length_ = 0;
    double prompts_ = 0;
    double delayeds_ = 0;
    double of_delayeds_ = 0;
    double randoms_ = 0;
    double pile_up_ = 0;
    double dead_time_ = 0;
    Temperatures temperatures_;
};

}  // namespace

SecondsOverTime seconds_over_time(const std::filesystem::path& run) {
    SecondsOverTime found;
    const std::filesystem::path file = run / daemon::seconds_file;
    if (!std::filesystem::exists(file)) return found;
    try {
        daemon::SecondsReader reader(file);
        const auto& trailer = reader.reader().trailer();
        const std::uint64_t in_row =
            trailer ? (trailer->records + max_rows_of_seconds - 1) / max_rows_of_seconds : 1;
        SecondsRows rows;
        Row row;
        while (reader.next()) {
            row.add(reader);
            if (row.seconds() < in_row) continue;
            row.append_to(rows);
            row = {};
        }
        if (row.seconds() != 0) row.append_to(rows);
        if (rows.size() != 0) found.rows = std::move(rows);
        const daemon::Condition& condition = reader.reader().condition();
        if (condition.state != daemon::FileState::complete)
            found.trouble = file.string() + ": " + condition.summary();
    } catch (const daemon::NotListMode& error) {
        found.trouble = error.what();
    } catch (const std::system_error& error) {
        found.trouble = error.what();
    }
    return found;
}

}  // namespace petacq::petlm
