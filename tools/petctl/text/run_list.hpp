// The runs of a daemon, which it lists in pages, the latest first.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace petacq::petctl {

class RunList {
  public:
    /// `last`: at most this many.
    explicit RunList(std::optional<std::size_t> last);

    /// The parameters of the method `runs` for the next page; absent if there is none to ask for.
    [[nodiscard]] std::optional<nlohmann::json> next() const;
    void add(const nlohmann::json& page);
    /// Whether the daemon has runs before those that were added.
    [[nodiscard]] bool more() const { return more_; }
    /// {"data_dir", "runs"}: the latest last.
    [[nodiscard]] nlohmann::json document() const;

  private:
    std::size_t wanted_;
    bool more_ = true;
    std::vector<nlohmann::json> pages_;  ///< as answered: the latest first
};

}  // namespace petacq::petctl
