#include "tools/petlm/records/gating/gate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/covered_seconds.hpp"
#include "tools/petlm/records/delayeds_weight.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::petlm {
namespace {

using daemon::RecordKind;

struct GateBin {
    std::unique_ptr<RecordFile> file;
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
    double randoms = 0;                 ///< delayeds times their weight
    std::uint64_t triples = 0;          ///< of prompts
    std::uint64_t delayed_triples = 0;  ///< of prompts
    double live_s = 0;
};

void check_options(const GateOptions& o) {
    check_phases(o, "--bins");
    if (o.output.empty() && !std::filesystem::is_directory(o.target))
        throw UsageError("--output: the phases of a file need a directory");
}

double tick_s_of(const RecordSource& source) {
    return tick_ps_of(source.description(), source.reader().path()) * 1e-12;
}

RecordKind kind_of(const GateOptions& o) {
    const bool triples = std::filesystem::is_directory(o.target)
                             ? o.triples
                             : daemon::ListModeReader(o.target).kind() == RecordKind::triples;
    return triples ? RecordKind::triples : RecordKind::coincidences;
}

void add_to(GateBin& bin, const gpu::Coincidence& pair, DelayedsWeight& weight) {
    if (pair.kind == gpu::Kind::prompt) {
        ++bin.prompts;
    } else {
        ++bin.delayeds;
        bin.randoms += weight.at(pair.time);
    }
}

void add_to(GateBin& bin, const gpu::Triple& triple, DelayedsWeight& /*weight*/) {
    if (triple.pair.kind != gpu::Kind::prompt) return;
    ++(triple.third == gpu::ThirdPhoton::delayed ? bin.delayed_triples : bin.triples);
}

/// Counts those outside all cycles.
template <class Record>
std::uint64_t sort_records(RecordSource& source, const Cycles& cycles, DelayedsWeight& weight,
                           std::vector<GateBin>& bins) {
    daemon::ProgressLine progress("gating", source.total_bytes());
    std::uint64_t outside = 0;
    std::vector<std::vector<Record>> waiting(bins.size());  // of one block
    while (source.next()) {
        progress.show(source.bytes_done());
        for (const Record& record : records_of<Record>(source.reader())) {
            const auto number =
                cycles.bin_of(daemon::time_of(record), static_cast<std::uint32_t>(bins.size()));
            if (!number) {
                ++outside;
                continue;
            }
            waiting[*number].push_back(record);
            add_to(bins[*number], record, weight);
        }
        for (std::size_t i = 0; i < bins.size(); ++i) {
            bins[i].file->append(std::span<const Record>(waiting[i]));
            waiting[i].clear();
        }
    }
    return outside;
}

/// A row for each bin, with the columns that name_columns() names.
std::vector<std::vector<std::string>> rows_of(const std::vector<GateBin>& bins, RecordKind kind) {
    std::vector<std::vector<std::string>> rows;
    const auto count = static_cast<double>(bins.size());
    for (std::size_t i = 0; i < bins.size(); ++i) {
        const GateBin& b = bins[i];
        const auto rate = [&](double records) { return b.live_s > 0 ? records / b.live_s : 0.0; };
        std::vector<std::string>& row = rows.emplace_back();
        row = {fmt::format("{}", i + 1), fmt::format("{}", static_cast<double>(i) / count),
               fmt::format("{}", static_cast<double>(i + 1) / count), fmt::format("{:.9g}", b.live_s)};
        const auto add = [&](std::initializer_list<std::uint64_t> counts,
                             std::initializer_list<double> rates) {
            for (const std::uint64_t number : counts)
                row.push_back(fmt::format("{}", number));
            for (const double number : rates)
                row.push_back(fmt::format("{:.6g}", number));
        };
        if (kind == RecordKind::triples) {
            add({b.triples, b.delayed_triples},
                {rate(static_cast<double>(b.triples)), rate(static_cast<double>(b.delayed_triples))});
            continue;
        }
        const auto prompts = static_cast<double>(b.prompts);
        const auto delayeds = static_cast<double>(b.delayeds);
        add({b.prompts, b.delayeds},
            {rate(prompts), rate(delayeds), rate(b.randoms), rate(prompts - b.randoms)});
    }
    return rows;
}

std::vector<std::string> name_columns(RecordKind kind) {
    if (kind == RecordKind::triples) {
        return {"bin",     "phase_from",      "phase_to",      "live_s",
                "triples", "delayed_triples", "triples_per_s", "delayed_triples_per_s"};
    }
    return {"bin",      "phase_from",    "phase_to",       "live_s",        "prompts",
            "delayeds", "prompts_per_s", "delayeds_per_s", "randoms_per_s", "net_per_s"};
}

}  // namespace

