// Whether the seconds of a file agree with each other, each with itself, and with the ledger.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/seconds/record.hpp"
#include "gpu/tick_range.hpp"

namespace petacq::petlm {

/// Of the seconds of one run.
struct SecondsTotals {
    std::uint64_t seconds = 0;
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
};

class SecondsCheck {
  public:
    /// `description`: of the file. Throws std::invalid_argument as daemon::fields_of does.
    SecondsCheck(const nlohmann::json& description, std::size_t record_bytes);

    /// What is wrong with the next record; empty if nothing is.
    [[nodiscard]] std::string next(std::span<const std::byte> record);
    /// The time of the last record.
    [[nodiscard]] gpu::TickRange last() const { return last_; }
    [[nodiscard]] const SecondsTotals& totals() const { return totals_; }

  private:
    [[nodiscard]] std::uint64_t number(const std::byte* record, const char* name) const;
    [[nodiscard]] double sum(const std::byte* record, const char* name) const;

    std::vector<daemon::SecondField> fields_;
    gpu::TickRange last_;
    SecondsTotals totals_;
};

}  // namespace petacq::petlm
