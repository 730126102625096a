// Which crystal of the scanner each number of a file is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"

namespace petacq::petlm {

class CrystalNumbers {
  public:
    /// The numbers are those of petacqd.
    explicit CrystalNumbers(std::uint32_t crystals) : crystals_(crystals), same_(true) {}
    /// No number is known yet.
    CrystalNumbers(std::uint32_t crystals, std::filesystem::path file)
        : crystals_(crystals), file_(std::move(file)) {}

    /// Throws BadInput for a crystal that the scanner does not have, and for a number that is known already.
    void add(std::uint64_t number, std::uint32_t crystal);
    [[nodiscard]] std::optional<std::uint32_t> crystal(std::uint64_t number) const {
        if (same_)
            return number < crystals_ ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt;
        const auto found = crystal_of_.find(number);
        return found == crystal_of_.end() ? std::nullopt : std::optional(found->second);
    }
    /// What is expected of a number, for messages: "a number below 2880", "a number of crystals.csv".
    [[nodiscard]] std::string expectation() const;
    [[nodiscard]] std::size_t size() const { return same_ ? crystals_ : crystal_of_.size(); }

  private:
    std::uint32_t crystals_;
    bool same_ = false;
    std::filesystem::path file_;
    std::unordered_map<std::uint64_t, std::uint32_t> crystal_of_;
};

/// A table with the columns crystal and number_in_file, as petacq-geometry --numbers writes it. Several
/// numbers may be of one crystal. Throws BadInput.
CrystalNumbers crystal_number_table(const std::filesystem::path& file, std::uint32_t crystals);
/// Whether the file is one.
bool is_crystal_number_table(const std::filesystem::path& file);

/// Finds crystals by points in them. Each crystal is found once. Throws BadInput.
class CrystalsByPlace {
  public:
    CrystalsByPlace(const config::Scanner& scanner, std::filesystem::path file)
        : finder_(scanner), file_(std::move(file)), taken_(scanner.geometry.crystal_count()) {}
    /// `what` names the point in messages.
    std::uint32_t crystal_at(const geometry::Vector3& point, const std::string& what);

  private:
    geometry::HitFinder finder_;
    std::filesystem::path file_;
    std::vector<bool> taken_;
};

}  // namespace petacq::petlm
