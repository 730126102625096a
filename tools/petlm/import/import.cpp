#include "tools/petlm/import/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/declared/declared.hpp"
#include "tools/petlm/import/result.hpp"
#include "tools/petlm/import/sorted.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

struct ForeignFormat {
    const char* name;
    ForeignFile (*open)(const ForeignInput&);
    bool delayeds;           ///< may have another file for them
    bool crystals;           ///< numbers crystals in its own way
    bool crystals_required;  ///< and never as petacqd does
};

constexpr std::array<ForeignFormat, 6> formats = {{{"csv", open_csv, true, true, false},
                                                   {"hdf5", open_hdf5, false, false, false},
                                                   {"castor", open_castor, true, true, false},
                                                   {"safir", open_safir, false, true, false},
                                                   {"petsys", open_petsys, false, true, true},
                                                   {"coinstruct", open_coinstruct, true, false, false}}};

const ForeignFormat& format_named(const std::string& name) {
    for (const ForeignFormat& format : formats)
        if (name == format.name) return format;
    throw UsageError(fmt::format("format '{}': expected one of {}", name, fmt::join(import_formats(), ", ")));
}

void check_options(const ImportOptions& o, const ForeignFormat& format) {
    const auto only = [&](bool given, const char* option, const char* who) {
        if (given) throw UsageError(fmt::format("{} is for {}, not for {}", option, who, o.format));
    };
    const bool petsys = o.format == "petsys";
    only(o.delayeds && !format.delayeds, "--delayeds", "castor, coinstruct and csv");
    only(o.crystals && !format.crystals, "--crystals", "castor, csv, petsys and safir");
    only(!o.columns.empty() && o.format != "csv", "--columns", "csv");
    only(!o.records.empty() && !petsys, "--records", "petsys");
    only(o.keV_per_unit && !petsys, "--kev-per-unit", "petsys");
    if (format.crystals_required && !o.crystals) {
        throw UsageError(fmt::format(
            "{}: expected --crystals: a table crystal,number_in_file with the crystal of each channel",
            o.format));
    }
    if (!o.scanner && o.format != "hdf5") throw UsageError(o.format + ": expected --scanner");
}

/// Only full blocks are written, but for the last one: the bytes do not depend on the speed of the disk.
constexpr std::uint32_t never_ms = UINT32_MAX;

/// Writes the records of all files as one sequence.
template <class Record>
daemon::ListModePart write_records(std::span<ForeignFile> files, const ImportOptions& options,
                                   daemon::RecordKind kind, const std::filesystem::path& file,
                                   const nlohmann::json& description, const DeclaredLimits& limits) {
    std::vector<std::unique_ptr<Sorted<Record>>> sorted;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto* const take = std::get_if<TakeRecords<Record>>(&files[i].records);
        if (take == nullptr) {
            throw BadInput(fmt::format("{}: holds other records than {}", options.delayeds->string(),
                                       options.input.string()));
        }
        sorted.push_back(
            std::make_unique<Sorted<Record>>(*take, (i == 0 ? options.input : *options.delayeds).string()));
        bytes += files[i].bytes;
    }
    const auto partial = Outputs::partial(file);
    std::filesystem::remove(partial);  // of an import that was killed
    daemon::ListModeOptions how;
    how.kind = kind;
    how.sync_interval_ms = never_ms;
    daemon::ListModeWriter writer(partial, how, description);
    constexpr std::size_t piece = 4096;
    gpu::RecordVector<Record> out;
    out.reserve(piece);
    daemon::ProgressLine progress("importing", bytes);
    while (true) {
        Sorted<Record>* next = nullptr;
        for (const auto& one : sorted) {
            if (one->front() == nullptr) continue;
            if (next == nullptr || !daemon::in_order(*next->front(), *one->front())) next = one.get();
        }
        if (next == nullptr) break;
        limits.check(*next->front());
        out.push_back(*next->front());
        next->pop();
        if (out.size() < piece) continue;
        writer.append(std::move(out));
        out.clear();
        if (const std::string why = writer.failure(); !why.empty()) throw config::IoError(why);
        std::uint64_t done = 0;
        for (const ForeignFile& each : files)
            done += each.bytes_done();
        progress.show(done);
    }
    writer.append(std::move(out));
    writer.finish();
    if (const std::string why = writer.failure(); !why.empty()) throw config::IoError(why);
    daemon::ListModePart part = writer.parts().front();
    part.name = file.filename().string();
    return part;
}

template <class Record>
daemon::RecordKind kind_of() {
    if constexpr (std::is_same_v<Record, gpu::Single>) return daemon::RecordKind::singles;
    if constexpr (std::is_same_v<Record, gpu::Tag>) return daemon::RecordKind::tags;
    if constexpr (std::is_same_v<Record, gpu::Triple>) return daemon::RecordKind::triples;
    return daemon::RecordKind::coincidences;
}

