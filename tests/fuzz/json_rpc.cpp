// Lines of the control socket.
#include "daemon/control/json_rpc.hpp"

#include <nlohmann/json.hpp>

#include "daemon/control/server.hpp"
#include "tests/fuzz/base/json_target.hpp"

using namespace petacq;
using fuzz::require;

std::string_view fuzz::schema_of_target() {
    return {};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const daemon::RpcMessage message = daemon::parse_rpc_message(fuzz::text_of(data, size));
    require(!message.calls.empty() && message.calls.size() <= daemon::rpc_max_batch,
            "one call to a full batch");
    for (const daemon::RpcCall& call : message.calls) {
        const auto echoed = [&](const std::string& line) {
            require(line.find('\n') == std::string::npos, "an answer is one line");
            const auto answer = nlohmann::json::parse(line);
            require(answer["id"].dump() == nlohmann::json::parse(call.id).dump(),
                    "an answer has the id of its call");
        };
        if (call.error) {
            echoed(daemon::rpc_error_text(call.id, *call.error));
            continue;
        }
        try {
            const daemon::StartRequest start = daemon::start_request(call);
            fuzz::accept();
            require(!start.duration_s || *start.duration_s > 0, "a duration is above 0");
            echoed(daemon::rpc_result_text(call.id, daemon::rpc_text({{"run", start.run.value_or("")}})));
        } catch (const daemon::RpcError& error) {
            echoed(daemon::rpc_error_text(call.id, error));
        }
    }
    return 0;
}
