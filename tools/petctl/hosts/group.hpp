// The hosts that act as one: all are asked at the same time.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/hosts/launcher.hpp"
#include "tools/petctl/hosts/pairs.hpp"

namespace petacq::petctl {

/// What a host answered, or why it did not.
struct HostAnswer {
    std::string host;
    std::shared_ptr<const nlohmann::json> document;  ///< absent if there is a failure
    std::string failure;                             ///< one printable line; empty: it answered
    bool reached = false;  ///< false: no answer of petacqd, so it is not known whether it did what was asked

    [[nodiscard]] bool good() const { return failure.empty(); }
    /// The answer, an object; null if there is a failure.
    [[nodiscard]] const nlohmann::json& result() const;
};

/// One connection to each host. It stays open from one question to the next; a broken one is made anew.
class HostGroup {
  public:
    using Milliseconds = std::chrono::milliseconds;
    /// The longest time for an answer that needs no work on disk: the way there, and the answer.
    static constexpr Milliseconds patience{20'000};

    /// `words`: hosts, or the hosts of a pair: "a+b". Throws std::invalid_argument unless the names are hosts
    /// that differ. `socket`: the control socket
    /// there; empty: the one that petctl uses there.
    HostGroup(const std::vector<std::string>& words, std::string socket);

    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
    [[nodiscard]] const HostPairs& pairs() const { return pairs_; }
    /// Asks all of them, and returns when each has answered or failed; in the order of the names.
    std::vector<HostAnswer> ask(const std::string& method, const nlohmann::json& parameters,
                                Milliseconds timeout = patience);
    std::vector<HostAnswer> ask_status() { return ask_status(names_); }
    std::vector<HostAnswer> ask_status(const std::vector<std::string>& names);
    /// The status of all, to be asked again and again: waits for `grace` at most, so that a host that hangs
    /// does not hide the others. Its failure is the last one, or for how long it has not answered. Use no
    /// other function on the same group.
    std::vector<HostAnswer> watch_status(Milliseconds grace);
    /// Asks only these of them.
    std::vector<HostAnswer> ask(const std::vector<std::string>& names, const std::string& method,
                                const nlohmann::json& parameters, Milliseconds timeout = patience);

  private:
    struct Watched {
        std::future<HostAnswer> answer;  ///< not valid: nothing is asked
        std::chrono::steady_clock::time_point asked;
        std::optional<std::chrono::system_clock::time_point> failing_since;
        HostAnswer last;
    };
    HostAnswer ask_one(std::size_t host, const std::string& method, const nlohmann::json& parameters,
                       Milliseconds timeout);

    const HostPairs pairs_;
    const std::vector<std::string> names_;
    std::string socket_;
    std::vector<std::unique_ptr<Launcher>> launchers_;  ///< in the order of the names; nullptr: no connection
    std::vector<Watched> watched_;                      ///< of watch_status; uses the launchers
};

}  // namespace petacq::petctl
