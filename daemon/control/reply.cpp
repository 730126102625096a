#include "daemon/control/reply.hpp"

#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>

namespace petacq::daemon {

struct Reply::State {
    explicit State(std::function<void(Answer)> function) : deliver(std::move(function)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { answer({{}, RpcError(rpc_internal_error, "the request was abandoned without an answer")}); }

    void answer(Answer result) {
        if (!answered.exchange(true)) deliver(std::move(result));
    }

    std::function<void(Answer)> deliver;
    std::atomic<bool> answered{false};
};

Reply::Reply(std::function<void(Answer)> deliver) : state_(std::make_shared<State>(std::move(deliver))) {}

void Reply::result(const nlohmann::json& document) const {
    state_->answer({rpc_text(document), {}});
}

void Reply::error(int code, const std::string& message) const {
    state_->answer({{}, RpcError(code, message)});
}

}  // namespace petacq::daemon
