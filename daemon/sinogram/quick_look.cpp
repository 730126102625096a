#include "daemon/sinogram/quick_look.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "daemon/system/background_thread.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;

/// Everything else goes first.
constexpr int niceness = 19;
/// Between two looks at the tap. Its buffer holds 262,144 coincidences: more are not sampled meanwhile.
constexpr std::chrono::milliseconds look_interval{100};

/// Every document begins with these members.
std::string head_of(const TapRun& run, bool running, std::uint64_t dropped) {
    const std::string id =
        nlohmann::json(run.id).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    return fmt::format(R"({{"run":{},"running":{},"dropped":{},)", id, running, dropped);
}

/// The sinogram and the image begin with these members.
std::string head(const TapRun& run, bool running, const sinogram::LiveSinogram& s, std::uint64_t dropped) {
    return head_of(run, running, dropped) +
           fmt::format(R"("prompts":{},"delayeds":{},)", s.prompts(), s.delayeds());
}

template <class Number>
void append_array(std::string& text, const std::vector<Number>& numbers) {
    text += '[';
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i > 0) text += ',';
        if constexpr (std::is_floating_point_v<Number>) {
            fmt::format_to(std::back_inserter(text), "{:.4g}", numbers[i]);
        } else {
            fmt::format_to(std::back_inserter(text), "{}", numbers[i]);
        }
    }
    text += ']';
}

std::string sinogram_text(std::string text, const sinogram::LiveSinogram& s) {
    fmt::format_to(std::back_inserter(text), R"("angles":{},"radial":{},"radius_mm":{},"counts":)",
                   s.lines().angles(), s.lines().radial(), s.lines().radius_mm());
    append_array(text, s.counts());
    return text + '}';
}

std::string image_text(std::string text, const sinogram::TransverseImage& image) {
    fmt::format_to(std::back_inserter(text), R"("size":{},"step_mm":{},"values":)", image.size,
                   image.step_mm);
    append_array(text, image.values);
    return text + '}';
}

/// `unit`: of the histogram in the unit of the document.
void append_histogram(std::string& text, const sinogram::GammaHistograms::Histogram& histogram, double unit,
                      const char* unit_name) {
    fmt::format_to(std::back_inserter(text), R"({{"from_{0}":{1},"bin_{0}":{2},"triples":)", unit_name,
                   histogram.from * unit, histogram.bin * unit);
    append_array(text, histogram.triples);
    text += R"(,"delayed_triples":)";
    append_array(text, histogram.delayed);
    text += '}';
}

std::string gammas_text(std::string text, const sinogram::GammaHistograms& gammas, double tick_ps) {
    text += R"("times":)";
    append_histogram(text, gammas.times(), tick_ps * 1e-3, "ns");
    text += R"(,"energies":)";
    append_histogram(text, gammas.energies(), 1, "keV");
    return text + '}';
}

}  // namespace

QuickLook::QuickLook(Tap& tap, const config::Scanner& scanner, const gpu::PairRule& rule,
                     std::chrono::milliseconds interval, std::optional<sinogram::GammaHistograms> gammas)
    : tap_(tap),
      scanner_(scanner),
      rule_(rule),
      interval_(interval),
      subscription_(tap.subscribe(RecordKind::coincidences, 1, false)),
      tags_(scanner.rotation ? tap.subscribe(RecordKind::tags, 1, false) : nullptr),
      triples_(gammas ? tap.subscribe(RecordKind::triples, 1, false) : nullptr),
      buffer_(TapSubscription::piece_bytes),
      tag_buffer_(tags_ ? TapSubscription::piece_bytes : 0),
      gammas_(std::move(gammas)) {
    thread_ = background_thread("quick look", niceness, [this](const std::stop_token& stopping) {
        try {
            loop(stopping);
        } catch (const std::exception& error) {  // at worst, no memory
            log_error("quick look: it ends: {}", error.what());
        }
        tap_.unsubscribe(subscription_);
        if (tags_) tap_.unsubscribe(tags_);
        if (triples_) tap_.unsubscribe(triples_);
    });
}

QuickLook::~QuickLook() = default;

std::shared_ptr<const QuickLookDocuments> QuickLook::documents() const {
    const net::MutexLock lock(mutex_);
    return documents_;
}

