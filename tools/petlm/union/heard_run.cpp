#include "tools/petlm/union/heard_run.hpp"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/listmode/file_reader.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/space/reserve.hpp"
#include "daemon/tracking/saturate.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {
namespace {

/// The time of the first tag of a run. Absent: it has none, or its file says nothing.
std::optional<std::uint64_t> first_tag_of(const std::filesystem::path& run) {
    try {
        RecordSource tags(run, daemon::RecordKind::tags);
        tags.take_truncated();
        if (tags.next() && !tags.reader().tags().empty()) return tags.reader().tags().front().time;
    } catch (const daemon::NotListMode&) {
        // A run that was interrupted may have a file without a header.
    }
    return std::nullopt;
}

}  // namespace

HeardRun::HeardRun(std::filesystem::path directory)
    : directory_(std::move(directory)),
      document_(std::make_unique<nlohmann::json>(run_document(directory_))) {}

HeardRun::~HeardRun() = default;

std::string HeardRun::name() const {
    return document_->value("run_id", std::string());
}

void HeardRun::look() {
    if (ended_) return;
    bool ended = true;
    if (document_->value("state", nlohmann::json()) == "running") {
        ended = !daemon::is_being_written(directory_);
        // It may have ended between the two looks, or its data have begun.
        if (ended || !knows_start()) *document_ = run_document(directory_);
    }
    if (ended || !singles_) open(ended);
    if (!whole_files_) whole_files_ = singles_ && singles_->extend();
    ended_ = ended;
}

bool HeardRun::knows_start() const {
    try {
        return daemon::coverage_of_run(*document_).anchor.has_value();
    } catch (const std::exception& error) {
        throw BadInput(directory_.string() + ": " + error.what());
    }
}

bool HeardRun::has_begun() const {
    return singles_ && !singles_->blocks().empty() && (ended_ || knows_start());
}

void HeardRun::open(bool ended) {
    if (ended) {
        try {
            // By their index, whatever blocks are damaged. The blocks so far are the first ones of these.
            SinglesFiles whole(directory_);
            singles_.emplace(std::move(whole));
            whole_files_ = true;
            return;
        } catch (const std::exception&) {
            // They were cut off, or there are none.
        }
    }
    if (singles_) return;
    try {
        singles_.emplace(SinglesFiles::followed(directory_));
    } catch (const daemon::NotListMode&) {
        // Nothing has been written yet, or nothing ever was.
    }
}

void HeardRun::leave_out(std::size_t number) {
    const SinglesFiles::SinglesBlock& block = singles_->blocks()[number];
    blocks_left_out_.insert(number);
    left_out_ = left_out_.unite(gpu::TickRange{block.first_time, daemon::add_or_max(block.last_time, 1)});
}

daemon::Coverage HeardRun::coverage() const {
    if (!singles_) {
        daemon::Coverage nothing = daemon::coverage_of_run(*document_);
        nothing.intervals = daemon::Intervals();
        return nothing;
    }
    daemon::Coverage coverage = coverage_of_singles(directory_, *document_);
    if (!ended_ && !coverage.anchor) {
        coverage.intervals = daemon::Intervals();
        return coverage;
    }
    daemon::Intervals times = times_of(coverage, *singles_);
    if (!coverage.intervals && !times.empty()) {
        // Files that were cut off may not say where the run began. Its tags may come before its hits.
        const std::uint64_t start = times.span().start;
        const std::uint64_t first_tag = first_tag_of(directory_).value_or(start);
        if (first_tag < start) times = times.unite(gpu::TickRange{first_tag, start});
    }
    if (!whole_files_ || unwritten() > 0) {
        const auto blocks = singles_->blocks();
        const std::uint64_t end = blocks.empty() ? 0 : daemon::add_or_max(blocks.back().last_time, 1);
        times = times.intersect(gpu::TickRange{0, end});
    }
    coverage.intervals = times.without(left_out_);
    return coverage;
}

std::uint64_t HeardRun::unwritten() const {
    const nlohmann::json::json_pointer at("/ledger/saved_singles/write_failed");
    const bool known = document_->contains(at) && (*document_)[at].is_number_unsigned();
    return known ? (*document_)[at].get<std::uint64_t>() : 0;
}

std::string HeardRun::damage() const {
    if (!singles_) return "it has no singles";
    if (unwritten() > 0) return fmt::format("{} singles could not be written", unwritten());
    std::string why;
    const auto state = document_->value("state", nlohmann::json());
    const bool cut_off = state == "running" || state == "interrupted";  // then it is no news
    if (!whole_files_ && !cut_off) why = "its singles are cut off: their whole blocks are taken";
    if (!blocks_left_out_.empty()) {
        why += fmt::format("{}{} blocks of its singles cannot be read", why.empty() ? "" : "; ",
                           blocks_left_out_.size());
    }
    return why;
}

}  // namespace petacq::petlm
