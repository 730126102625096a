#include "tests/simulation/preload/world.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace petacq::simulation {

namespace {

constexpr std::int64_t ms = 1'000'000;
// The boards fall silent before the end, so that all that arrived is accounted for in the last status.
constexpr std::int64_t silence_at_end_ns = 2'000 * ms;
constexpr std::int64_t last_status_before_end_ns = 500 * ms;
constexpr std::int64_t patience_at_end_ns = 60'000 * ms;
// That of play.py, rounded up.
constexpr std::int64_t delay_of_delayeds_ns = 157;

/// Of the process, kB.
std::string peak_memory() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return std::to_string(used.ru_maxrss);
}

}  // namespace

World* world = nullptr;

World::World(const Options& options)
    : scheduler(options.story.seed * 16 + options.life),
      record(options.directory, options.life),
      network(scheduler, record),
      disk(options.directory + "/data", options.story.seed * 16 + options.life,
           options.fault == "forget_writes", options.fault == "forget_names"),
      directory_(options.directory),
      fault_(options.fault),
      story_(options.story),
      random_(options.story.seed),
      operator_(scheduler, record, options.directory + "/control.sock") {
    scheduler.skip_to(epoch_ns);
    scheduler.on_standstill = [this] { end(End::standstill); };
    for (std::size_t i = 0; i < story_.boards; ++i) {
        boards_.emplace_back(static_cast<std::uint16_t>(i));
        at(1'000 * ms + static_cast<std::int64_t>(random_.below(400)) * ms, [this, i] { send(i); });
    }
    at(900 * ms, [this] { decay(); });
    for (const Event& event : story_.events)
        at(event.at_ns, [this, event] { happen(event); });
    at(story_.status_ms * ms, [this] { ask_status(); });
    at(story_.length_ns - silence_at_end_ns, [this] { over_ = true; });
    at(story_.length_ns - last_status_before_end_ns, [this] { ask_status(); });
    at(story_.length_ns, [this] { terminate(); });
    at(story_.length_ns + patience_at_end_ns, [this] { end(End::standstill); });
    scheduler.skip_to(epoch_ns + options.from_ns);
    alive_ = true;
    record.event(scheduler.now_ns(), "begin");
}

void World::at(std::int64_t story_ns, std::function<void()> work) {
    scheduler.at(epoch_ns + story_ns, std::move(work));
}

void World::after(std::int64_t ns, std::function<void()> work) {
    scheduler.at(scheduler.now_ns() + ns, std::move(work));
}

/// The annihilations of the last 10 ms.
void World::decay() {
    constexpr std::int64_t step = 10 * ms;
    if (over_) return;
    const auto expected = static_cast<std::uint64_t>(story_.decays_per_s);
    const std::uint64_t count = (expected + random_.below(2 * 100)) / 100;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::int64_t when =
            scheduler.now_ns() - epoch_ns - static_cast<std::int64_t>(random_.below(step));
        annihilate(when);
        if (random_.one_in(story_.echo_one_in)) annihilate(when + delay_of_delayeds_ns);
    }
    after(step, [this] { decay(); });
}

/// Two photons, or one that is alone, and perhaps more of higher energies.
void World::annihilate(std::int64_t at_ns) {
    const std::size_t a = random_.below(boards_.size());
    const std::size_t b =
        (a + 1 + random_.below(std::max<std::size_t>(boards_.size() - 1, 1))) % boards_.size();
    boards_[a].hit(at_ns, random_);
    if (!random_.one_in(3)) boards_[b].hit(at_ns, random_);
    while (random_.one_in(story_.gamma_one_in))
        boards_[random_.below(boards_.size())].gamma(at_ns, random_);
}

void World::send(std::size_t number) {
    if (over_) return;
    Board& board = boards_[number];
    if (random_.one_in(story_.tag_one_in)) board.tag(scheduler.now_ns() - epoch_ns, random_);
    if (board.on && scheduler.now_ns() - epoch_ns >= board.silent_until_ns) {
        deliver(number, board.datagram());
    } else {
        board.forget_hits();
    }
    const auto mean = static_cast<std::uint64_t>(story_.send_ms);
    after(static_cast<std::int64_t>(mean / 2 + random_.below(mean)) * ms, [this, number] { send(number); });
}

