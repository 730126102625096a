// The list of the latest runs for all clients: the disk is asked at most once every few seconds, however many
// clients ask.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/control/gate.hpp"
#include "daemon/control/server.hpp"

namespace petacq::daemon {

/// Belongs to one thread, to which `gate` leads. Held by a shared_ptr.
class RunsView : public std::enable_shared_from_this<RunsView> {
  public:
    using Ask = std::function<void(RunsRequest, Reply)>;
    using Done = std::function<void(const Answer&)>;

    /// `ask` must not block. An answer that takes longer than `time_limit` counts as missing.
    RunsView(Ask ask, std::shared_ptr<ControlGate> gate, std::chrono::milliseconds time_limit)
        : ask_(std::move(ask)), gate_(std::move(gate)), time_limit_(time_limit) {}

    [[nodiscard]] bool known() const { return ask_ != nullptr; }
    /// Calls `done` with the document, at once or later. False: the disk hangs, and `done` is not called.
    [[nodiscard]] bool get(Done done);

  private:
    void answered(const Answer& answer);

    const Ask ask_;
    const std::shared_ptr<ControlGate> gate_;
    const std::chrono::milliseconds time_limit_;
    std::optional<Answer> latest_;
    std::chrono::steady_clock::time_point taken_;
    std::chrono::steady_clock::time_point asked_;  ///< while `waiting_` is not empty
    std::vector<Done> waiting_;                    ///< for the answer; at most one for each connection
};

}  // namespace petacq::daemon
