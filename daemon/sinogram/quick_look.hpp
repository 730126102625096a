// The live sinogram, the quick-look image and the histograms of gammas of the run in progress, as JSON for
// the live page.
//
// docs/reference/http.md describes the documents. They come from the live tap, in a thread that runs when the
// others leave time: what it is too slow for is missing from them, and counted.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "config/scanner/scanner.hpp"
#include "daemon/sinogram/gamma_histograms.hpp"
#include "daemon/sinogram/live_sinogram.hpp"
#include "daemon/tap/tap.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

struct QuickLookDocuments {
    std::string sinogram;
    std::string image;
    std::string gammas;  ///< "null" without gammas
};

/// Starts its thread in the constructor and joins it in the destructor.
class QuickLook {
  public:
    /// `interval`: from one sinogram and image to the next. The references outlive the object. `gammas`:
    /// empty histograms for the rules of the runs; nothing: they have no triples.
    QuickLook(Tap& tap, const config::Scanner& scanner, const gpu::PairRule& rule,
              std::chrono::milliseconds interval, std::optional<sinogram::GammaHistograms> gammas = {});
    QuickLook(const QuickLook&) = delete;
    QuickLook& operator=(const QuickLook&) = delete;
    ~QuickLook();

    /// Any thread: those of the latest run; nullptr: there has been none.
    [[nodiscard]] std::shared_ptr<const QuickLookDocuments> documents() const;

  private:
    void loop(const std::stop_token& stopping);
    /// Takes what the tap has. False if that was nothing.
    bool take(sinogram::LiveSinogram& sinogram);
    void take_angles();
    void take_triples();
    void show(const sinogram::LiveSinogram& sinogram, bool running);

    Tap& tap_;
    const config::Scanner& scanner_;
    const gpu::PairRule rule_;
    const std::chrono::milliseconds interval_;
    const std::shared_ptr<TapSubscription> subscription_;
    const std::shared_ptr<TapSubscription> tags_;     ///< null: the scanner does not turn
    const std::shared_ptr<TapSubscription> triples_;  ///< null: there are none
    // Of the thread:
    std::vector<std::byte> buffer_;
    std::vector<std::byte> tag_buffer_;
    std::shared_ptr<const TapRun> run_of_angle_;
    std::optional<config::AngleOverTime> angle_;  ///< of the scanner, in this run
    std::uint64_t without_angle_ = 0;             ///< coincidences of the run
    std::shared_ptr<const TapRun> run_;           ///< of the sinogram
    std::uint64_t dropped_before_run_ = 0;
    std::uint64_t dropped_ = 0;
    std::optional<sinogram::GammaHistograms> gammas_;
    std::shared_ptr<const TapRun> run_of_triples_;
    std::uint64_t triples_dropped_before_run_ = 0;
    std::uint64_t triples_dropped_ = 0;

    mutable net::Mutex mutex_;
    std::shared_ptr<const QuickLookDocuments> documents_ PETACQ_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace petacq::daemon
