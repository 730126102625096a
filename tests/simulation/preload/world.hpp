// Everything outside the daemon: boards, strangers, the operator, disk and network, as a story tells.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/preload/board.hpp"
#include "tests/simulation/preload/disk.hpp"
#include "tests/simulation/preload/network.hpp"
#include "tests/simulation/preload/operator.hpp"
#include "tests/simulation/preload/record.hpp"
#include "tests/simulation/preload/scheduler.hpp"
#include "tests/simulation/preload/story.hpp"

namespace petacq::simulation {

/// How a simulated daemon ends, besides its own exit statuses.
enum class End : std::uint8_t { killed = 90, power_cut = 91, standstill = 92 };

/// One life of the daemon, from `from_ns` of the story on. Its virtual monotonic clock shows the time of the
/// story plus epoch_ns.
class World {
  public:
    struct Options {
        Story story;
        std::uint32_t life = 0;
        std::int64_t from_ns = 0;
        std::string directory;  ///< for the record; `data` in it is on the disk, control.sock the socket
        std::string fault;      ///< that is planted (lives.cpp)
    };
    static constexpr std::int64_t epoch_ns = 1'000'000'000'000;

    explicit World(const Options& options);

    /// Before each call of the disk. Returns an error, or 0.
    enum class DiskCall : std::uint8_t { names, write, sync };
    int disk_call(DiskCall call);

    /// Ends the process.
    [[noreturn]] void end(End how);
    /// When the process ends by itself.
    void ended();

    [[nodiscard]] std::int64_t wall_ns() const { return scheduler.now_ns() + wall_minus_monotonic_ns_; }
    [[nodiscard]] std::int64_t wall_minus_monotonic_ns() const { return wall_minus_monotonic_ns_; }

    Scheduler scheduler;
    Record record;
    Network network;
    Disk disk;
    void (*on_sigterm)(int) = nullptr;

  private:
    void at(std::int64_t story_ns, std::function<void()> work);
    void after(std::int64_t ns, std::function<void()> work);
    void decay();
    void annihilate(std::int64_t at_ns);
    void send(std::size_t board);
    void deliver(std::size_t board, const Datagram& datagram);
    void happen(const Event& event);
    void happen_to_board(const Event& event, Board& board, std::size_t number);
    bool happen_to_host(const Event& event);
    void flood(std::size_t board, std::int64_t until_ns);
    void strangers(std::int64_t count);
    void use_calibration(const std::string& number) const;
    void ask(const std::string& request);
    void ask_status();
    void terminate();
    void write_end();

    void leak();

    std::string directory_;
    std::string fault_;
    std::vector<std::unique_ptr<char[]>> leaked_;
    Story story_;
    Random random_;  ///< not that of the schedule, so that the world is the same in every life
    Operator operator_;
    std::vector<Board> boards_;
    std::int64_t wall_minus_monotonic_ns_ = 1'700'000'000'000'000'000;
    std::int64_t calls_to_power_cut_ = 0;
    bool alive_ = false;
    bool over_ = false;
};

/// That of this process; nullptr: it is not simulated.
extern World* world;

}  // namespace petacq::simulation
