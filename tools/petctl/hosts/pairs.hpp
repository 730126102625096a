// Hosts that hear the same boards: "a+b" of --hosts. Together they lose nothing that one of them has.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace petacq::petctl {

/// Units of hosts. Most hosts are a unit by themselves. A value.
class HostPairs {
  public:
    HostPairs() = default;
    /// `words`: "a+b", "c". The names are not checked.
    explicit HostPairs(const std::vector<std::string>& words);

    /// In their order.
    [[nodiscard]] std::vector<std::string> names() const;
    /// The hosts of each unit.
    [[nodiscard]] const std::vector<std::vector<std::string>>& units() const { return units_; }
    /// The others of its unit.
    [[nodiscard]] std::vector<std::string> partners(const std::string& host) const;
    /// Whether a partner of the host is such a host.
    [[nodiscard]] bool partner_is(const std::string& host,
                                  const std::function<bool(const std::string&)>& such) const;
    /// The hosts of the units with several, as lists of names; null if there are none.
    [[nodiscard]] nlohmann::json several() const;

  private:
    std::vector<std::vector<std::string>> units_;
};

}  // namespace petacq::petctl
