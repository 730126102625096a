// JSON-RPC 2.0 messages: parses lines into checked calls, and formats the answers. No input or output.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace petacq::daemon {

inline constexpr int rpc_parse_error = -32700;
inline constexpr int rpc_invalid_request = -32600;
inline constexpr int rpc_method_not_found = -32601;
inline constexpr int rpc_invalid_params = -32602;
inline constexpr int rpc_internal_error = -32603;
inline constexpr int rpc_refused = -32000;  ///< not possible at present; the message says why

inline constexpr std::size_t rpc_max_depth = 64;  ///< levels of nesting in one message
inline constexpr std::size_t rpc_max_batch = 32;  ///< calls in one batch

/// An error as JSON-RPC carries it.
class RpcError : public std::runtime_error {
  public:
    RpcError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] int code() const { return code_; }

  private:
    int code_;
};

/// One call of a message. A call with an `error` is answered and not carried out.
struct RpcCall {
    std::string id = "null";    ///< JSON text of the id (null, a number or a string), echoed in the answer
    bool notification = false;  ///< without an id: carried out, never answered
    std::string method;
    std::shared_ptr<const nlohmann::json> params;  ///< object or array; nullptr: none
    std::optional<RpcError> error;
};

struct RpcMessage {
    std::vector<RpcCall> calls;  ///< at least one
    bool batch = false;          ///< the answers go into one array
};

/// Parses one line (without its line end). Errors of the line are in RpcCall::error; throws only
/// std::bad_alloc. Nesting deeper than rpc_max_depth is refused before any parsing.
RpcMessage parse_rpc_message(std::string_view line);

/// JSON text on one line, without a line end. Text that is not UTF-8 is repaired.
std::string rpc_text(const nlohmann::json& document);
/// Whole messages. `id`, `result` and the parameters of a notification are JSON texts.
std::string rpc_result_text(std::string_view id, std::string_view result);
std::string rpc_error_text(std::string_view id, const RpcError& error);
std::string rpc_notification_text(std::string_view method, std::string_view params);
std::string rpc_request_text(std::int64_t id, std::string_view method, const nlohmann::json& params);

/// Named parameters of one call. A failed check throws RpcError(rpc_invalid_params) that says what was
/// expected.
class RpcParams {
  public:
    /// Refuses positional parameters and names other than the `known` ones.
    RpcParams(const RpcCall& call, std::initializer_list<std::string_view> known);

    /// Text without a NUL.
    [[nodiscard]] std::optional<std::string> text(const char* name) const;
    /// A finite number in [lowest, highest]; `expected` describes it for the message.
    [[nodiscard]] std::optional<double> number(const char* name, double lowest, double highest,
                                               std::string_view expected) const;

    /// A whole number in [lowest, highest].
    [[nodiscard]] std::optional<std::uint32_t> whole(const char* name, std::uint32_t lowest,
                                                     std::uint32_t highest) const;

    /// A time of the detector: any whole number of 64 bits.
    [[nodiscard]] std::optional<std::uint64_t> ticks(const char* name) const;

  private:
    [[nodiscard]] const nlohmann::json* find(const char* name) const;
    std::shared_ptr<const nlohmann::json> params_;
};

}  // namespace petacq::daemon
