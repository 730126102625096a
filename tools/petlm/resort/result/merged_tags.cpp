#include "tools/petlm/resort/result/merged_tags.hpp"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "daemon/listmode/format.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::petlm {
namespace {

/// The tags of a run, one after the other.
class TagStream {
  public:
    /// Throws daemon::NotListMode for a run without tags.
    TagStream(const std::filesystem::path& run, const daemon::Intervals& within, bool truncated)
        : within_(within), source_(run, daemon::RecordKind::tags) {
        if (truncated) source_.take_truncated();
        source_.select(within.span().start, within.span().end);
        load();
    }
    [[nodiscard]] bool ended() const { return left_.empty(); }
    [[nodiscard]] const gpu::Tag& front() const { return left_.front(); }
    [[nodiscard]] const RecordSource& source() const { return source_; }
    void advance() {
        left_ = left_.subspan(1);
        load();
    }

  private:
    /// Goes to the next tag in the intervals.
    void load() {
        while (true) {
            while (!left_.empty() && !within_.contains(left_.front().time))
                left_ = left_.subspan(1);
            if (!left_.empty() || !source_.next()) return;
            left_ = source_.reader().tags();
        }
    }

    const daemon::Intervals& within_;
    RecordSource source_;
    std::span<const gpu::Tag> left_;
};

bool holds_tags(const std::filesystem::path& run) {
    const std::filesystem::directory_iterator files(run);
    return std::any_of(begin(files), end(files), [](const std::filesystem::directory_entry& entry) {
        return entry.path().extension() == ".plm" && entry.path().filename().string().starts_with("tags");
    });
}

}  // namespace

std::uint64_t merge_tags(const Inputs& inputs, const daemon::Coverage& covered,
                         const std::filesystem::path& output, gpu::TickRange& times) {
    const bool truncated = inputs.whole_blocks;
    const bool one_stream = inputs.heard() == HeardBoards::same;
    const daemon::Intervals within = covered.intervals.value_or(daemon::Intervals());
    std::vector<std::unique_ptr<TagStream>> streams;
    for (const std::filesystem::path& run : inputs.heard_by(inputs.files_at)) {
        try {
            streams.push_back(std::make_unique<TagStream>(run, within, truncated));
        } catch (const daemon::NotListMode&) {
            // One that was interrupted may have a file that says nothing.
            if (!truncated && holds_tags(run)) throw;
        }
    }
    if (streams.empty()) return 0;
    const RecordSource& first = streams.front()->source();
    nlohmann::json description = first.description();
    daemon::Coverage of_tags = covered;
    of_tags.rules = {};
    description["coverage"] = daemon::to_json(of_tags);
    RecordFile out(output, daemon::RecordKind::tags, first.block_bytes(), description);
    std::uint64_t written = 0;
    for (;; ++written) {
        TagStream* next = nullptr;
        for (const auto& stream : streams) {
            if (stream->ended()) continue;
            const bool earlier = next == nullptr || !daemon::in_order(next->front(), stream->front());
            if (earlier) next = stream.get();
        }
        if (next == nullptr) break;
        if (written == 0) times.start = next->front().time;
        times.end = next->front().time;
        const gpu::Tag tag = next->front();
        out.append(std::span(&tag, 1));
        next->advance();
        for (const auto& stream : streams) {
            const bool copy = one_stream && stream.get() != next && !stream->ended() &&
                              daemon::in_order(stream->front(), tag);
            if (copy) stream->advance();
        }
    }
    out.close();
    return written;
}

}  // namespace petacq::petlm
