#include "tools/petctl/text/values.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "config/base/decimals.hpp"
#include "daemon/system/quantity_text.hpp"
#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

const json absent;  // NOLINT(cert-err58-cpp): a null allocates nothing

}  // namespace

const json& at(const json& document, std::initializer_list<const char*> path) {
    const json* here = &document;
    for (const char* key : path) {
        if (!here->is_object()) return absent;
        const auto next = here->find(key);
        if (next == here->end()) return absent;
        here = &*next;
    }
    return *here;
}

std::string text_of(const json& value) {
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        return text.empty() ? "-" : printable(text);
    }
    if (value.is_number_integer()) return daemon::grouped(value.dump());
    if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return "-";
}

std::string counted(const json& value, std::string_view one, std::string_view several) {
    return text_of(value).append(" ").append(value == 1 ? one : several);
}

std::string scaled(const json& value, std::string_view unit) {
    return value.is_number() ? daemon::scaled_text(value.get<double>(), unit) : "-";
}

std::string percent(const json& value) {
    if (!value.is_number()) return "-";
    return fmt::format("{:.3g} %", 100 * value.get<double>());
}

std::string with_unit(const json& value, const char* format, std::string_view unit) {
    if (!value.is_number()) return "-";
    return config::without_minus_zero(fmt::format(fmt::runtime(format), value.get<double>())) +
           std::string(unit);
}

std::string duration(const json& seconds) {
    return seconds.is_number() ? daemon::duration_text(seconds.get<double>()) : "-";
}

std::string closed(const json& value) {
    if (!value.is_boolean()) return "-";
    return value.get<bool>() ? "closed" : "NOT CLOSED";
}

void print_json(const json& document) {
    print(printable(document.dump(2, ' ', false, json::error_handler_t::replace), "\n") + "\n");
}

}  // namespace petacq::petctl