int gate(const GateOptions& options) {
    check_options(options);
    const RecordKind kind = kind_of(options);
    RecordSource source(options.target, kind);
    const daemon::Coverage& whole = source.coverage();
    const double tick_s = tick_s_of(source);
    const Cycles cycles = cycles_of(options.target, whole, options, tick_s);
    const char* const suffix = kind == RecordKind::triples ? "-triples" : "";
    const auto directory = options.output.empty()
                               ? options.target / fmt::format("gate-{}{}", options.channel, suffix)
                               : options.output;
    Outputs outputs(options.force);
    outputs.make_directory(directory);
    const auto table = directory / "phases.csv";
    outputs.claim(table);
    const auto file_of = [&](std::uint32_t bin) {
        return directory / fmt::format("phase-{:02}.plm", bin + 1);
    };
    for (std::uint32_t i = 0; i < options.bins; ++i)
        outputs.claim(file_of(i));
    // With --force, the files of an earlier run with more bins go.
    for (std::uint32_t i = options.bins; i < max_phases; ++i) {
        if (std::filesystem::exists(file_of(i))) outputs.claim(file_of(i));
    }

    nlohmann::json description = source.description();
    nlohmann::json& gate = description["gate"];
    gate = {{"channel", options.channel},
            {"bins", options.bins},
            {"cycles", cycles.accepted().size()},
            {"cycles_rejected", cycles.rejected()},
            {"period_s", cycles.mean_period() * tick_s},
            {"period_spread_s", cycles.spread_of_period() * tick_s}};
    std::vector<GateBin> bins(options.bins);
    for (std::uint32_t i = 0; i < options.bins; ++i) {
        const daemon::Coverage part = daemon::part_of(whole, cycles.times_of(i, options.bins));
        description["coverage"] = daemon::to_json(part);
        gate["bin"] = i + 1;
        gate["live_ticks"] = part.ticks();
        bins[i].live_s = static_cast<double>(part.ticks()) * tick_s;
        bins[i].file = std::make_unique<RecordFile>(Outputs::partial(file_of(i)), kind, source.block_bytes(),
                                                    description);
    }
    DelayedsWeight weight(run_directories(options.target, whole), whole.rules);
    const std::uint64_t outside = kind == RecordKind::triples
                                      ? sort_records<gpu::Triple>(source, cycles, weight, bins)
                                      : sort_records<gpu::Coincidence>(source, cycles, weight, bins);
    for (GateBin& bin : bins)
        bin.file->close();
    const std::vector<std::string> columns = name_columns(kind);
    const auto rows = rows_of(bins, kind);
    std::string text = fmt::format("{}\n", fmt::join(columns, ","));
    nlohmann::json of_bins = nlohmann::json::array();
    for (const std::vector<std::string>& row : rows) {
        text += fmt::format("{}\n", fmt::join(row, ","));
        nlohmann::json& bin = of_bins.emplace_back();
        for (std::size_t i = 0; i < columns.size(); ++i)
            bin[columns[i]] = nlohmann::json::parse(row[i]);
    }
    write_text(table, text);
    outputs.commit();
    const bool delayeds =
        std::any_of(bins.begin(), bins.end(), [](const GateBin& b) { return b.delayeds != 0; });
    config::Written written{
        .facts = gate,
        .text = fmt::format(
            "{}: {} cycles of {:.6g} s, spread {:.3g} s; {} cycles rejected, {} {} outside the accepted "
            "cycles\n{}",
            directory.string(), cycles.accepted().size(), cycles.mean_period() * tick_s,
            cycles.spread_of_period() * tick_s, cycles.rejected(), outside, daemon::name_of(kind), text),
        .files = outputs.written(),
        .warnings = {}};
    for (const char* const of_one : {"bin", "live_ticks"})
        written.facts.erase(of_one);
    written.facts["bins"] = std::move(of_bins);
    written.facts["kind"] = daemon::name_of(kind);
    written.facts["records_outside"] = outside;
    if (const std::string lack = data_that_lack(options.target, whole); !lack.empty())
        written.warnings.push_back(lack + "; the rates are not corrected for that");
    if (delayeds && !weight.trouble().empty()) {
        written.warnings.push_back("weights of delayeds are not known, so randoms are not exact: " +
                                   weight.trouble());
    }
    config::print_written(std::move(written), options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
