#include "tools/petlm/resort/result/records_out.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "daemon/listmode/writer.hpp"
#include "daemon/run/directory.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t never_ms = UINT32_MAX;

}  // namespace

/// The list-mode files that the records of a kind go to, side by side. Each has a thread that writes it.
class RecordsOut::OfKind {
  public:
    OfKind(daemon::RecordKind kind, const std::filesystem::path& path, std::uint32_t files,
           std::uint32_t block_bytes, nlohmann::json header, bool has_closing)
        : kind_(kind),
          header_(std::move(header)),
          writer_(Outputs::partial(path), options(files, block_bytes, has_closing), header_) {}

    template <class Record>
    void append(gpu::RecordVector<Record>& records) {
        if (!records.empty()) writer_.append(std::move(records));
    }
    void check() const {
        if (const std::string why = writer_.failure(); !why.empty()) throw std::runtime_error(why);
    }
    [[nodiscard]] daemon::RecordKind kind() const { return kind_; }
    void close_with(const nlohmann::json& final_description) {
        closing_ = closing_of(header_, final_description);
    }
    std::vector<daemon::ListModePart> close() {
        writer_.finish();
        check();
        std::vector<daemon::ListModePart> files = writer_.parts();
        for (daemon::ListModePart& file : files)
            file.name = Outputs::final_name(file.name).string();
        return files;
    }

  private:
    daemon::ListModeOptions options(std::uint32_t files, std::uint32_t block_bytes, bool has_closing) {
        daemon::ListModeOptions options;
        options.kind = kind_;
        options.files = files;
        options.block_bytes = block_bytes;
        options.sync_interval_ms = never_ms;
        if (has_closing) options.closing = [this](const daemon::PartTimes&) { return closing_; };
        return options;
    }

    const daemon::RecordKind kind_;
    const nlohmann::json header_;
    nlohmann::json closing_ = nlohmann::json::object();  ///< set before the writer asks for it
    daemon::ListModeWriter writer_;
};

nlohmann::json closing_of(const nlohmann::json& header, const nlohmann::json& final_description) {
    nlohmann::json closing = nlohmann::json::object();
    for (const auto& [key, value] : final_description.items())
        if (!header.contains(key) || header[key] != value) closing[key] = value;
    return closing;
}

RecordsOut::RecordsOut(const Inputs& inputs, const Engines& engines, const daemon::Coverage& covered,
                       const std::filesystem::path& output, bool has_closing)
    : engines_(engines) {
    if (!engines.rules.search) return;
    const bool one_file = is_one_file(output);
    const auto open = [&](daemon::RecordKind kind, const std::filesystem::path& path) {
        return std::make_unique<OfKind>(kind, path, one_file ? 1 : engines.configuration.listmode.files,
                                        inputs.singles.front().block_bytes(),
                                        engines.description(kind, inputs, covered), has_closing);
    };
    coincidences_ =
        open(daemon::RecordKind::coincidences, one_file ? output : output / daemon::coincidences_file);
    if (engines.rules.gammas && !one_file)
        triples_ = open(daemon::RecordKind::triples, output / daemon::triples_file);
}

RecordsOut::~RecordsOut() = default;

void RecordsOut::append(ShardResult& shard) {
    if (coincidences_) {
        for (auto& records : shard.coincidences)
            coincidences_->append(records);
        coincidences_->check();
    }
    if (triples_) {
        triples_->append(shard.triples);
        triples_->check();
    }
}

RecordsOut::Files RecordsOut::close() {
    Files files;
    if (coincidences_) files.coincidences = coincidences_->close();
    if (triples_) files.triples = triples_->close();
    return files;
}

RecordsOut::Files RecordsOut::close(const Inputs& inputs, const daemon::Coverage& covered) {
    for (OfKind* const of_kind : {coincidences_.get(), triples_.get()})
        if (of_kind != nullptr) of_kind->close_with(engines_.description(of_kind->kind(), inputs, covered));
    return close();
}

}  // namespace petacq::petlm
