#include "tools/petlm/records/recover.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/host/progress_line.hpp"
#include "daemon/listmode/file.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/run/directory.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

daemon::Condition scan(const std::filesystem::path& file) {
    daemon::ListModeReader reader(file);
    daemon::ProgressLine progress("scanning " + file.filename().string(), reader.file_bytes());
    while (reader.next())
        progress.show(reader.block_offset());
    return reader.condition();
}

/// The description of the file, with a note that records are missing.
nlohmann::json described(const daemon::ListModeReader& reader, const daemon::Condition& condition) {
    auto description = reader.description();
    if (condition.state != daemon::FileState::complete) {
        description["recovered"] = {{"from", reader.path().filename().string()},
                                    {"state", daemon::name_of(condition.state)},
                                    {"missing_records", condition.missing_records},
                                    {"lost_bytes", condition.damaged_bytes + condition.tail_bytes}};
    }
    return description;
}

void copy_blocks(daemon::ListModeReader& reader, daemon::ListModeFile& out) {
    daemon::ProgressLine progress("copying " + reader.path().filename().string(), reader.file_bytes());
    std::vector<std::byte> block;
    while (reader.next()) {
        const auto payload = reader.payload();
        block.resize(sizeof(daemon::BlockHeader) + payload.size());
        std::memcpy(block.data() + sizeof(daemon::BlockHeader), payload.data(), payload.size());
        out.write_block(block);
        progress.show(reader.block_offset());
    }
    out.close();
}

void report(const std::filesystem::path& file, const daemon::Condition& condition) {
    std::cout << fmt::format("{}: {}\n", file.string(), condition.summary());
    for (const auto& damage : condition.damage) {
        std::cout << fmt::format("missing: at offset {}, {} bytes: {}\n", damage.offset, damage.bytes,
                                 damage.what);
    }
    if (condition.tail_bytes != 0) {
        std::cout << fmt::format("missing: {} bytes after the last whole block\n", condition.tail_bytes);
    }
}

void recover_file(const std::filesystem::path& file, const daemon::Condition& condition,
                  const std::filesystem::path& output) {
    daemon::ListModeReader reader(file);
    daemon::ListModeFile out(output, reader.kind(), reader.header().block_bytes,
                             described(reader, condition));
    copy_blocks(reader, out);
    report(file, condition);
    std::cout << fmt::format("{}: {} blocks, {} records recovered\n", output.string(), out.blocks(),
                             out.records());
}

/// Links the file where the file system can: a complete file never changes again.
void link_or_copy(const std::filesystem::path& file, const std::filesystem::path& output) {
    std::error_code failed;
    std::filesystem::create_hard_link(file, output, failed);
    if (failed) std::filesystem::copy_file(file, output);
}

/// Writes run.json with the state of the recovered files.
void describe_run(const std::filesystem::path& run, const std::filesystem::path& output,
                  const nlohmann::json& files) {
    std::string why;
    nlohmann::json document = run_json(run, why);
    if (document.is_null()) {
        std::cout << why << "; " << output.string() << " has no run.json\n";
        return;
    }
    document["recovered"] = {{"from", std::filesystem::absolute(run).string()}, {"files", files}};
    daemon::write_json_atomically(output / daemon::run_file, document);
    const auto histograms = run / daemon::histograms_file;
    if (std::filesystem::exists(histograms)) {
        std::filesystem::copy_file(histograms, output / histograms.filename());
    }
}

int recover_run(std::filesystem::path run, std::filesystem::path output) {
    if (!run.has_filename()) run = run.parent_path();  // trailing slash
    if (output.empty()) output = run.string() + ".recovered";
    const auto files = listmode_files(run);
    if (!std::filesystem::create_directory(output)) {
        throw UsageError(output.string() + " exists, nothing was written; name another with --output");
    }
    int status = ok;
    nlohmann::json states;
    for (const auto& file : files) {
        const std::string name = file.filename().string();
        try {
            const daemon::Condition condition = scan(file);
            states[name] = {{"state", daemon::name_of(condition.state)},
                            {"records", condition.records},
                            {"missing_records", condition.missing_records},
                            {"lost_bytes", condition.damaged_bytes + condition.tail_bytes}};
            if (condition.state == daemon::FileState::complete) {
                link_or_copy(file, output / name);
                std::cout << fmt::format("{}: {}\n", file.string(), condition.summary());
            } else {
                recover_file(file, condition, output / name);
            }
            if (condition.state == daemon::FileState::damaged) status = has_problems;
        } catch (const daemon::NotListMode& error) {
            states[name] = {{"state", "lost"}, {"why", error.what()}};
            std::cout << error.what() << ": nothing of it can be recovered\n";
            status = has_problems;
        }
    }
    describe_run(run, output, states);
    return status;
}

}  // namespace

int recover(const RecoverOptions& options) {
    auto [target, output] = options;
    if (std::filesystem::is_directory(target)) return recover_run(target, output);
    if (output.empty()) {
        output = target;
        output.replace_extension(".recovered.plm");
    }
    if (std::filesystem::exists(output)) {
        throw UsageError(output.string() + " exists, nothing was written; name another with --output");
    }
    const daemon::Condition condition = scan(target);
    recover_file(target, condition, output);
    return condition.state == daemon::FileState::damaged ? has_problems : ok;
}

}  // namespace petacq::petlm
