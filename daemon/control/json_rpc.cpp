#include "daemon/control/json_rpc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/json_file.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

RpcCall failed(int code, const std::string& message, std::string id = "null") {
    RpcCall call;
    call.id = std::move(id);
    call.error.emplace(code, message);
    return call;
}

RpcCall checked_call(json& request) {
    const auto invalid = [](const std::string& message, const std::string& id) {
        return failed(rpc_invalid_request, "invalid request: " + message, id);
    };
    if (!request.is_object())
        return invalid("expected an object, found " + std::string(request.type_name()), "null");
    RpcCall call;
    const auto id = request.find("id");
    call.notification = id == request.end();
    if (!call.notification) {
        if (!id->is_null() && !id->is_number() && !id->is_string()) {
            return invalid("id: expected a number, a string or null", "null");
        }
        call.id = rpc_text(*id);
    }
    const auto version = request.find("jsonrpc");
    if (version == request.end() || *version != "2.0") return invalid("jsonrpc: expected \"2.0\"", call.id);
    const auto method = request.find("method");
    if (method == request.end() || !method->is_string()) return invalid("method: expected a string", call.id);
    call.method = method->get<std::string>();
    if (const auto params = request.find("params"); params != request.end()) {
        if (!params->is_structured()) return invalid("params: expected an object", call.id);
        call.params = std::make_shared<const json>(std::move(*params));
    }
    return call;
}

RpcMessage single(RpcCall call) {
    RpcMessage message;
    message.calls.push_back(std::move(call));
    return message;
}

}  // namespace

RpcMessage parse_rpc_message(std::string_view line) {
    if (config::json_nested_deeper(line, rpc_max_depth)) {
        return single(failed(rpc_parse_error,
                             "parse error: nested deeper than " + std::to_string(rpc_max_depth) + " levels"));
    }
    // The parser takes a NUL as the end of its input, and would accept a line with anything after it.
    if (line.find('\0') != std::string_view::npos) {
        return single(failed(rpc_parse_error, "parse error: NUL byte"));
    }
    json document = json::parse(line.begin(), line.end(), nullptr, false);
    if (document.is_discarded()) {
        return single(failed(rpc_parse_error, "parse error: expected one JSON value in UTF-8 on a line"));
    }
    if (!document.is_array()) return single(checked_call(document));
    if (document.empty()) return single(failed(rpc_invalid_request, "invalid request: empty batch"));
    if (document.size() > rpc_max_batch) {
        return single(
            failed(rpc_invalid_request, "invalid request: batch of " + std::to_string(document.size()) +
                                            " calls, expected at most " + std::to_string(rpc_max_batch)));
    }
    RpcMessage message;
    message.batch = true;
    message.calls.reserve(document.size());
    for (json& request : document)
        message.calls.push_back(checked_call(request));
    return message;
}

std::string rpc_text(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string rpc_result_text(std::string_view id, std::string_view result) {
    std::string text = R"({"jsonrpc":"2.0","id":)";
    text.append(id).append(R"(,"result":)").append(result).append("}");
    return text;
}

std::string rpc_error_text(std::string_view id, const RpcError& error) {
    std::string text = R"({"error":)" + rpc_text({{"code", error.code()}, {"message", error.what()}});
    text.append(R"(,"id":)").append(id).append(R"(,"jsonrpc":"2.0"})");
    return text;
}

std::string rpc_notification_text(std::string_view method, std::string_view params) {
    std::string text = R"({"jsonrpc":"2.0","method":)" + rpc_text(method) + R"(,"params":)";
    text.append(params).append("}");
    return text;
}

std::string rpc_request_text(std::int64_t id, std::string_view method, const json& params) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":)" + rpc_text(method) +
           R"(,"params":)" + rpc_text(params) + "}";
}

RpcParams::RpcParams(const RpcCall& call, std::initializer_list<std::string_view> known)
    : params_(call.params) {
    if (!params_) return;
    if (params_->is_array()) {
        if (params_->empty()) return;
        throw RpcError(rpc_invalid_params, "params: expected an object (parameters by name), found an array");
    }
    for (const auto& [name, value] : params_->items()) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        std::string message = "unknown parameter '" + name + "': " + call.method + " takes ";
        message += known.size() == 0 ? "none" : fmt::format("{}", fmt::join(known, ", "));
        throw RpcError(rpc_invalid_params, message);
    }
}

const json* RpcParams::find(const char* name) const {
    if (!params_ || !params_->is_object()) return nullptr;
    const auto found = params_->find(name);
    return found == params_->end() ? nullptr : &*found;
}

std::optional<std::string> RpcParams::text(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
        throw RpcError(rpc_invalid_params,
                       std::string(name) + ": expected a string, found " + value->type_name());
    }
    auto text = value->get<std::string>();
    // Messages and file names would be cut there.
    if (text.find('\0') != std::string::npos)
        throw RpcError(rpc_invalid_params, std::string(name) + ": expected text without a NUL");
    return text;
}

std::optional<double> RpcParams::number(const char* name, double lowest, double highest,
                                        std::string_view expected) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    const auto wrong = [&](const std::string& found) {
        return RpcError(rpc_invalid_params,
                        std::string(name) + ": expected " + std::string(expected) + ", found " + found);
    };
    if (!value->is_number()) throw wrong(value->type_name());
    const auto number = value->get<double>();
    if (!std::isfinite(number) || number < lowest || number > highest) throw wrong(rpc_text(*value));
    return number;
}

std::optional<std::uint32_t> RpcParams::whole(const char* name, std::uint32_t lowest,
                                              std::uint32_t highest) const {
    const std::string expected =
        "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
    const auto value = number(name, lowest, highest, expected);
    if (!value) return std::nullopt;
    if (*value != std::floor(*value)) {
        throw RpcError(rpc_invalid_params,
                       std::string(name) + ": expected " + expected + ", found " + rpc_text(*find(name)));
    }
    return static_cast<std::uint32_t>(*value);
}

std::optional<std::uint64_t> RpcParams::ticks(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) {
        throw RpcError(rpc_invalid_params,
                       std::string(name) +
                           ": expected a whole number of ticks from 0 to 18446744073709551615, found " +
                           rpc_text(*value));
    }
    return value->get<std::uint64_t>();
}

}  // namespace petacq::daemon
