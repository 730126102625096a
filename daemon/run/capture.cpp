#include "daemon/run/capture.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "daemon/host/logging.hpp"
#include "daemon/run/disk_space.hpp"

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

}  // namespace

Capture::Capture(const std::filesystem::path& file, net::Framing framing, net::BatchPool& pool,
                 std::size_t max_batches, std::uint64_t min_free_bytes)
    : framing_(framing),
      pool_(pool),
      max_batches_(max_batches),
      min_free_bytes_(min_free_bytes),
      wall_minus_steady_ns_(wall_minus_steady()),
      file_(file, IfExists::fail, 0640) {
    // Written at once: an empty capture is a pcap file, too.
    file_.append(net::pcap_file_header());
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "capture");
}

Capture::~Capture() {
    finish();
}

bool Capture::offer(net::Batch* batch) {
    offered_.add(batch->datagrams.size());
    if (waiting_.load(std::memory_order_relaxed) >= max_batches_) {
        refused_.add(batch->datagrams.size());
        return false;
    }
    const std::size_t waiting = waiting_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (waiting > waiting_high_water_.load(std::memory_order_relaxed))
        waiting_high_water_.store(waiting, std::memory_order_relaxed);
    Item item;
    item.batch = batch;
    queue_.enqueue(std::move(item));
    return true;
}

void Capture::offer_part(const net::Batch& batch, std::size_t count) {
    offered_.add(count);
    Item item;
    item.bytes = std::make_unique<std::byte[]>(batch.used);
    std::copy_n(batch.data, batch.used, item.bytes.get());
    item.copy = std::make_unique<net::Batch>();
    item.copy->data = item.bytes.get();
    item.copy->datagrams.assign(batch.datagrams.begin(),
                                batch.datagrams.begin() + static_cast<std::ptrdiff_t>(count));
    item.copy->first_arrival_ns = batch.first_arrival_ns;
    item.copy->to = batch.to;
    queue_.enqueue(std::move(item));
}

void Capture::finish() {
    if (!thread_.joinable()) return;
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
        if (item.batch != nullptr) {
            write(*item.batch);
            pool_.put(item.batch);
            waiting_.fetch_sub(1, std::memory_order_relaxed);
        } else if (item.copy) {
            write(*item.copy);
        } else {
            return;
        }
    }
}

void Capture::write(const net::Batch& batch) {
    const auto began = std::chrono::steady_clock::now();
    const std::int64_t first = wall_minus_steady_ns_ + batch.first_arrival_ns;
    const bool has_header = framing_ == net::Framing::sequenced;
    for (const net::Datagram& d : batch.datagrams) {
        if (packets_.full()) flush();
        std::array<std::byte, net::header_bytes> header;  // NOLINT(cppcoreguidelines-pro-type-member-init)
        std::span<const std::byte> head;
        std::size_t body = d.bytes;
        if (has_header && !d.rejected) {
            // The receiver keeps only the fields of the header, which are all its content.
            net::encode_header({d.flags, d.source, d.sequence}, header.data());
            head = header;
            body -= header.size();
        }
        packets_.add(first + d.arrival_ns, {d.address, d.port}, batch.to, head,
                     std::span<const std::byte>(batch.data + d.offset, body));
    }
    flush();  // before the memory of the batch returns to the pool
    busy_ns_.add(
        static_cast<std::uint64_t>((std::chrono::steady_clock::now() - began) / std::chrono::nanoseconds(1)));
}

void Capture::flush() {
    const std::size_t datagrams = packets_.size();
    if (datagrams == 0) return;
    if (!failed_) check_room();
    if (!failed_) {
        try {
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

void Capture::fail(const std::string& why) {
    failed_ = true;
    log_error("raw capture: {}; the run continues without it", why);
    const net::MutexLock lock(mutex_);
    failure_ = why;
}

}  // namespace petacq::daemon