void World::deliver(std::size_t number, const Datagram& datagram) {
    const Board& board = boards_[number];
    if (random_.one_in(board.lose_one_in)) {
        record.event(scheduler.now_ns(), "lost", std::to_string(number));
        return;
    }
    const bool twice = random_.one_in(board.double_one_in);
    const bool later = random_.one_in(board.delay_one_in);
    Datagram sent = datagram;
    if (random_.one_in(board.corrupt_one_in))
        sent[random_.below(sent.size())] ^= static_cast<std::byte>(1U << random_.below(8));
    if (later) {
        // Others overtake it.
        after(static_cast<std::int64_t>(random_.below(4 * static_cast<std::uint64_t>(story_.send_ms))) * ms,
              [this, number, sent] { network.send(number, sent); });
    } else {
        network.send(number, sent);
    }
    if (twice) network.send(number, sent);
}

void World::strangers(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        Datagram datagram(16 + random_.below(200));
        for (std::byte& b : datagram)
            b = static_cast<std::byte>(random_.below(256));
        // Half of them look like those of a board that nobody knows.
        if (random_.below(2) == 0) {
            datagram.resize(16 + (datagram.size() - 16) / 16 * 16);
            net::encode_header({0, static_cast<std::uint16_t>(100 + random_.below(100)), random_.below(1000)},
                               datagram.data(), net::FrameVersion::one);
        }
        network.send(random_.below(2), datagram);
    }
}

void World::happen(const Event& event) {
    if (alive_) {
        std::string text = event.what;
        for (const std::string& word : event.words)
            text += " " + word;
        record.event(scheduler.now_ns(), "story", text);
    }
    if (happen_to_host(event)) return;
    if (event.words.empty()) throw std::runtime_error("story: a board is missing: " + event.what);
    const bool all = event.words[0] == "all";
    for (std::size_t i = 0; i < boards_.size(); ++i) {
        if (all || event.number(0) == static_cast<std::int64_t>(i)) happen_to_board(event, boards_[i], i);
    }
}

void World::happen_to_board(const Event& event, Board& board, std::size_t number) {
    const std::int64_t now = scheduler.now_ns() - epoch_ns;
    const std::string& what = event.what;
    if (what == "on") {
        board.on = true;
    } else if (what == "off") {
        board.on = false;
    } else if (what == "reset") {
        board.reset(now);
    } else if (what == "silence") {
        board.silent_until_ns = now + event.number(1) * ms;
    } else if (what == "step_us") {
        board.step(event.number(1) * 1000);
    } else if (what == "drift_ppm") {
        board.drift(now, event.number(1));
    } else if (what == "lose") {
        board.lose_one_in = static_cast<std::uint64_t>(event.number(1));
    } else if (what == "double") {
        board.double_one_in = static_cast<std::uint64_t>(event.number(1));
    } else if (what == "delay") {
        board.delay_one_in = static_cast<std::uint64_t>(event.number(1));
    } else if (what == "corrupt") {
        board.corrupt_one_in = static_cast<std::uint64_t>(event.number(1));
    } else if (what == "burst") {
        for (std::int64_t i = 0; board.on && i < event.number(1); ++i)
            network.send(number, board.burst(now, random_));
    } else if (what == "flood") {
        flood(number, scheduler.now_ns() + event.number(1) * ms);
    } else {
        throw std::runtime_error("story: unknown event: " + what);
    }
}

/// A full datagram each millisecond.
void World::flood(std::size_t number, std::int64_t until_ns) {
    if (over_ || scheduler.now_ns() >= until_ns) return;
    if (boards_[number].on)
        network.send(number, boards_[number].burst(scheduler.now_ns() - epoch_ns, random_));
    after(ms, [this, number, until_ns] { flood(number, until_ns); });
}