void QuickLook::loop(const std::stop_token& stopping) {
    std::optional<sinogram::LiveSinogram> sinogram;
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    Clock::time_point due = Clock::now();
    bool news = false;
    bool shown_running = false;
    while (!wake.wait_for(lock, stopping, look_interval, [&] { return stopping.stop_requested(); })) {
        const std::shared_ptr<const TapRun> latest = tap_.latest_run();
        if (!latest) continue;
        if (!sinogram) sinogram.emplace(scanner_, rule_);  // takes a while: not before there is a run
        const bool running = !latest->ended.load(std::memory_order_acquire);
        // First, so that the coincidences are never of an earlier run than the triples.
        if (triples_) take_triples();
        if (take(*sinogram)) news = true;
        // A run without a coincidence so far.
        if (!run_ || latest->number > run_->number) {
            run_ = latest;
            dropped_before_run_ = dropped_ = subscription_->dropped();
            without_angle_ = 0;
            sinogram->clear();
            news = true;
        }
        const bool ended = shown_running && !running && run_ == latest;
        if (!ended && (Clock::now() < due || !news)) continue;
        shown_running = running && run_ == latest;
        show(*sinogram, shown_running);
        news = false;
        due = Clock::now() + interval_;
    }
}

bool QuickLook::take(sinogram::LiveSinogram& sinogram) {
    constexpr std::uint64_t most = TapSubscription::buffer_bytes / sizeof(gpu::Coincidence);
    std::uint64_t taken = 0;
    while (taken < most) {  // no more: those that come meanwhile can wait
        const TapPiece piece = subscription_->take(buffer_);
        if (piece.records == 0) break;
        taken += piece.records;
        if (piece.run != run_) {
            run_ = piece.run;
            dropped_before_run_ = piece.dropped;
            without_angle_ = 0;
            sinogram.clear();
        }
        dropped_ = piece.dropped;
        const auto* const records = reinterpret_cast<const gpu::Coincidence*>(buffer_.data());
        if (!tags_) {
            sinogram.add({records, piece.records});
            continue;
        }
        take_angles();
        if (angle_ && run_of_angle_ == run_) {
            sinogram.add({records, piece.records}, *angle_);
            if (piece.records > 0) angle_->forget_before(records[piece.records - 1].time);
        } else {
            without_angle_ += piece.records;
        }
    }
    return taken != 0;
}

/// The tags of a slice are there when its coincidences are.
void QuickLook::take_angles() {
    for (;;) {
        const TapPiece piece = tags_->take(tag_buffer_);
        if (piece.records == 0) return;
        const auto* const tags = reinterpret_cast<const gpu::Tag*>(tag_buffer_.data());
        for (const gpu::Tag& tag : std::span(tags, piece.records)) {
            if (tag.kind != static_cast<std::uint8_t>(gpu::TagKind::position) ||
                tag.channel != scanner_.rotation->tag_channel)
                continue;
            if (!angle_ || piece.run != run_of_angle_) angle_.emplace(*scanner_.rotation);
            run_of_angle_ = piece.run;
            angle_->add(tag.time, static_cast<std::int32_t>(tag.value));
        }
    }
}

void QuickLook::take_triples() {
    constexpr std::uint64_t most = TapSubscription::buffer_bytes / sizeof(gpu::Triple);
    for (std::uint64_t taken = 0; taken < most;) {
        const TapPiece piece = triples_->take(buffer_);
        if (piece.records == 0) return;
        taken += piece.records;
        if (piece.run != run_of_triples_) {
            run_of_triples_ = piece.run;
            triples_dropped_before_run_ = piece.dropped;
            gammas_->clear();
        }
        triples_dropped_ = piece.dropped;
        gammas_->add({reinterpret_cast<const gpu::Triple*>(buffer_.data()), piece.records});
    }
}

void QuickLook::show(const sinogram::LiveSinogram& sinogram, bool running) {
    const std::string start = head(*run_, running, sinogram, dropped_ - dropped_before_run_ + without_angle_);
    std::string gammas = "null";
    if (gammas_) {
        if (!run_of_triples_ || run_of_triples_->number < run_->number) {  // none in this run so far
            run_of_triples_ = run_;
            triples_dropped_before_run_ = triples_dropped_ = triples_->dropped();
            gammas_->clear();
        }
        gammas =
            gammas_text(head_of(*run_of_triples_, running, triples_dropped_ - triples_dropped_before_run_),
                        *gammas_, scanner_.tick_ps);
    }
    auto documents = std::make_shared<const QuickLookDocuments>(QuickLookDocuments{
        sinogram_text(start, sinogram), image_text(start, sinogram.image()), std::move(gammas)});
    const net::MutexLock lock(mutex_);
    documents_ = std::move(documents);
}

}  // namespace petacq::daemon
