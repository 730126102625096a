// How a request gets its answer, at once or later, from any thread.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "daemon/control/json_rpc.hpp"

namespace petacq::daemon {

/// How a request ended: with a result, or with an error.
struct Answer {
    std::string result;  ///< JSON text
    std::optional<RpcError> error;
};

/// The promise of exactly one answer. Copies share it: the first result() or error() of any copy, from any
/// thread, is delivered; later ones do nothing. If the last copy goes away unanswered, an internal error is
/// delivered, so that no client waits for ever.
class Reply {
  public:
    /// `deliver` is called once, in the thread that answers, and must not throw.
    explicit Reply(std::function<void(Answer)> deliver);
    void result(const nlohmann::json& document) const;
    /// `code`: rpc_refused for a request that is not possible at present.
    void error(int code, const std::string& message) const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace petacq::daemon