/// False: the event is another one.
bool World::happen_to_host(const Event& event) {
    const std::int64_t now = scheduler.now_ns();
    const std::string& what = event.what;
    if (what == "strangers") {
        strangers(event.number(0));
    } else if (what == "request") {
        if (alive_) ask(event.words.at(0));
    } else if (what == "kill") {
        if (alive_) end(End::killed);
    } else if (what == "power_cut") {
        if (!alive_) return true;
        // At one of the next calls of the disk, or, if it rests, after a while.
        calls_to_power_cut_ = std::max<std::int64_t>(1, event.number(0));
        after(3'000 * ms, [this] { end(End::power_cut); });
    } else if (what == "terminate") {
        if (alive_) terminate();
    } else if (what == "calibration") {
        use_calibration(event.words.at(0));
    } else if (what == "clock_step_ms") {
        wall_minus_monotonic_ns_ += event.number(0) * ms;
    } else if (what == "disk_full") {
        disk.full_until_ns = now + event.number(0) * ms;
    } else if (what == "disk_fails") {
        disk.failing_until_ns = now + event.number(0) * ms;
    } else if (what == "disk_fails_to_sync") {
        disk.not_syncing_until_ns = now + event.number(0) * ms;
    } else if (what == "disk_slow") {
        disk.slow_until_ns = now + event.number(0) * ms;
        disk.slow_ns = event.number(1) * ms;
    } else {
        return false;
    }
    return true;
}

/// The operator puts another calibration in the place of the one that the configuration names.
void World::use_calibration(const std::string& number) const {
    const std::string file = directory_ + "/calibration.h5";
    const std::string next = file + ".next";
    if (::symlink(("../calibration-" + number + ".h5").c_str(), next.c_str()) != 0 ||
        ::rename(next.c_str(), file.c_str()) != 0)
        throw std::runtime_error("story: the calibration cannot be replaced: " + number);
}

/// Answers are recorded with the time at which they are read.
void World::ask(const std::string& request) {
    operator_.send(request);
    for (const std::int64_t later : {1, 3, 10, 30, 100, 300, 1000})
        after(later * ms, [this] { operator_.look(); });
}

void World::ask_status() {
    if (alive_) ask(R"({"jsonrpc":"2.0","id":"status","method":"status"})");
    if (alive_ && fault_ == "leak") leak();
    if (!over_) after(story_.status_ms * ms, [this] { ask_status(); });
}

/// With each status the daemon seems to need more.
void World::leak() {
    constexpr std::size_t bytes = std::size_t{4} << 20U;
    leaked_.push_back(std::make_unique<char[]>(bytes));
    std::fill_n(leaked_.back().get(), bytes, '\1');
}

void World::terminate() {
    operator_.look();
    record.event(scheduler.now_ns(), "terminate");
    if (on_sigterm != nullptr) on_sigterm(SIGTERM);
    scheduler.changed();
}

int World::disk_call(DiskCall call) {
    if (calls_to_power_cut_ > 0 && --calls_to_power_cut_ == 0) end(End::power_cut);
    const std::int64_t now = scheduler.now_ns();
    std::int64_t takes = call == DiskCall::sync ? 1 + static_cast<std::int64_t>(scheduler.random(8 * ms))
                                                : 1 + static_cast<std::int64_t>(scheduler.random(ms / 20));
    if (now < disk.slow_until_ns) takes += disk.slow_ns;
    scheduler.wait({.until_ns = now + takes});
    if (call != DiskCall::names && now < disk.failing_until_ns) return EIO;
    if (call == DiskCall::sync && now < disk.not_syncing_until_ns) return EIO;
    if (call == DiskCall::write && now < disk.full_until_ns) return ENOSPC;
    return 0;
}

void World::ended() {
    operator_.look();
    write_end();
}

void World::write_end() {
    record.event(
        scheduler.now_ns(), "end",
        std::to_string(scheduler.trace()) + " " + std::to_string(scheduler.points()) + " " + peak_memory());
    record.flush();
}

void World::end(End how) {
    record.event(scheduler.now_ns(), how == End::killed      ? "killed"
                                     : how == End::power_cut ? "power_cut"
                                                             : "standstill");
    operator_.look();
    world = nullptr;  // what follows is not simulated
    if (how == End::power_cut) disk.lose_power();
    write_end();
    ::_exit(static_cast<int>(how));
}

}  // namespace petacq::simulation
