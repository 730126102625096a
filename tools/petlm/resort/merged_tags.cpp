#include "tools/petlm/resort/merged_tags.hpp"

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
    TagStream(const std::filesystem::path& run, Interval within, bool truncated)
        : within_(within), source_(run, daemon::RecordKind::tags) {
        if (truncated) source_.take_truncated();
        source_.select(within.from, within.to);
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
    /// Goes to the next tag in the interval.
    void load() {
        while (true) {
            while (!left_.empty() && left_.front().time < within_.from)
                left_ = left_.subspan(1);
            if (!left_.empty() && left_.front().time >= within_.to) left_ = {};
            if (!left_.empty() || !source_.next()) return;
            left_ = source_.reader().tags();
        }
    }

    const Interval within_;
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

std::uint64_t merge_tags(std::span<const std::filesystem::path> runs, Interval within,
                         const std::filesystem::path& output, Interval& times, bool truncated) {
    std::vector<std::unique_ptr<TagStream>> streams;
    for (const std::filesystem::path& run : runs) {
        try {
            streams.push_back(std::make_unique<TagStream>(run, within, truncated));
        } catch (const daemon::NotListMode&) {
            // One that was interrupted may have a file that says nothing.
            if (!truncated && holds_tags(run)) throw;
        }
    }
    if (streams.empty()) return 0;
    const RecordSource& first = streams.front()->source();
    RecordFile out(output, daemon::RecordKind::tags, first.block_bytes(), first.description());
    std::uint64_t written = 0;
    for (;; ++written) {
        TagStream* next = nullptr;
        for (const auto& stream : streams) {
            if (stream->ended()) continue;
            const bool earlier = next == nullptr || !daemon::in_order(next->front(), stream->front());
            if (earlier) next = stream.get();
        }
        if (next == nullptr) break;
        if (written == 0) times.from = next->front().time;
        times.to = next->front().time;
        out.append(std::span(&next->front(), 1));
        next->advance();
    }
    out.close();
    return written;
}

}  // namespace petacq::petlm
