// The memory of the back-end, which is planned first and then allocated once.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/cuda/base/check.hpp"
#include "gpu/device_memory_error.hpp"

namespace petacq::gpu::cuda {

/// Makes a device the current one of the calling thread while it lives.
class OnDevice {
  public:
    explicit OnDevice(int device) : device_(device) {
        check(cudaGetDevice(&before_), "cudaGetDevice", "changing the device");
        if (device_ != before_) check(cudaSetDevice(device_), "cudaSetDevice", "changing the device");
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    ~OnDevice() {
        if (device_ != before_) cudaSetDevice(before_);
    }

  private:
    const int device_;
    int before_ = 0;
};

/// Allocates memory of one device, and pinned host memory, and frees all of it on destruction. Throws
/// DeviceMemoryError when none is left. With Purpose::plan it only adds up the sizes.
class Memory {
  public:
    enum class Purpose : std::uint8_t { plan, use };
    /// Of the current device of the calling thread.
    explicit Memory(Purpose purpose) : planning_(purpose == Purpose::plan) {
        if (!planning_) check(cudaGetDevice(&device_), "cudaGetDevice", "set-up");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        for (void* p : on_device_)
            cudaFree(p);
        for (void* p : pinned_)
            cudaFreeHost(p);
    }

    /// Uninitialised memory; nullptr when planning.
    template <class T>
    T* device(std::size_t count) {
        const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(T);
        device_bytes_ += bytes;
        if (planning_) return nullptr;
        const OnDevice on(device_);
        void* p = nullptr;
        check_room(cudaMalloc(&p, bytes), "cudaMalloc", "allocating " + std::to_string(bytes) + " bytes");
        on_device_.push_back(p);
        return static_cast<T*>(p);
    }
    /// Memory full of zeros; nullptr when planning.
    template <class T>
    T* zeros(std::size_t count) {
        T* const p = device<T>(count);
        if (p == nullptr) return p;
        const OnDevice on(device_);
        check(cudaMemset(p, 0, count * sizeof(T)), "cudaMemset", "set-up");
        finish_set_up();
        return p;
    }
    /// A copy of a table of the host; nullptr when planning.
    template <class T>
    const T* copy_of(std::span<const T> table) {
        T* const p = device<T>(table.size());
        if (p == nullptr) return p;
        const OnDevice on(device_);
        check(cudaMemcpy(p, table.data(), table.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy",
              "copying a table to the device");
        finish_set_up();
        return p;
    }
    template <class T>
    T* pinned(std::size_t count) {
        const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(T);
        pinned_bytes_ += bytes;
        if (planning_) return nullptr;
        void* p = nullptr;
        check_room(cudaHostAlloc(&p, bytes, cudaHostAllocPortable), "cudaHostAlloc",
                   "allocating " + std::to_string(bytes) + " bytes of pinned memory");
        pinned_.push_back(p);
        return static_cast<T*>(p);
    }

    [[nodiscard]] bool is_plan() const { return planning_; }
    [[nodiscard]] int device_number() const { return device_; }
    [[nodiscard]] std::uint64_t device_bytes() const { return device_bytes_; }
    [[nodiscard]] std::uint64_t pinned_bytes() const { return pinned_bytes_; }

  private:
    /// Set-up uses the default stream, which the streams of the back-end do not wait for.
    static void finish_set_up() { check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize", "set-up"); }
    /// Other programs may have taken memory since the plan was made.
    static void check_room(cudaError_t status, const char* call, const std::string& doing) {
        try {
            check(status, call, doing);
        } catch (const std::runtime_error& e) {
            cudaGetLastError();  // clears the error, so that no later call reports it
            if (status == cudaErrorMemoryAllocation) throw DeviceMemoryError(e.what());
            throw;
        }
    }

    bool planning_;
    int device_ = 0;
    std::vector<void*> on_device_;
    std::vector<void*> pinned_;
    std::uint64_t device_bytes_ = 0;
    std::uint64_t pinned_bytes_ = 0;
};

/// The priority of a stream: the pipeline comes before the work done alongside it.
enum class Priority : std::uint8_t { highest, lowest };

/// Does not synchronise with the default stream. Not copyable.
class Stream {
  public:
    explicit Stream(Priority priority = Priority::highest) {
        int lowest = 0;
        int highest = 0;
        check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange",
              "set-up");
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                           priority == Priority::lowest ? lowest : highest),
              "cudaStreamCreateWithPriority", "set-up");
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { cudaStreamDestroy(stream_); }
    operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)
    void wait_for(cudaEvent_t event) const {
        check(cudaStreamWaitEvent(stream_, event, 0), "cudaStreamWaitEvent", "ordering the streams");
    }

  private:
    cudaStream_t stream_ = nullptr;
};

/// Of the current device of the calling thread. Without timing unless `flags` ask for it. wait() sleeps if
/// they contain cudaEventBlockingSync. Not copyable.
class Event {
  public:
    explicit Event(unsigned flags = cudaEventDisableTiming) {
        check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate", "set-up");
    }
    /// Of that device.
    Event(unsigned flags, int device) {
        const OnDevice on(device);
        check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate", "set-up");
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { cudaEventDestroy(event_); }
    operator cudaEvent_t() const { return event_; }  // NOLINT(google-explicit-constructor)
    void record(cudaStream_t stream) const {
        check(cudaEventRecord(event_, stream), "cudaEventRecord", "ordering the streams");
    }
    [[nodiscard]] bool is_done() const {
        const cudaError_t status = cudaEventQuery(event_);
        if (status != cudaErrorNotReady) check(status, "cudaEventQuery", "asking for an event");
        cudaGetLastError();  // clears cudaErrorNotReady, so that no later call reports it
        return status == cudaSuccess;
    }
    /// Asks for a short while before it sleeps, because waking up takes longer than small slices do.
    void wait(const char* doing) const {
        const auto until = std::chrono::steady_clock::now() + asked_for;
        while (!is_done()) {
            if (std::chrono::steady_clock::now() >= until) {
                return check(cudaEventSynchronize(event_), "cudaEventSynchronize", doing);
            }
        }
    }

  private:
    static constexpr std::chrono::microseconds asked_for{30};
    cudaEvent_t event_ = nullptr;
};

}  // namespace petacq::gpu::cuda
