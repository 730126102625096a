// JSON-RPC 2.0 messages: text in, checked calls out, and the lines that answer them. No input or output here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
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
inline constexpr int rpc_refused = -32000;  ///< understood, but not possible now; the message says why

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

/// One call of a message. With `error` set it is not to be carried out, only answered.
struct RpcCall {
    nlohmann::json id;          ///< null, a number or a string, echoed as it came
    bool notification = false;  ///< no id was given: carried out, never answered
    std::string method;
    nlohmann::json params = nlohmann::json::object();  ///< an object, or an array as the standard allows
    std::optional<RpcError> error;
};

struct RpcMessage {
    std::vector<RpcCall> calls;  ///< at least one
    bool batch = false;          ///< the answers go into one array
};

/// Reads one line (without its line end). Whatever is wrong with it is in RpcCall::error; throws nothing but
/// std::bad_alloc. Nesting deeper than rpc_max_depth is refused before any parsing.
RpcMessage parse_rpc_message(std::string_view line);

/// The answers, as single lines without a line end. Text that is not UTF-8 is mended, never thrown at.
std::string rpc_result_text(const nlohmann::json& id, const nlohmann::json& result);
std::string rpc_error_text(const nlohmann::json& id, const RpcError& error);
std::string rpc_notification_text(std::string_view method, const nlohmann::json& params);
std::string rpc_request_text(const nlohmann::json& id, std::string_view method, const nlohmann::json& params);

/// Named parameters of one call. Every check that fails throws RpcError(rpc_invalid_params) with the name and
/// what was expected.
class RpcParams {
  public:
    /// Refuses positional parameters and names other than the `known` ones.
    RpcParams(const RpcCall& call, std::initializer_list<std::string_view> known);

    [[nodiscard]] std::optional<std::string> text(const char* name) const;
    /// A finite number in [lowest, highest]; `expected` describes it for the message.
    [[nodiscard]] std::optional<double> number(const char* name, double lowest, double highest,
                                               std::string_view expected) const;

    /// A whole number in [lowest, highest].
    [[nodiscard]] std::optional<std::uint32_t> whole(const char* name, std::uint32_t lowest,
                                                     std::uint32_t highest) const;

  private:
    [[nodiscard]] const nlohmann::json* find(const char* name) const;
    const nlohmann::json& params_;
};

}  // namespace petacq::daemon
