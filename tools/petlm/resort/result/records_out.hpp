// The coincidences and the triples of a run, as shards make them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "daemon/listmode/series.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// The files, under their partial names. Only full blocks are written, but for the last one: the bytes do not
/// depend on how fast the search is. No files if the rules search for nothing. One thread at a time.
class RecordsOut {
  public:
    /// Creates them. `output`: a file of coincidences, or the directory of a run. `covered`: what the
    /// coincidences cover. `has_closing`: close() gets the inputs and what is covered as they are at the end.
    RecordsOut(const Inputs& inputs, const Engines& engines, const daemon::Coverage& covered,
               const std::filesystem::path& output, bool has_closing = false);
    ~RecordsOut();
    RecordsOut(const RecordsOut&) = delete;
    RecordsOut& operator=(const RecordsOut&) = delete;

    /// The records of the next shard. Throws std::runtime_error if the disk takes no more.
    void append(ShardResult& shard);

    struct Files {
        std::vector<daemon::ListModePart> coincidences;
        std::vector<daemon::ListModePart> triples;
    };
    /// The files, which are complete under their partial names; here they have their final ones.
    Files close();
    Files close(const Inputs& inputs, const daemon::Coverage& covered);

  private:
    class OfKind;

    const Engines& engines_;
    std::unique_ptr<OfKind> coincidences_;
    std::unique_ptr<OfKind> triples_;
};

/// The members of a final description that the header of a file does not have or has otherwise: its closing
/// description.
nlohmann::json closing_of(const nlohmann::json& header, const nlohmann::json& final_description);

}  // namespace petacq::petlm
