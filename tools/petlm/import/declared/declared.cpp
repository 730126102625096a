#include "tools/petlm/import/declared/declared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/declared/declaration.hpp"

namespace petacq::petlm {

void Declaration::contradicts(const std::string& declared_text, const std::string& told) const {
    throw UsageError(
        fmt::format("{}: {} tells {}; expected that, or nothing", declared_text, file.name, told));
}

bool Declaration::is_unknown(std::string_view phrase) const {
    return !daemon::tells(coverage, phrase);
}

void Declaration::still_unknown(std::string_view phrase, const std::vector<std::string>& rest) {
    std::vector<std::string>& unknown = coverage.unknown;
    const auto found = std::find(unknown.begin(), unknown.end(), phrase);
    if (found != unknown.end()) unknown.insert(unknown.erase(found), rest.begin(), rest.end());
}

WithDeclared with_declared(daemon::Coverage coverage, const Declared& said, const DeclaredFile& file) {
    nlohmann::json declared = nlohmann::json::object();
    nlohmann::json source = nlohmann::json::object();
    Declaration d{said, file, std::move(coverage), declared, source};
    d.limits.file = file.name;
    declare_rules(d);
    declare_times(d);
    declare_source(d);
    return {std::move(d.coverage), std::make_shared<const nlohmann::json>(std::move(declared)),
            std::make_shared<const nlohmann::json>(std::move(source)), std::move(d.limits)};
}

}  // namespace petacq::petlm
