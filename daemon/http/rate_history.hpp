// The rates of the last minutes, one row for each published status, for pages that are opened later.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace petacq::daemon {

/// A ring of fixed size. Belongs to one thread.
class RateHistory {
  public:
    /// Columns besides the time, with their names in `rates` of the status document.
    static constexpr std::array<const char*, 10> columns{
        "singles_per_s", "prompts_per_s", "delayeds_per_s", "net_trues_per_s", "datagrams_per_s",
        "frames_per_s",  "lost_fraction", "bytes_per_s",    "triples_per_s",   "delayed_triples_per_s"};
    /// Stands for a value that is no number in the status document.
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

    using Rates = std::array<double, columns.size()>;

    /// The rates of a row of a file, whose first number is its time; another version may have had other
    /// columns. Throws std::exception if it is none.
    static Rates rates_of(const nlohmann::json& row, const std::vector<std::string>& names);

    /// `rows`: capacity, at least 1.
    explicit RateHistory(std::size_t rows) : rows_(rows) { ring_.reserve(rows); }

    void add(const nlohmann::json& status, std::chrono::system_clock::time_point now);
    /// Columns of equal length, oldest first: "time" (seconds since 1970), "uptime_s", and those above. The
    /// rows of an earlier daemon have no uptime.
    [[nodiscard]] std::string text() const;

    /// For the file.
    [[nodiscard]] nlohmann::json rows() const;
    /// Takes what an earlier daemon has made of its rows; those that are too old, or later than now, are left
    /// out. Throws std::exception if it is none.
    void read(const nlohmann::json& rows, std::chrono::system_clock::time_point now);
    /// Seconds since 1970: the latest row; 0: there is none.
    [[nodiscard]] double latest() const;

  private:
    struct Row {
        double time = 0;
        double uptime_s = 0;
        Rates rates{};
    };
    void put(const Row& row);
    [[nodiscard]] const Row& at(std::size_t i) const { return ring_[(oldest_ + i) % ring_.size()]; }

    std::size_t rows_;
    std::size_t oldest_ = 0;  ///< row, once the ring is full
    std::vector<Row> ring_;
};

}  // namespace petacq::daemon
