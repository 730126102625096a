#include "tools/petsim/simulation/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "tools/petsim/simulation/chunk_queue.hpp"

namespace petacq::sim {

namespace {

const Options& checked(const Options& options, const config::Scanner& scanner) {
    check(options, scanner);
    return options;
}

}  // namespace

Simulation::Simulation(config::Scanner scanner, const config::Calibration& calibration, Options options,
                       const Detector* detector)
    : Simulation(scanner, std::make_shared<const InverseCalibration>(scanner, calibration),
                 std::move(options), detector) {}

Simulation::Simulation(config::Scanner scanner, std::shared_ptr<const InverseCalibration> calibration,
                       Options options, const Detector* detector)
    : scanner_(std::move(scanner)),
      options_(std::move(options)),
      calibration_(std::move(calibration)),
      generator_(scanner_, *calibration_, checked(options_, scanner_), detector) {
    options_.crystals = options_.crystals.of(scanner_);
    const std::vector<config::Source> sources = wire_sources(options_, scanner_);
    const RunClock clock{scanner_, generator_.begin_ticks()};
    streams_.reserve(sources.size());
    for (std::size_t s = 0; s < sources.size(); ++s) {
        const auto number = static_cast<std::uint16_t>(s);
        streams_.emplace_back(number, sources[s], clock, *calibration_, detector, options_,
                              TagSchedule(number, options_, generator_.movement(), clock), output_);
    }
    seen_.resize(sources.size());
    statistics_.sources.resize(sources.size());
}

double Simulation::progress() const {
    const auto all = static_cast<double>(generator_.chunk_count());
    return all > 0 ? static_cast<double>(chunks_done_.load(std::memory_order_relaxed)) / all : 1.0;
}

void Simulation::run(const DatagramSink& send, const TruthSink& truth) {
    output_.want_truth = static_cast<bool>(truth);
    const auto pass_on = [&](std::uint64_t limit) {
        if (truth && !output_.truth.empty()) {
            truth(output_.truth);
            output_.truth.clear();
        }
        emit(limit, send);
    };
    std::uint64_t chunks = 0;
    // Whether hits pile up on an earlier one is known after this time.
    const std::uint64_t pile_up = ticks_of(options_.physics.block_pile_up_ns * 1e-9, scanner_);
    {
        ChunkQueue queue(generator_, options_.threads);
        while (!stop_.load(std::memory_order_relaxed)) {
            const Chunk* const chunk = queue.next();
            if (chunk == nullptr) break;
            const std::uint64_t floor = generator_.raw_time_floor(++chunks);
            const std::uint64_t limit = floor - std::min(floor, pile_up);
            for (std::size_t s = 0; s < streams_.size(); ++s) {
                streams_[s].take(
                    std::span(chunk->hits).subspan(chunk->first[s], chunk->first[s + 1] - chunk->first[s]),
                    limit);
            }
            statistics_.events += chunk->counts;
            pass_on(limit);
            chunks_done_.store(chunks, std::memory_order_relaxed);
        }
    }
    for (auto& stream : streams_)
        stream.finish(generator_.raw_time_floor(chunks), generator_.end_of(chunks));
    pass_on(std::numeric_limits<std::uint64_t>::max());
    statistics_.decays = generator_.decays(chunks);
    statistics_.followed = generator_.followed(chunks);
    statistics_.seconds = generator_.seconds(chunks);
    for (std::size_t s = 0; s < streams_.size(); ++s) {
        close_epoch(static_cast<std::uint16_t>(s));
        const Expected expected = statistics_.sources[s].expected;
        statistics_.sources[s] = streams_[s].statistics();
        statistics_.sources[s].expected = expected;
    }
}

// Sends the datagrams due before `limit`. Datagrams that are generated later are due later.
void Simulation::emit(std::uint64_t limit, const DatagramSink& send) {
    for (Packet& packet : output_.packets)
        waiting_.push_back(std::move(packet));
    output_.packets.clear();
    const auto due =
        std::partition(waiting_.begin(), waiting_.end(), [&](const Packet& p) { return p.key >= limit; });
    std::sort(due, waiting_.end(), [](const Packet& a, const Packet& b) {
        if (a.key != b.key) return a.key < b.key;
        return a.source != b.source ? a.source < b.source : a.order < b.order;
    });
    for (auto p = due; p != waiting_.end(); ++p) {
        account(*p);
        const std::uint64_t begin = generator_.begin_ticks();
        const Datagram datagram{p->source, p->sequence, p->key > begin ? p->key - begin : 0, p->bytes};
        for (std::uint32_t copy = 0; copy < p->copies; ++copy)
            send(datagram);
        output_.spare.push_back(std::move(p->bytes));
    }
    waiting_.erase(due, waiting_.end());
}

void Simulation::account(const Packet& packet) {
    using Status = Conversion::Status;
    Expected& e = statistics_.sources[packet.source].expected;
    e.received += packet.copies;
    if (packet.malformed) {
        e.malformed += packet.copies;
        return;
    }
    e.duplicate += packet.copies - 1;
    e.frames += packet.frames;
    e.tags += packet.tags;
    const auto count = [&](Status status) { return packet.by_status[static_cast<std::size_t>(status)]; };
    e.bad_marker += count(Status::bad_marker);
    e.bad_address += count(Status::bad_address);
    e.outside_crystal += count(Status::outside_crystal);
    e.bad_time += count(Status::bad_time);
    Seen& seen = seen_[packet.source];
    if (packet.epoch != seen.epoch) close_epoch(packet.source);
    seen.epoch = packet.epoch;
    if (!seen.any) {
        seen.any = true;
        seen.first = seen.highest = packet.sequence;
    } else if (packet.sequence < seen.highest) {
        ++e.reordered;
    } else {
        seen.highest = packet.sequence;
    }
    ++seen.unique;
}

void Simulation::close_epoch(std::uint16_t source) {
    Seen& seen = seen_[source];
    if (seen.any) statistics_.sources[source].expected.lost += seen.highest - seen.first + 1 - seen.unique;
    seen = {};
}

double scale_for_rate(const config::Scanner& scanner, const config::Calibration& calibration,
                      const Options& options, double frames_per_s, const Detector* detector) {
    constexpr double trial_frames = 400'000;
    double initial = 0;
    double mean = 0;
    for (const auto& a : options.activity) {
        initial += a.activity_mbq;
        mean += a.activity_mbq * mean_share(a.curve, a.half_life_s, 0, options.duration_s);
    }
    if (initial <= 0) throw std::invalid_argument("a rate was asked for, but there is no activity to scale");
    Options trial = options;
    trial.faults = {};
    trial.tags = {};
    trial.duration_s = std::clamp(trial_frames / frames_per_s, 1e-3, 1000.0);
    for (auto& a : trial.activity) {
        a.half_life_s = 0;
        a.curve.clear();
    }
    const auto tables = std::make_shared<const InverseCalibration>(scanner, calibration);
    const auto rate_at = [&](double scale) {
        trial.activity_scale = scale;
        Simulation simulation(scanner, tables, trial, detector);
        simulation.run([](const Datagram&) {});
        return static_cast<double>(simulation.statistics().total().frames) / trial.duration_s;
    };
    const double background = rate_at(0);
    if (background >= frames_per_s) {
        throw std::invalid_argument("intrinsic background and darks alone give " +
                                    std::to_string(std::llround(background)) + " frames/s");
    }
    // The first guess is low rather than high: one frame for each positron.
    double scale = frames_per_s / (initial * 1e6);
    double found = 0;
    double found_before = 0;
    for (int step = 0; step < 20; ++step) {
        found = rate_at(scale);
        const double made = found - background;
        if (made <= 0) break;
        const double factor = (frames_per_s - background) / made;
        if (std::abs(found - frames_per_s) < 0.003 * frames_per_s) return scale * factor * initial / mean;
        // Much more activity gave hardly more frames.
        if (factor > 1.5 && found < 1.1 * found_before) break;
        found_before = found;
        scale *= std::clamp(factor, 0.25, 4.0);
    }
    throw std::invalid_argument("the rate cannot be reached: at best about " +
                                std::to_string(std::llround(found)) + " frames/s (dead time, efficiency)");
}

}  // namespace petacq::sim
