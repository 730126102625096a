#include "tools/petlm/union/united_singles.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "gpu/interval_sums.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

constexpr std::size_t handed_over = 4096;  ///< hits at once

bool before(const gpu::Single& a, const gpu::Single& b) {
    if (a.time != b.time) return a.time < b.time;
    return std::tie(a.crystal, a.energy) < std::tie(b.crystal, b.energy);
}

}  // namespace

/// The hits of a run, one after the other.
class UnitedSingles::RunHits {
  public:
    explicit RunHits(HeardRun& run) : run_(&run) {}

    /// Whether there is a hit.
    bool load() {
        const SinglesFiles* const files = run_->singles();
        while (left_.empty() && files != nullptr && next_ < files->blocks().size()) {
            const std::size_t number = next_++;
            try {
                left_ = files->read(files->blocks()[number], memory_);
            } catch (const BadInput&) {
                run_->leave_out(number);
            }
        }
        return !left_.empty();
    }
    /// REQUIRES: load()
    [[nodiscard]] const gpu::Single& front() const { return left_.front(); }
    void advance() { left_ = left_.subspan(1); }
    [[nodiscard]] const HeardRun* run() const { return run_; }
    /// Once, for the first hit.
    bool is_first() { return std::exchange(first_, false); }
    /// Nothing follows what load() gives.
    [[nodiscard]] bool ended() const { return run_->ended(); }

  private:
    HeardRun* run_;
    std::size_t next_ = 0;  ///< block
    daemon::LoadedBlock memory_;
    std::span<const gpu::Single> left_;
    bool first_ = true;
};

UnitedSingles::UnitedSingles(const std::filesystem::path& file, std::uint32_t block_bytes,
                             const nlohmann::json& description, const config::Geometry& geometry)
    : file_(file, daemon::RecordKind::singles, block_bytes, description, true),
      module_of_(gpu::modules_of_crystals(geometry)),
      origins_(geometry.bdm_count) {}

UnitedSingles::~UnitedSingles() = default;

void UnitedSingles::advance(std::span<HeardRun* const> runs) {
    for (HeardRun* const run : runs) {
        const bool known =
            std::any_of(runs_.begin(), runs_.end(), [&](const auto& r) { return r->run() == run; });
        if (!known) runs_.push_back(std::make_unique<RunHits>(*run));
    }
    while (!overtaken_) {
        std::size_t first = runs_.size();
        bool known = true;
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if (!runs_[i]->load()) {
                known = known && runs_[i]->ended();
                continue;
            }
            const bool late = runs_[i]->is_first() && latest_ && !before(*latest_, runs_[i]->front());
            overtaken_ = overtaken_ || late;
            if (first == runs_.size() || before(runs_[i]->front(), runs_[first]->front())) {
                first = i;
            }
        }
        if (overtaken_ || !known || first == runs_.size()) break;
        const gpu::Single hit = runs_[first]->front();
        runs_[first]->advance();
        bool several = false;
        for (std::size_t i = first + 1; i < runs_.size(); ++i) {
            if (!runs_[i]->load() || before(hit, runs_[i]->front())) continue;
            runs_[i]->advance();
            several = true;
        }
        count(hit, first, several);
        write(hit);
    }
    file_.append(std::span<const gpu::Single>(written_));
    written_.clear();
}

void UnitedSingles::close(const nlohmann::json& closing) {
    file_.close(closing);
}

std::vector<HitOrigins> UnitedSingles::origins(std::span<HeardRun* const> runs) const {
    std::vector<HitOrigins> ordered = origins_;
    for (HitOrigins& module : ordered) {
        const std::vector<std::uint64_t> as_added =
            std::exchange(module.only, std::vector<std::uint64_t>(runs.size()));
        for (std::size_t i = 0; i < as_added.size(); ++i) {
            const auto place = std::find(runs.begin(), runs.end(), runs_[i]->run());
            module.only[static_cast<std::size_t>(place - runs.begin())] = as_added[i];
        }
    }
    return ordered;
}

void UnitedSingles::count(const gpu::Single& hit, std::size_t run, bool several) {
    if (hit.crystal >= module_of_.size()) return;  // refused later, with all such singles
    HitOrigins& module = origins_[module_of_[hit.crystal]];
    if (several) {
        ++module.several;
        return;
    }
    if (module.only.size() <= run) module.only.resize(run + 1);
    ++module.only[run];
}

void UnitedSingles::write(const gpu::Single& hit) {
    if (!latest_) times_.start = hit.time;
    times_.end = hit.time;
    latest_ = hit;
    written_.push_back(hit);
    if (written_.size() < handed_over) return;
    file_.append(std::span<const gpu::Single>(written_));
    written_.clear();
}

}  // namespace petacq::petlm
