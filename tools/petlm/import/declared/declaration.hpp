// One import's declarations while they are taken, a subject at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/petlm/import/declared/declared.hpp"

namespace petacq::petlm {

struct Declaration {
    const Declared& said;
    const DeclaredFile& file;
    daemon::Coverage coverage;
    nlohmann::json& declared;  ///< as in WithDeclared
    nlohmann::json& source;
    DeclaredLimits limits{};

    [[noreturn]] void contradicts(const std::string& declared_text, const std::string& told) const;
    [[nodiscard]] bool is_unknown(std::string_view phrase) const;
    /// In the place of the phrase, if it is there, what remains unknown.
    void still_unknown(std::string_view phrase, const std::vector<std::string>& rest);
    void now_known(std::string_view phrase) { still_unknown(phrase, {}); }
};

/// Each throws UsageError. The start of the records comes from their times, and the activity then needs it.
void declare_rules(Declaration& d);
void declare_times(Declaration& d);
void declare_source(Declaration& d);

}  // namespace petacq::petlm