daemon::RecordKind kind_of(const ForeignFile& file) {
    return std::visit([]<class Record>(const TakeRecords<Record>&) { return kind_of<Record>(); },
                      file.records);
}

/// As its user knows it, who has not seen what another program has made of it.
std::string name_of_file(const ImportOptions& options, const ForeignFile& file) {
    return file.made_of ? (*file.made_of)["from"].front().get<std::string>() : options.input.string();
}

const char* file_name_of(daemon::RecordKind kind) {
    switch (kind) {
        case daemon::RecordKind::singles:
            return daemon::singles_file;
        case daemon::RecordKind::tags:
            return daemon::tags_file;
        case daemon::RecordKind::triples:
            return daemon::triples_file;
        default:
            return daemon::coincidences_file;
    }
}

/// An import replaces what an import has made, and never what was acquired.
void check_replaced_run(const std::filesystem::path& directory) {
    if (files_of_run(directory).empty()) return;
    std::string why;
    const nlohmann::json run = run_json(directory, why);
    if (run.is_object() && run.contains("imported")) return;
    throw UsageError(directory.string() +
                     ": has a run that was not imported, as far as its run.json tells; --force replaces only "
                     "imported ones, expected another place");
}

/// Of the run that was there before nothing stays: it would be taken for a part of this one. run.json comes
/// last, so that it never tells of records that are not there.
void claim_run(Outputs& outputs, const std::filesystem::path& directory,
               const std::filesystem::path& records) {
    const auto run = directory / daemon::run_file;
    outputs.claim(records);
    for (const auto& old : files_of_run(directory))
        if (old != records && old != run) outputs.claim(old);
    outputs.claim(run);
}

}  // namespace

std::vector<std::string> import_formats() {
    std::vector<std::string> names;
    for (const ForeignFormat& format : formats)
        names.emplace_back(format.name);
    return names;
}

std::optional<gpu::Coincidence> pair_of(gpu::Single a, gpu::Single b, gpu::Kind kind) {
    if (!daemon::in_order(a, b)) std::swap(a, b);
    if (b.time - a.time > UINT32_MAX) return std::nullopt;
    return gpu::Coincidence{
        a.time, static_cast<std::uint32_t>(b.time - a.time), a.crystal, b.crystal, a.energy, b.energy, kind};
}

int import_records(const ImportOptions& options) {
    const ForeignFormat& format = format_named(options.format);
    check_options(options, format);
    const config::Scanner scanner =
        options.scanner ? config::load_scanner(*options.scanner) : scanner_in_hdf5(options.input);
    Outputs outputs(options.force);
    const bool one_file = is_file_of_import(options.output);
    if (!one_file && options.force) check_replaced_run(options.output);
    if (!one_file) outputs.make_directory(options.output);
    std::vector<ForeignFile> files;
    files.push_back(format.open({options, options.input, gpu::Kind::prompt, scanner}));
    if (options.delayeds)
        files.push_back(format.open({options, *options.delayeds, gpu::Kind::delayed, scanner}));
    const WithDeclared with =
        with_declared(coverage_of_import(options, files, scanner), options.declared,
                      {name_of_file(options, files.front()), kind_of(files.front()), files.front().stated});
    const daemon::Coverage& coverage = with.coverage;
    const nlohmann::json description = description_of_import(options, files, scanner, with);
    const daemon::ListModePart part = std::visit(
        [&]<class Record>(const TakeRecords<Record>&) {
            const daemon::RecordKind kind = kind_of<Record>();
            const auto file = one_file ? options.output : options.output / file_name_of(kind);
            if (one_file) {
                outputs.claim(file);
            } else {
                claim_run(outputs, options.output, file);
            }
            auto written = write_records<Record>(files, options, kind, file, description, with.limits);
            if (!one_file) {
                const nlohmann::json run =
                    run_of_import(options, files, scanner, coverage, description, kind, written);
                write_text(options.output / daemon::run_file, run.dump(2) + '\n');
            }
            return written;
        },
        files.front().records);
    outputs.commit();
    config::Written written{
        .facts = {{"format", options.format}, {"records", part.records}},
        .text = fmt::format("{}: {} records imported\n", options.output.string(), part.records),
        .files = outputs.written(),
        .warnings = {}};
    for (const ForeignFile& file : files)
        for (const std::string& remark : file.remarks())
            written.warnings.push_back(remark);
    for (const std::string& what : coverage.unknown)
        written.warnings.push_back(fmt::format(
            "{} does not tell {}", description["imported"]["from"].front().get<std::string>(), what));
    config::print_written(std::move(written), options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
