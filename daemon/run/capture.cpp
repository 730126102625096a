#include "daemon/run/capture.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <stdexcept>
#include <utility>

#include "daemon/space/disk_space.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

std::int64_t wall_minus_steady() {
    using std::chrono::duration_cast;
    using std::chrono::nanoseconds;
    return duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
           duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How often the free space is checked: well before the capture could fill the space below any sensible limit.
constexpr std::uint64_t room_check_bytes = 16U << 20;
constexpr std::chrono::seconds room_check_interval{1};
/// How long the end of a run waits for what is still to be written.
constexpr std::chrono::seconds finish_patience{5};

std::int64_t steady_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Capture::Capture(const std::filesystem::path& file, net::Framing framing, net::FrameVersion version,
                 net::BatchPool& pool, std::size_t max_batches, std::uint64_t min_free_bytes,
                 std::chrono::milliseconds sync_interval)
    : framing_(framing),
      version_(version),
      pool_(pool),
      max_batches_(max_batches),
      min_free_bytes_(min_free_bytes),
      wall_minus_steady_ns_(wall_minus_steady()),
      file_(file, IfExists::fail, 0640),
      items_of_(new std::atomic<std::uint32_t>[pool.count()] {}) {
    // Written at once: an empty capture is a pcap file, too.
    file_.append(net::pcap_file_header());
    thread_.emplace("capture",
                    DiskWork<Offered>{.write = [this](const Offered& offered) { write(offered); },
                                      .drop = [this](const Offered& offered) { drop(offered); },
                                      .sync = [this] { file_.sync(); },
                                      .close = [this] { file_.sync(); },
                                      .fail =
                                          [](const std::string& why) {
                                              log_error("raw capture: {}; the run continues without it", why);
                                              return why;
                                          }},
                    0, sync_interval);
}

void Capture::offer(net::Batch& batch, std::span<const net::Datagram> datagrams) {
    if (datagrams.empty()) return;
    const std::uint64_t count = net::count_of(datagrams);
    offered_.add(count);
    std::atomic<std::uint32_t>& items = items_of_[batch.index];
    if (items.fetch_add(1, std::memory_order_relaxed) == 0) {
        if (waiting_.load(std::memory_order_relaxed) >= max_batches_) {
            items.fetch_sub(1, std::memory_order_relaxed);
            refused_.add(count);
            return;
        }
        const std::size_t waiting = waiting_.fetch_add(1, std::memory_order_relaxed) + 1;
        if (waiting > waiting_high_water_.load(std::memory_order_relaxed))
            waiting_high_water_.store(waiting, std::memory_order_relaxed);
    }
    net::BatchPool::hold(&batch);
    thread_->put_at_once({&batch, datagrams});
}

void Capture::finish() {
    std::int64_t not_yet = 0;
    finishing_since_ns_.compare_exchange_strong(not_yet, steady_ns(), std::memory_order_relaxed);
    thread_->finish();
}

CaptureCounts Capture::counts() const {
    return {offered_.value(),
            written_.value(),
            refused_.value() + unwritten_.value(),
            bytes_.value(),
            waiting_.load(std::memory_order_relaxed),
            waiting_high_water_.load(std::memory_order_relaxed),
            thread_->counts().busy_s};
}

void Capture::write(const Offered& offered) {
    net::each_group(*offered.batch, offered.datagrams, [&](const net::Group& group) {
        group.each([&](const net::Datagram& d) { write_one(*offered.batch, d); });
    });
    flush();  // while the batch is held
    give_back(offered);
}

/// Some may have been written before the failure.
void Capture::drop(const Offered& offered) {
    packets_.clear();
    unwritten_.add(net::count_of(offered.datagrams) - (written_.value() - written_before_));
    give_back(offered);
}

void Capture::give_back(const Offered& offered) {
    written_before_ = written_.value();
    if (items_of_[offered.batch->index].fetch_sub(1, std::memory_order_relaxed) == 1)
        waiting_.fetch_sub(1, std::memory_order_relaxed);
    pool_.put(offered.batch);
}

void Capture::write_one(const net::Batch& batch, const net::Datagram& d) {
    if (d.bytes == 0 && d.admitted == net::Admitted::yes) {
        // A datagram of a foreign format without frames is left out: a replay would call it malformed.
        written_.add();
        return;
    }
    if (packets_.full()) flush();
    std::array<std::byte, net::header_bytes> header;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    std::span<const std::byte> head;
    std::size_t body = d.bytes;
    if (framing_ == net::Framing::sequenced && d.admitted == net::Admitted::yes) {
        // The receiver keeps only the fields of the header, which are all its content.
        net::encode_header({d.flags, d.source, d.sequence}, header.data(), version_);
        head = header;
        body -= header.size();
    }
    packets_.add(wall_minus_steady_ns_ + d.arrival_ns, {d.address, d.port}, batch.to, head,
                 std::span<const std::byte>(batch.data + d.offset, body));
}

void Capture::flush() {
    const std::size_t datagrams = packets_.size();
    if (datagrams == 0) return;
    check_room();
    check_time();
    file_.identity().check();
    const std::uint64_t before = file_.bytes();
    file_.append(packets_.pieces());
    file_.start_writeback(file_.bytes() - before);
    written_.add(datagrams);
    bytes_.add(file_.bytes() - bytes_.value());
    packets_.clear();
}

/// When the disk fills up, the capture stops first and leaves the remaining space to the list-mode.
void Capture::check_room() {
    const auto now = std::chrono::steady_clock::now();
    if (room_checked_ && now - *room_checked_ < room_check_interval &&
        file_.bytes() - room_checked_bytes_ < room_check_bytes) {
        return;
    }
    room_checked_ = now;
    room_checked_bytes_ = file_.bytes();
    const std::optional<DiskSpace> space = disk_space(file_.path().parent_path());
    if (!space || space->free_bytes >= min_free_bytes_) return;
    throw std::runtime_error(
        fmt::format("{}: stopped, to leave room for the list-mode: {} bytes are free, less than {} "
                    "(health.min_disk_free_bytes)",
                    file_.path().string(), space->free_bytes, min_free_bytes_));
}

void Capture::check_time() const {
    const std::int64_t since = finishing_since_ns_.load(std::memory_order_relaxed);
    if (since == 0 || steady_ns() - since < std::chrono::nanoseconds(finish_patience).count()) return;
    throw std::runtime_error(
        fmt::format("{}: the disk is too slow: the capture was given up {} s after the end of the run",
                    file_.path().string(), finish_patience.count()));
}

}  // namespace petacq::daemon
