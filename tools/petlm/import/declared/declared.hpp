// Completes the coverage of an imported file with the rules, times and source that the user declares.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/format.hpp"
#include "tools/petlm/import/declared/limits.hpp"
#include "tools/petlm/import/declared/options.hpp"

namespace petacq::petlm {

/// The file that the declarations are about.
struct DeclaredFile {
    std::string name;
    daemon::RecordKind kind;
    std::optional<daemon::Intervals> times;  ///< that it tells
};

struct WithDeclared {
    daemon::Coverage coverage;
    std::shared_ptr<const nlohmann::json> declared;  ///< what was taken, for people; empty: nothing
    /// The members that the declared source adds to the object "operator" of run.json; empty: none.
    std::shared_ptr<const nlohmann::json> source;
    DeclaredLimits limits;
};

/// `coverage`: as far as the file tells it. What it tells may be declared, too, if it is the same. Throws
/// UsageError for what contradicts it, cannot be true of these records, or is not enough.
WithDeclared with_declared(daemon::Coverage coverage, const Declared& said, const DeclaredFile& file);

}  // namespace petacq::petlm
