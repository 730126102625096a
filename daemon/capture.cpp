#include "daemon/capture.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "daemon/disk_space.hpp"
#include "daemon/logging.hpp"

namespace petacq::daemon {

namespace {

std::int64_t wall_minus_steady() {
    using std::chrono::duration_cast;
    using std::chrono::nanoseconds;
    return duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
           duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How long it may take until a lack of room is seen; much less than any sensible limit is wide.
constexpr std::uint64_t room_check_bytes = 16U << 20;
constexpr std::chrono::seconds room_check_interval{1};

}  // namespace

Capture::Capture(const std::filesystem::path& file, net::Framing framing, net::BatchPool& pool,
                 std::size_t max_batches, std::uint64_t min_free_bytes)
    : file_(file),
      framing_(framing),
      pool_(pool),
      max_batches_(max_batches),
      min_free_bytes_(min_free_bytes),
      wall_minus_steady_ns_(wall_minus_steady()),
      writer_(file.string()),
      thread_([this] { run(); }) {
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
    const std::lock_guard lock(mutex_);
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
        if (!writer_.has_room()) flush();
        std::array<std::byte, net::header_bytes> header;  // NOLINT(cppcoreguidelines-pro-type-member-init)
        std::span<const std::byte> head;
        std::size_t body = d.bytes;
        if (has_header && !d.rejected) {
            // Its header was taken apart; it has no other content than this.
            net::encode_header({d.flags, d.source, d.sequence}, header.data());
            head = header;
            body -= header.size();
        }
        writer_.add(first + d.arrival_ns, {d.address, d.port}, batch.to, head,
                    std::span<const std::byte>(batch.data + d.offset, body));
        ++unflushed_;
    }
    flush();  // its memory goes back
    busy_ns_.add(
        static_cast<std::uint64_t>((std::chrono::steady_clock::now() - began) / std::chrono::nanoseconds(1)));
}

void Capture::flush() {
    const std::size_t datagrams = std::exchange(unflushed_, 0);
    if (datagrams == 0) return;
    if (!failed_) check_room();
    if (failed_) {
        writer_.discard();
        unwritten_.add(datagrams);
        return;
    }
    try {
        writer_.flush();
        written_.add(datagrams);
        bytes_.add(writer_.bytes_written() - bytes_.value());
    } catch (const std::system_error& e) {
        unwritten_.add(datagrams);
        fail(e.what());
    }
}

/// The capture is the first that has to go when the disk becomes full: what is left is for the list-mode.
void Capture::check_room() {
    const auto now = std::chrono::steady_clock::now();
    if (room_checked_ && now - *room_checked_ < room_check_interval &&
        writer_.bytes_written() - room_checked_bytes_ < room_check_bytes) {
        return;
    }
    room_checked_ = now;
    room_checked_bytes_ = writer_.bytes_written();
    const std::optional<DiskSpace> space = disk_space(file_.parent_path());
    if (!space || space->free_bytes >= min_free_bytes_) return;
    fail(
        fmt::format("{}: ended, to leave room for the list-mode: {} bytes are free, less than {} "
                    "(health.min_disk_free_bytes)",
                    file_.string(), space->free_bytes, min_free_bytes_));
}

void Capture::fail(const std::string& why) {
    failed_ = true;
    log_error("raw capture: {}; the run goes on without it", why);
    const std::lock_guard lock(mutex_);
    failure_ = why;
}

}  // namespace petacq::daemon
