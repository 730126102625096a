#include "daemon/run/capture.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "daemon/space/disk_space.hpp"
#include "daemon/system/logging.hpp"
#include "net/base/thread.hpp"

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

Capture::Capture(const std::filesystem::path& file, net::Framing framing, net::BatchPool& pool,
                 std::size_t max_batches, std::uint64_t min_free_bytes)
    : framing_(framing),
      pool_(pool),
      max_batches_(max_batches),
      min_free_bytes_(min_free_bytes),
      wall_minus_steady_ns_(wall_minus_steady()),
      file_(file, IfExists::fail, 0640),
      items_of_(new std::atomic<std::uint32_t>[pool.count()] {}) {
    // Written at once: an empty capture is a pcap file, too.
    file_.append(net::pcap_file_header());
    thread_ = net::start_thread("capture", [this] { run(); });
}

Capture::~Capture() {
    finish();
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
    queue_.enqueue({&batch, datagrams});
}

void Capture::finish() {
    if (!thread_.joinable()) return;
    finishing_since_ns_.store(steady_ns(), std::memory_order_relaxed);
    queue_.enqueue(Item{});
    thread_.join();
}

CaptureCounts Capture::counts() const {
    return {offered_.value(),
            written_.value(),
            refused_.value() + unwritten_.value(),
            bytes_.value(),
            waiting_.load(std::memory_order_relaxed),
            waiting_high_water_.load(std::memory_order_relaxed),
            static_cast<double>(busy_ns_.value()) * 1e-9};
}

std::string Capture::failure() const {
    const net::MutexLock lock(mutex_);
    return failure_;
}

void Capture::run() {
    for (;;) {
        Item item;
        queue_.wait_dequeue(item);
        if (item.batch == nullptr) return;
        write(item);
        if (items_of_[item.batch->index].fetch_sub(1, std::memory_order_relaxed) == 1)
            waiting_.fetch_sub(1, std::memory_order_relaxed);
        pool_.put(item.batch);
    }
}

void Capture::write(const Item& item) {
    const auto began = std::chrono::steady_clock::now();
    net::each_group(*item.batch, item.datagrams, [&](const net::Group& group) {
        group.each([&](const net::Datagram& d) { write_one(*item.batch, d); });
    });
    flush();  // while the batch is held
    busy_ns_.add(
        static_cast<std::uint64_t>((std::chrono::steady_clock::now() - began) / std::chrono::nanoseconds(1)));
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
        net::encode_header({d.flags, d.source, d.sequence}, header.data());
        head = header;
        body -= header.size();
    }
    packets_.add(wall_minus_steady_ns_ + d.arrival_ns, {d.address, d.port}, batch.to, head,
                 std::span<const std::byte>(batch.data + d.offset, body));
}

void Capture::flush() {
    const std::size_t datagrams = packets_.size();
    if (datagrams == 0) return;
    if (!failed_) check_room();
    if (!failed_) check_time();
    if (!failed_) {
        try {
            file_.identity().check();
            file_.append(packets_.pieces());
            written_.add(datagrams);
            bytes_.add(file_.bytes() - bytes_.value());
        } catch (const std::system_error& e) {
            fail(e.what());
        }
    }
    if (failed_) unwritten_.add(datagrams);
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
    fail(
        fmt::format("{}: stopped, to leave room for the list-mode: {} bytes are free, less than {} "
                    "(health.min_disk_free_bytes)",
                    file_.path().string(), space->free_bytes, min_free_bytes_));
}

void Capture::check_time() {
    const std::int64_t since = finishing_since_ns_.load(std::memory_order_relaxed);
    if (since == 0 || steady_ns() - since < std::chrono::nanoseconds(finish_patience).count()) return;
    fail(fmt::format("{}: the disk is too slow: the capture was given up {} s after the end of the run",
                     file_.path().string(), finish_patience.count()));
}

void Capture::fail(const std::string& why) {
    failed_ = true;
    log_error("raw capture: {}; the run continues without it", why);
    const net::MutexLock lock(mutex_);
    failure_ = why;
}

}  // namespace petacq::daemon
